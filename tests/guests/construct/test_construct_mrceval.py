"""`ragbed construct mrceval` with a writer whose every flaw is known, and judges who err where they should."""
import json
import re

import pytest

from ragbed.experiments.guests.construct.kinds.mrceval import check_distinct, check_key, check_one_correct
from ragbed.experiments.guests.datasets.mrceval import Mrceval
from ragbed.experiments.guests.review.items import Item
from ragbed.strategies import REFUSAL

TOWNS = {
    "Arlen": ("1871", ["1872", "1899", "1902"]),
    "Bixby": ("1880", ["1881", "1881.", "1902"]),
    "Corda": ("1890", ["May 1890", "1899", "1902"]),
    "Delmar": ("1901", ["1872", "1899", "1902"]),
    "Elgin": ("1911", ["1872", "1899", "1902"]),
    "Fargo": ("1921", ["1872", "1899", "1902"]),
    "Gower": ("1931", ["1872", "1899", "1902"])}
WRONG_KEY, KNOWN, EASY, UNREAD = "Delmar", "Elgin", "Fargo", "Gower"
LOST = {"Arlen": "", "Bixby": "options differ", "Corda": "one right", WRONG_KEY: "solvable", KNOWN: "not known",
        EASY: "selection", UNREAD: "judges"}


def page(town):
    return f"The mill of {town} opened in {TOWNS[town][0]}, and burned for two days in the year after."


def reply(body):
    """A writer that gives one wrong key; judges of whom the second errs, but on what is easy; and a sound solver."""
    shown = body["messages"][-1]["content"]
    town = re.search(r"mill of (\w+)", shown)[1]
    year, wrong = TOWNS[town]
    key = "1902" if town == WRONG_KEY else year
    if "Write three wrong answers" in shown:
        return json.dumps({"wrong_answers": [year, "1899", "1872"] if town == WRONG_KEY else wrong})
    if "response_format" in body:
        return json.dumps({"question": f"In which year did the mill of {town} open?", "answer": key})
    options = dict(re.findall(r"^\(?([A-D])[).:] (.+)$", shown, re.MULTILINE))
    if not options:
        return f"<Answer>{year}</Answer>" if town == KNOWN or "burned" in shown else REFUSAL
    if body["model"].startswith("judge"):
        if town == UNREAD:
            return "I would rather not say."
        errs = body["model"] == "judge2" and town != EASY
        said = next(text for text in TOWNS[town][1] if text in options.values()) if errs else key
    else:
        said = year
    return f"<Answer>{next(label for label, text in options.items() if text == said)}</Answer>"


@pytest.fixture
def build(tmp_path, serve, ragbed):
    """The folder of a set over the towns, and where each was lost."""
    pages, url = tmp_path / "pages", serve(reply).url
    pages.mkdir()
    for town in TOWNS:
        (pages / f"{town}.txt").write_text(page(town), encoding="utf-8")

    def made(name, *more, judges=3):
        each = [part for number in range(1, judges + 1) for part in ("--judge", f"{url}#judge{number}")]
        ragbed.json("construct", "mrceval", pages, "--out", tmp_path / name, "--writer", f"{url}#writer", *each, "--n",
                    "20", "--set", "options.subtasks=[temporal]", *more)
        rows = [json.loads(line) for line in (tmp_path / name / "items.jsonl").read_text(encoding="utf-8").splitlines()]
        return tmp_path / name, {re.search(r"mill of (\w+)", row["item"]["chunks"][0]["content"])[1]: row
                                 for row in rows}

    return made


def test_every_flaw_is_lost_at_its_filter_and_no_sound_item_is(build):
    folder, rows = build("set")
    assert {town: row["lost"] for town, row in rows.items()} == LOST
    item = rows["Arlen"]["item"]
    assert (item["tags"], item["measured"]) == (
        {"subtask": "temporal", "selection": "hard", "noise": "some wrong"},
        {"judges": pytest.approx(2 / 3), "solved": 1.0, "known": 0.0})
    question, = Mrceval(path=str(folder / "mrceval")).load().questions
    assert dict(question.options)[question.answers[0]] == "1871"
    assert sorted(text for _, text in question.options) == ["1871", "1872", "1899", "1902"]
    assert question.tags["subtask"] == ("temporal",)
    assert [chunk.content for chunk in question.provided] == [page("Arlen")]


def test_easy_items_are_kept_where_all_are_wanted_and_both_rates_are_given(build):
    folder, rows = build("all", "--set", "options.select=all", judges=9)
    assert {town: row["lost"] for town, row in rows.items()} == {**LOST, EASY: ""}
    assert rows[EASY]["item"]["tags"]["selection"] == "easy"
    assert json.loads((folder / "card.json").read_text(encoding="utf-8"))["notes"] == [
        "Solvers with the evidence agree with the key at a rate of 0.67 [0.21, 0.94], n 3 for hard items, and "
        "0.75 [0.30, 0.95], n 4 for all."]


def test_fewer_judges_and_enough_of_a_sub_task_are_said(build):
    folder, rows = build("few", "--set", "options.select=all", "--set", "options.most=1", judges=1)
    assert sorted(row["lost"] for town, row in rows.items() if town in ("Arlen", EASY)) == ["", "more than asked for"]
    assert json.loads((folder / "card.json").read_text(encoding="utf-8"))["notes"][1:] == [
        "Selected by 1 of the paper's 3 judges.",
        "Noise was judged by 1 of the paper's 6 judges, the selecting ones."]


def test_a_benchmark_s_questions_get_the_paper_s_options_by_rule_and_keep_those_that_they_have(serve, ragbed, tmp_path):
    text = "Orlo founded Tessel. Tessel is based in Marn. Marn lies on the Dunl. The Dunl is long."
    steps = [("What did Orlo found?", "Tessel"), ("Where is #1 based?", "Marn"), ("On what lies #2?", "Dunl")]
    chains = [{"id": f"hops {hops}", "context": [text], "question": f"Which of {hops}?", "answer": steps[hops - 1][1],
               "sub_questions": [one for one, _ in steps[:hops]], "sub_answers": [one for _, one in steps[:hops]]}
              for hops in (2, 3)]
    (tmp_path / "chains.jsonl").write_text("".join(json.dumps(row) + "\n" for row in chains), encoding="utf-8")
    given = {"context": text, "question": "Is it long?", "choices": ["no", "yes", "perhaps", "never"], "answer": "B",
             "subtask": "entity", "id": "given"}
    (tmp_path / "choices.jsonl").write_text(json.dumps(given), encoding="utf-8")

    def answers(body):
        shown = body["messages"][-1]["content"]
        options = dict(re.findall(r"^\(?([A-D])[).:] (.+)$", shown, re.MULTILINE))
        key = "yes" if "Is it long?" in shown else "Dunl"
        return next((f"<Answer>{label}</Answer>" for label, option in options.items() if option == key), REFUSAL)

    url, found = f"{serve(answers).url}#m", {}
    for source in ("mrke:chains.jsonl", "mrceval:choices.jsonl"):
        kind, _, file = source.partition(":")
        folder = tmp_path / kind
        ragbed.json("construct", "mrceval", "--from", f"{kind}:{tmp_path / file}", "--out", folder, "--writer", url,
                    "--set", "options.distractors=rule", "--set", "options.select=all",
                    "--set", "options.subtasks=[multi-hop]")
        for row in map(json.loads, (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()):
            item = row["item"]
            found[item["id"]] = (row["why"], sorted(item["options"]), item["tags"]["subtask"])
    assert found == {
        "hops 2": ("it has 3 options instead of four", [], "multi-hop"),
        "hops 3": ("", ["Dunl", "Marn", "None of the above", "Tessel"], "multi-hop"),
        "given": ("", ["never", "no", "perhaps", "yes"], "entity")}


@pytest.mark.parametrize(("filter_", "options", "why"), [
    (check_distinct, ("1990", "1991", "1,990", "x"), "two options are the same"),
    (check_distinct, ("Paris", "paris.", "Rome", "Ulm"), "two options are the same"),
    (check_distinct, ("3.5", "35", "-3", "3"), None),
    (check_key, ("1991", "1992", "1993", "1994"), "the correct answer is not among the options"),
    (check_one_correct, ("1990", "10 May 1990", "1991", "1992"), "two options are correct"),
    (check_one_correct, ("1990", "MCMXC", "1991", "1992"), "two options are correct"),
    (check_one_correct, ("1990", "1991", "1992", "None of the above"), None)])
def test_options_are_checked_by_program(filter_, options, why):
    assert filter_(Item("q", answers=("1990", "MCMXC"), options=options), None) == why
