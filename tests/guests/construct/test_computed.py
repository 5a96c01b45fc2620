"""Computed truth: what each operation comes to, the four worlds of an item, and what a run's figures say of them."""
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from each_case import each

from ragbed.documents.parse import parse_document
from ragbed.experiments.guests.construct.counterfactuals import apply_to_passage, apply_to_table, make_worlds
from ragbed.experiments.guests.construct.operations import OPERATIONS, Computation, compute, draw_plan
from ragbed.experiments.guests.construct.stages import Dropped
from ragbed.experiments.guests.formats.typed_tables import read_sentences, read_tables
from ragbed.experiments.metrics.matching import gives_answer
from ragbed.strategies import REFUSAL

DEPOTS = """depot,opened,county,parcels,cost
Aster,3 May 1998,North,"1,577",$2.50
Birch,12 June 2001,South,904,$1.75
Cedar,1 March 2001,North,"1,210",$4.00
Dogwood,30 July 1987,North,310,$0.90
"""
STAFF = """depot,manager,staff
Aster,Ilse Brandt,12
Cedar,Omar Haddad,9
Dogwood,Pia Lindqvist,4
"""
KOREAN = """지점,개점일,지역,매출액
서울,2011년 3월 2일,수도권,1250억원
부산,2009년 7월 15일,영남,980억원
인천,2015년 1월 20일,수도권,410억원
"""
REPORT = """# Accounts of the Harbour

Revenue rose to 8,715 in 2022. The pier was sold in March 2021 for little.

Repairs of the ferries ended on 4 May 2020 at last.

| Line | 2022 | 2021 | 2020 |
| --- | --- | --- | --- |
| Revenue | $8,715 | $8,120 | $7,004 |
| Repairs | (310) | 25 | 40 |
| Ferries | 12 | 12 | — |
"""


def document(text, name="depots.csv"):
    return parse_document(text.encode(), name)


def depots_table(text=DEPOTS, name="depots.csv"):
    return read_tables(document(text, name))[0]


@each(("plan", "answer"), [
    (Computation("look-up", ("parcels",), ("Aster",)), "1,577"),
    (Computation("look-up", ("county",), ("Birch",)), "South"),
    (Computation("arg-max", ("parcels",)), "Aster"),
    (Computation("arg-min", ("cost",)), "Dogwood"),
    (Computation("sum", ("parcels",), ("Aster", "Birch", "Cedar")), "3,691"),
    (Computation("difference", ("cost",), ("Dogwood", "Aster")), "-$1.60"),
    (Computation("ratio", ("parcels",), ("Aster", "Birch")), "1.74"),
    (Computation("before", ("opened",), ("Birch", "Cedar")), "Cedar"),
    (Computation("after", ("opened",), ("Aster", "Dogwood")), "Aster"),
    (Computation("count", ("county", "parcels"), (), ("North", "904")), "2")])
def test_each_operation_comes_to_what_a_reader_works_out(plan, answer):
    assert compute(plan, [depots_table()])[0] == answer


@pytest.mark.parametrize(("plan", "answer"), [
    (Computation("arg-max", ("매출액",)), "서울"),
    (Computation("sum", ("매출액",), ("서울", "인천")), "1660 억원"),
    (Computation("before", ("개점일",), ("서울", "부산")), "부산"),
    (Computation("count", ("지역", "매출액"), (), ("수도권", "410")), "1")])
def test_korean_tables_are_worked_out_alike(plan, answer):
    assert compute(plan, [depots_table(KOREAN, "지점.csv")])[0] == answer


def test_a_join_takes_the_highest_of_one_table_to_the_other():
    staff = depots_table(STAFF, "staff.csv")
    assert compute(Computation("join", ("parcels", "manager")), [depots_table(), staff]) == ("Ilse Brandt",)
    with pytest.raises(Dropped, match="the other table does not have the row"):
        compute(Computation("join", ("parcels", "manager")), [depots_table(DEPOTS.replace("904", "9904")), staff])


def test_columns_that_are_periods_are_what_is_compared_and_brackets_are_a_minus():
    accounts = depots_table(REPORT, "accounts.md")
    assert (accounts.entities, list(accounts.fields)) == (("2022", "2021", "2020"), ["Revenue", "Repairs", "Ferries"])
    assert compute(Computation("arg-min", ("Repairs",)), [accounts]) == ("2022",)
    assert compute(Computation("difference", ("Repairs",), ("2022", "2021")), [accounts])[0] == "-335"
    assert compute(Computation("look-up", ("Revenue",), ("2021",)), [accounts]) == ("$8,120", "8,120")


@pytest.mark.parametrize(("plan", "why"), [
    (Computation("arg-max", ("Ferries",)), "an empty cell"),
    (Computation("look-up", ("Ferries",), ("2020",)), "an empty cell"),
    (Computation("ratio", ("Repairs",), ("2021", "2022")), "a ratio with zero or a negative number")])
def test_what_has_no_answer_says_why(plan, why):
    with pytest.raises(Dropped, match=why):
        compute(plan, [depots_table(REPORT, "accounts.md")])


def test_a_tie_has_no_answer():
    with pytest.raises(Dropped, match="a tie"):
        compute(Computation("arg-max", ("parcels",)), [depots_table(DEPOTS.replace("904", '"1,577"'))])


@pytest.mark.parametrize(("text", "why"), [
    (DEPOTS.replace("Dogwood,", "Total,"), "a row of totals"),
    (DEPOTS.replace("Dogwood,", "Aster,").replace("30 July 1987", "?").replace("310", "x"), "no column names the rows"),
    ("| Line | 2022 | 2021 | change |\n|---|---|---|---|\n| A | 2 | 1 | 1 |\n| B | 3 | 1 | 2 |\n| C | 3 | 1 | 2 |\n",
     "computed from others")])
def test_tables_of_which_nothing_can_be_asked_say_why(text, why):
    assert why in read_tables(document(text, "t.csv" if "," in text else "t.md"))[0]


def test_periods_of_several_lengths_are_looked_up_and_not_compared():
    mixed = depots_table(
        REPORT.replace("| 2022 | 2021 | 2020 |", "| Six Months 2022 | Six Months 2021 | Year 2020 |"), "a.md")
    assert draw_plan("look-up", [mixed], random.Random(0)) is not None
    assert draw_plan("arg-max", [mixed], random.Random(0)) is None


def test_ranks_and_averages_are_not_added_up():
    scores = depots_table(
        "player,rank,average,points\nAda Hoop,1,3.5,20\nBo Lind,2,2.5,30\nCy Moss,3,1.0,10\n", "s.csv")
    assert [one.name for one in scores.fields_where(lambda one: one.is_summable)] == ["points"]
    assert [one.name for one in scores.fields_where(lambda one: one.is_measure)] == ["average", "points"]


def test_an_edit_reaches_every_place_where_the_value_stands():
    accounts = document(REPORT, "accounts.md")
    plan, tables = Computation("look-up", ("Revenue",), ("2022",)), [read_tables(accounts)[0]]
    worlds = make_worlds(plan, tables, {accounts.id: accounts}, random.Random(0))
    assert list(worlds) == ["original", "edited", "removed", "unrelated"]
    said = {name: apply_to_passage(accounts.id, accounts.plain, 0, world.edits) for name, world in worlds.items()}
    new = worlds["edited"].answers[1]
    assert said["original"] == accounts.plain
    assert "8,715" not in said["edited"]
    assert f"Revenue rose to {new} in 2022." in said["edited"]
    assert f"| Revenue | ${new} | $8,120 |" in said["edited"]
    assert "Revenue rose to [redacted] in 2022." in said["removed"]
    assert "| Revenue | [redacted] | $8,120 |" in said["removed"]
    assert said["unrelated"].count("8,715") == 2
    assert said["unrelated"] != accounts.plain


@pytest.mark.parametrize("total", ["Gesamt", "합계", "Total net", "Everywhere"])
def test_a_total_that_tells_a_removed_value_goes_too_whatever_its_name_and_place(total):
    line = f"| {total} | 1,035 | 978 |"
    lines = ["| North | 612 | 541 |", "| South | 423 | 437 |", line]
    for order in (lines, [line, *lines[:2]]):
        sales = document("\n".join(["| Region | 2022 | 2021 |", "|---|---|---|", *order]) + "\n", "sales.md")
        plan, tables = Computation("look-up", ("North",), ("2022",)), [read_tables(sales)[0]]
        removed = apply_to_passage(sales.id, sales.plain, 0, make_worlds(
            plan, tables, {sales.id: sales}, random.Random(0))["removed"].edits)
        assert "| North | [redacted] | 541 |" in removed
        assert line.replace("1,035", "[redacted]") in removed
        assert "| South | 423 | 437 |" in removed


LOSSES = """Figures are in millions of crowns (in millions).

| Line | 2022 | 2021 |
| --- | --- | --- |
| Sales | $8,715 | $8,120 |
| Net loss | (154) | (300) |
| Net income (loss) | 120 | (26) |
| Growth | (7.2)% | (3.1)% |
| Grants | 211 (2) | 17* |
| Leases | 40 | $— |
| Sites | n/m | 3 |
"""


def test_losses_in_brackets_are_looked_up_with_either_sign_and_not_compared():
    table = depots_table(LOSSES, "losses.md")
    assert {one.name for one in table.fields.values() if one.is_measure} == {
        "Sales", "Net income (loss)", "Grants", "Leases", "Sites"}
    assert compute(Computation("look-up", ("Net loss",), ("2022",)), [table]) == (
        "(154)", "-154", "154", "-154 million", "154 million")
    assert compute(Computation("look-up", ("Growth",), ("2022",)), [table]) == ("(7.2)%", "-7.2")
    assert compute(Computation("difference", ("Net income (loss)",), ("2022", "2021")), [table])[0] == "146"
    assert compute(Computation("sum", ("Grants",), ("2022", "2021")), [table])[0] == "228"
    for name, period in (("Leases", "2021"), ("Sites", "2022")):
        with pytest.raises(Dropped, match="an empty cell"):
            compute(Computation("look-up", (name,), (period,)), [table])


def test_a_line_whose_name_is_wrapped_is_not_asked_about():
    table = depots_table("""| Line | 2022 | 2021 |
| --- | --- | --- |
| Sales | 715 | 812 |
| Currency adjustments, net of tax of $10 and | | |
| $(32) | 21 | 33 |
| Pensions, net of | 5 | 6 |
| Wages | 415 | 512 |
""", "wrapped.md")
    assert list(table.fields) == ["Sales", "Wages"]


def test_numbers_in_names_are_neither_asked_about_nor_edited():
    text = ("# Report of the Company\n\nSales of Office 365 to schools were better than was planned for the year.\n\n"
            "The firm keeps a 401(k) savings plan for all of its employees.\n\nThe desk can be called at "
            "408-536-6000 on each working day of the year.\n\nIt was found that the firm has 5,120 desks in use there"
            " today.\n\nThe number of desks in use at the office was 5,230 last winter.\n\n"
            "| Line | 2022 | 2021 |\n|---|---|---|\n| Desks | 365 | 212 |\n| Lamps | 77 | 518 |\n| Doors | 12 | 919 |")
    report = document(text, "report.md")
    assert read_sentences(report, 0, len(report.plain)).entities == (
        "The number of desks in use at the office was ____ last winter.",)
    with pytest.raises(Dropped, match="a name may contain the same number"):
        make_worlds(Computation("look-up", ("Desks",), ("2022",)), [read_tables(report)[0]], {report.id: report},
                    random.Random(0))


@pytest.mark.parametrize("text", [DEPOTS, KOREAN])
@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one not in ("ratio", "join")])
def test_every_world_read_anew_gives_the_answer_that_it_should(operation, text):
    depots = document(text)
    tables = [read_tables(depots)[0]]
    for seed in range(5):
        plan = draw_plan(operation, tables, random.Random(seed))
        worlds = make_worlds(plan, tables, {depots.id: depots}, random.Random(seed))
        for name in ("original", "edited", "unrelated"):
            assert compute(plan, [apply_to_table(tables[0], worlds[name].edits)]) == worlds[name].answers
        assert worlds["edited"].answers[0] != worlds["original"].answers[0] == worlds["unrelated"].answers[0]
        with pytest.raises(Dropped):
            compute(plan, [apply_to_table(tables[0], worlds["removed"].edits)])


def test_dated_sentences_are_asked_by_a_blank():
    accounts = document(REPORT.replace("for little", "for 20,000 crowns"), "accounts.md")
    tables = [read_sentences(accounts, 0, len(accounts.plain))]
    pier, repairs = tables[0].entities
    assert (pier, repairs) == ("The pier was sold in ____ for 20,000 crowns.",
                               "Repairs of the ferries ended on ____ at last.")
    assert compute(Computation("look-up", ("value",), (repairs,)), tables) == ("4 May 2020",)
    with pytest.raises(Dropped, match="differ in precision"):
        compute(Computation("before", ("value",), (pier, repairs)), tables)
    plan = Computation("look-up", ("value",), (repairs,))
    worlds = make_worlds(plan, tables, {accounts.id: accounts}, random.Random(0))
    assert "Repairs of" in accounts.plain
    assert "Repairs of" not in apply_to_passage(accounts.id, accounts.plain, 0, worlds["removed"].edits)


@pytest.fixture
def built(ragbed, tmp_path):
    """A set without a model, over three tables and a report."""
    folder = tmp_path / "pages"
    folder.mkdir()
    for name, text in (("depots.csv", DEPOTS), ("staff.csv", STAFF), ("지점.csv", KOREAN), ("accounts.md", REPORT)):
        (folder / name).write_text(text, encoding="utf-8")
    status, _, err = ragbed("construct", "computed", folder, "--out", tmp_path / "set", "--n", 30)
    assert status == 0, err
    return tmp_path / "set"


def records(built):
    return [json.loads(line) for line in (built / "computed/computed.jsonl").read_text("utf-8").splitlines()]


def test_a_second_program_agrees_with_every_world(built):
    rows = records(built)
    assert {row["language"] for row in rows} == {"en", "ko"}
    assert len({row["operation"] for row in rows}) >= 9
    script = Path(__file__).parents[3] / "bench/computed_truth.py"
    found = subprocess.run([sys.executable, script, built], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    assert f"worlds that agree: {4 * len(rows)} " in found.stdout


def reader(rows):
    """Two scripted models: one follows what it is shown, the other gives the original's answer whatever it is shown."""
    def reply(body):
        prompt = body["messages"][-1]["content"]
        row = next(row for row in rows if row["question"] in prompt)
        memory = body["model"] == "memoriser"
        for world in ("original",) if memory else ("edited", "removed", "unrelated", "original"):
            made = row["worlds"][world]
            if memory or all(made["contents"].get(str(place), one["content"]).strip() in prompt
                             for place, one in enumerate(row["documents"])):
                return f"<Answer>{made['answers'][0] if made['answers'] else REFUSAL} [1]</Answer>"
        raise AssertionError(prompt)
    return reply


def writer(misread=()):
    """A scripted writer: words the question anew by a prefix, and reads its own words back, or wrongly where told."""
    plans = {}

    def reply(body):
        prompt = body["messages"][-1]["content"]
        question = prompt.partition("<question>\n")[2].partition("\n</question>")[0]
        if "<fields>" not in prompt:
            return json.dumps({"question": f"Please: {question}"})
        plan = plans[question.removeprefix("Please: ")]
        read = {"asked": plan["operation"], "fields": plan["fields"], "names": plan["entities"]}
        return json.dumps(read | dict(misread))

    reply.plans = plans
    return reply


def test_a_writer_words_it_and_what_is_read_back_otherwise_is_lost(serve, ragbed, tmp_path):
    (tmp_path / "depots.csv").write_text(DEPOTS)
    arguments = ("construct", "computed", tmp_path / "depots.csv", "--n", 4, "--set", "options.operations=[difference]")
    assert ragbed(*arguments, "--out", tmp_path / "plain")[0] == 0
    plain = records(tmp_path / "plain")
    for misread, why in (
            ((), ""), ((("asked", "ratio"),), "reads back as asking for the ratio, not for the difference"),
            ((("names", ["Aster"]),), "reads back with other fields or names"),
            ((("fields", ["county"]),), "reads back with other fields or names")):
        script, out = writer(misread), tmp_path / f"set {misread}"
        script.plans.update((row["question"], row["plan"]) for row in plain)
        assert ragbed(*arguments, "--tries", 4, "--writer", f"{serve(script).url}#m", "--out", out)[0] == bool(why)
        played = list(map(json.loads, (out / "items.jsonl").read_text("utf-8").splitlines()))
        if not why:
            assert [row["question"] for row in records(out)] == [f"Please: {row['question']}" for row in plain]
        else:
            assert {one["lost"] for one in played} == {"wording"}
            assert all(why in one["why"] for one in played)


@each(("text", "answer", "given"), [
    ("The answer is $1,577 [1].", "1,577", True), ("1577 parcels", "1,577", True), ("It was 15,770.", "1,577", False),
    ("5", "-5", False), ("0.9777", "0.98", True), ("0.97", "0.98", False), ("1,250억 원", "1250억원", True),
    ("3 May 1998", "May 3, 1998", True), ("Aster and then, as the other documents say at some length, so many more of "
                       "the depots in the North", "Aster", False)])
def test_answers_are_compared_by_value(text, answer, given):
    assert gives_answer(text, [answer]) is given


FIGURES = ("original right", "follow rate", "stick rate", "follow rate where right", "stick rate where right",
           "refusal on removal", "unrelated right", "invariance")


@pytest.mark.slow
def test_a_reader_follows_its_documents_a_memoriser_sticks_and_the_two_are_tested(built, serve, town, ragbed):
    rows = records(built)
    url = serve(reader(rows)).url
    config = town.config(url, models=[f"{url}#reader", f"{url}#memoriser"],
                         benchmark={"kind": "computed", "path": str(built)})
    status, out, err = ragbed("run", config, "--json")
    assert status == 0, err
    made = json.loads(out)
    views = {view["name"]: view for view in made["views"]}
    found = {row[1]: dict(zip(views["worlds"]["header"], row, strict=True)) for row in views["worlds"]["rows"]
             if row[0] == "all"}
    assert {label: [row[name]["mean"] for name in FIGURES] for label, row in found.items()} == {
        "reader": [1, 1, 0, 1, 0, 1, 1, 1], "memoriser": [1, 0, 1, 0, 1, 0, 1, 1]}
    assert {row["n"] for row in found.values()} == {len(rows)}
    assert found["reader"]["follow rate"]["high"] == 1 > found["reader"]["follow rate"]["low"]
    header = views["worlds:compared"]["header"]
    tested = {row[0]: dict(zip(header, row, strict=True)) for row in views["worlds:compared"]["rows"]}
    assert {name: tested[name]["difference"]["mean"] for name in FIGURES} == dict(
        zip(FIGURES, (0, -1, 1, -1, 1, -1, 0, 0), strict=True))
    assert [made["cells"][0]["metrics"][name]["mean"] for name in ("follow_rate", "stick_rate")] == [1, 0]
