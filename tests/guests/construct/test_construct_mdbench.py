"""`ragbed construct mdbench` with a writer whose every flaw is known."""
import json
import re

import pytest

from ragbed.documents import parse_document
from ragbed.experiments.guests.construct.kinds.table_edits import (
    TableEdit,
    apply_plan,
    describe_plan,
    make_grid,
    missing_values,
    reveals_hidden,
)
from ragbed.experiments.guests.construct.stages import Dropped
from ragbed.experiments.guests.datasets.mdbench import Mdbench
from ragbed.experiments.guests.formats.document_tables import find_tables
from ragbed.strategies import REFUSAL

NAMES = ("Aster Point", "Boral Rock", "Cedar Head", "Dunlin Bar", "Esk Mouth")
DROP = {"action": "drop", "skill": "temporal", "column": "rank"}
LATER = {"action": "relate", "skill": "multi-hop", "column": "lit", "row": 5, "other": 2}
FLAWS = {  # what is wrong with the item of each coast, and where it is lost
    "Arno": "", "Bute": "", "Coll": "", "edited where nothing is": "question and plan",
    "edited in vain": "question and plan", "invalid": "review", "unanswerable": "review", "ambiguous": "review",
    "doubted": "review", "lacking": "facts", "telling": "facts", "pointing": "self-contained",
    "disagreeing": "oracles", "wrongly keyed": "oracles", "known": "not known", "again": "duplicate"}


def place(coast):
    return "Bute" if coast == "again" else coast


def table(coast):
    """Every coast has its own names and years; the light at Esk Mouth is its last."""
    first = 1900 + 5 * list(FLAWS).index(coast)
    return [(f"{name} of {place(coast)}", f"{20 + 3 * row}.25", str(first + 4 * row), str(row + 1))
            for row, name in enumerate(NAMES)]


def asked(coast):
    if coast == "pointing":
        return "Which light of the pointing coast in the table was lit last?"
    return f"Which light of the {place(coast)} coast was lit last?"


def plan(coast):
    edits = {"edited where nothing is": [{**DROP, "column": "keeper"}], "again": [DROP],
             "edited in vain": [{"action": "round", "skill": "numeric", "column": "lit", "digits": 0}]}
    return {"edits": edits.get(coast, [DROP, LATER]), "question": asked(coast),
            "answer": "Dunlin Bar" if coast in ("wrongly keyed", "doubted") else f"Esk Mouth of {place(coast)}"}


def review(coast):
    accepted = "Esk Mouth" if coast == "doubted" else f"the {plan(coast)['answer']}"
    return {"answerable": coast != "unanswerable", "answers": [accepted],
            "multi_hop": 3, "temporal": 4, "numeric": 2, "information_aggregation": 3, "soft_reasoning": 1,
            "clarity": 3 if coast == "ambiguous" else 5, "validity": 2 if coast == "invalid" else 4}


def document(coast, body):
    shown = body["messages"][0]["content"]
    values = dict(re.findall(r"^(name|height|lit): (.*)$", shown, re.MULTILINE))
    if coast == "lacking" or (coast == "Coll" and len(body["messages"]) == 1):
        values["height"] = "many"
    hidden = f"It was lit in {table(coast)[4][2]}. " if coast == "telling" and "Esk Mouth" in shown else ""
    return {"document": f"The light of {values['name']}.\nDocument 2: it is {values['height']} metres high. {hidden}"
            f"It was lit: {values['lit']}."}


def solve(coast, shown):
    name = "Cedar Head" if coast == "disagreeing" and "|index|" not in shown else "Esk Mouth"
    return f"<Answer>{name} of {place(coast)} [1]</Answer>" if "<documents>" in shown or coast == "known" else REFUSAL


def reply(body):
    shown = "\n".join(one["content"] for one in body["messages"])
    coast = next(name for name in sorted(FLAWS, key=len, reverse=True) if f"{name} coast" in shown)
    if "<columns>" in shown:
        return json.dumps(plan(coast))
    if "<values>" in shown:
        return json.dumps(document(coast, body))
    if "<table>" not in shown:
        return solve(coast, shown)
    first = {"summary": "Five lights and when they were lit.", "rows": [1, 5], "question": "Which light is the last?",
             "answer": "Esk"}
    return json.dumps(review(coast) if "<answer>" in shown else first)


def test_every_flaw_is_lost_at_its_filter_and_the_others_run_as_the_published_set(tmp_path, serve, ragbed):
    pages = tmp_path / "pages"
    pages.mkdir()
    for coast in FLAWS:
        rows = [("name", "height", "lit", "rank"), *table(coast)]
        (pages / f"{coast} coast.csv").write_text("".join(f"{','.join(row)}\n" for row in rows))
    (pages / "small.csv").write_text("name,height,lit\nAster,1,2\n")
    url = f"{serve(reply).url}#m"
    counts = ragbed.json("construct", "mdbench", pages, "--out", tmp_path / "set", "--writer", url, "--n", "20",
                         "--set", "retriever=dense")
    folder = tmp_path / "set"
    rows = [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    lost = {row["item"]["made"]["about"].removesuffix(" coast"): row["lost"] for row in rows}
    twins = {"Bute", "again"}  # whichever comes first is kept
    assert {coast: step for coast, step in lost.items() if coast not in twins} == {
        coast: step for coast, step in FLAWS.items() if coast not in twins}
    assert sorted(lost[coast] for coast in twins) == ["", "duplicate"]
    assert {name: reasons for name, reasons in counts["yield"]["lost"].items() if reasons} == {
        "question and plan": {"its edits change nothing": 1, "the writer's reply is invalid: edits.0.column: Input "
                              "should be 'name', 'height', 'lit' or 'rank'": 1},
        "review": {"the reviewer finds more than one answer": 1, "the reviewer's validity is below 4": 1,
                   "the reviewer finds no answer in the edited table": 1, "the reviewer accepts another answer": 1},
        "facts": {"a row's document lacks one of its values": 1,
                  "a row's document reveals what the plan hides": 1},
        "self-contained": {"it refers to 'the table'": 1},
        "oracles": {"solvers disagree with the key from the documents": 1,
                    "solvers agree on a different answer than the key": 1},
        "not known": {"most solvers answer it without documents": 1},
        "duplicate": {"it repeats another item's question": 1}}
    questions = {question.text: question for question in Mdbench(path=str(folder / "mdbench")).load().questions}
    assert set(questions) == {f"Which light of the {coast} coast was lit last?" for coast in ("Arno", "Bute", "Coll")}
    question = questions["Which light of the Coll coast was lit last?"]
    assert question.answers == ("Esk Mouth of Coll",)
    assert (question.tags["multi_hop"], question.tags["validity"]) == (("3",), ("4",))
    assert len(question.provided) == 5
    assert question.provided[4].content == (
        "The light of Esk Mouth of Coll. Document 2: it is 32.25 metres high. It was lit: 12 years later than that of "
        "Boral Rock of Coll.")
    assert question.table.content.splitlines()[0] == "| index | name | height | lit |"
    made = ragbed.json("run", "mdbench", folder / "mdbench", "--model", url, "--reasoning", "direct",
                       "--out", tmp_path / "runs")
    assert [(cell["n"], cell["metrics"]["em"]["mean"]) for cell in made["cells"]] == [(3, 1.0)]


PAGE = ("<table><tr><th>gymnast<th>a<th>b<th>total<th>year</tr>" + "".join(
    f"<tr><td>{name}<td>{a}<td>{b}<td>{total}<td>{year}</tr>" for name, a, b, total, year in (
        ("Cheng Fei", "6.6", "9.15", "15.75", "2003"), ("Shawn | Johnson", "6.3", "9.125", "15.425", "2008"),
        ("Anna Pavlova", "5.9", "9.225", "15.125", "2001"))) + "</table>")


def grid():
    (table,) = find_tables(parse_document(PAGE.encode(), "a.html"))
    return make_grid(table)


def edit(action, column, **fields):
    return TableEdit(action=action, skill="numeric", column=column, **fields)


def test_edits_are_applied_by_program_in_the_order_that_keeps_them_true():
    edits = [edit("reword", "gymnast", row=1, text="<a gymnast of China>"), edit("relate", "b", row=3, other=1),
             edit("relate", "year", row=2, other=3), edit("round", "b", digits=1), edit("drop", "total", row=9)]
    edited = apply_plan(grid(), edits)
    assert edited.pipes() == ("|index|gymnast|a|b|year|\n|1|<a gymnast of China>|6.6|9.2|2003|\n"
                              "|2|Shawn / Johnson|6.3|9.1|7 years later than that of Anna Pavlova|\n"
                              "|3|Anna Pavlova|5.9|the same as that of Cheng Fei|2001|")
    assert describe_plan(edits, edited).splitlines()[1:] == [
        "2. In row 3, b is written as: the same as that of Cheng Fei",
        "3. In row 2, year is written as: 7 years later than that of Anna Pavlova",
        "4. The numbers of b are rounded to 1 digits behind the point.", "5. The column total is left out."]
    assert missing_values(edited, 1, "Shawn / Johnson had 6.3 and 9.1, seven years after Anna.") == ["7",
                                                                                                     "Anna Pavlova"]
    assert missing_values(edited, 0, "In 2003, 6.60 and 9.2 of ten.") == []
    assert reveals_hidden(edited, 0, "Cheng Fei had 6.6.")
    assert not reveals_hidden(edited, 0, "A gymnast of China had 6.6.")


@pytest.mark.parametrize(("wrong", "reason"), [
    (edit("drop", "gymnast"), "an edit drops the column that names the rows"),
    (edit("round", "gymnast"), "an edit rounds a column without numbers"),
    (edit("relate", "a", row=1, other=4), "an edit names a row that does not exist"),
    (edit("relate", "a", row=1, other=1), "an edit names a row that does not exist"),
    (edit("relate", "gymnast", row=1, other=2), "an edit relates a value that is not a number"),
    (edit("reword", "a", row=0, text="x"), "an edit names a row that does not exist"),
    (edit("reword", "year", row=2, text="the year 2,008"), "an edit's new text contains the value that it hides")])
def test_an_edit_that_does_not_fit_ends_the_item(wrong, reason):
    with pytest.raises(Dropped) as caught:
        apply_plan(grid(), [wrong])
    assert str(caught.value) == reason
