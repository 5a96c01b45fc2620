"""The MDBench loader: documents out of one text and out of dictionaries, tables without hints, raw files."""
import json

import pytest
from each_case import each
from loaded import loaded

from ragbed.documents import BenchmarkError
from ragbed.experiments.guests.datasets.mdbench import Mdbench, pipe_table

ROW = {
    "question": "Which light was lit first?", "ground_truth": "Aster Point",
    "documents": "Document 1: Aster Point was lit in 1871.\n\nDocument 2: {'text': \"Boral Rock came in 1880.\"}",
    "table": "|index|generation context|name|lit|\n|1|short article|aster point|1871|\n|2|report|boral rock|1880|\n",
    "characteristic_breakdown": {"multi-hop": 2, "temporal": 4, "numeric": 3, "information_aggregation": 5,
                                 "soft_reasoning": 1}}


@pytest.fixture
def load(tmp_path):
    return lambda *rows, **settings: loaded(Mdbench, tmp_path / "mdbench_dataset.json", *rows, **settings).questions


def test_documents_are_cut_at_their_headings_and_dictionaries_give_their_text(load):
    question, = load(ROW)
    assert [chunk.content for chunk in question.provided] == [
        "Aster Point was lit in 1871.", "Boral Rock came in 1880."]
    assert question.answers == ("Aster Point",)
    assert question.tags == {"multi_hop": ("2",), "temporal": ("4",), "numeric": ("3",),
                             "information_aggregation": ("5",), "soft_reasoning": ("1",)}


def test_the_table_is_markdown_without_the_hints_to_the_generator(load):
    question, = load(ROW)
    assert question.table.content == ("| index | name | lit |\n| --- | --- | --- |\n| 1 | aster point | 1871 |\n"
                                      "| 2 | boral rock | 1880 |")


def test_a_table_whose_rows_cannot_be_told_apart_is_tagged(load):
    question, = load({**ROW, "table": "|index|name|1|aster|boral|"})
    assert question.tags["table"] == ("one line",)
    assert "table" not in load({**ROW, "table": "|index|name|1|aster|2|"})[0].tags


def test_as_published_shows_both_as_they_are(load):
    question, = load(ROW, unwrap=False)
    assert question.provided[1].content == "{'text': \"Boral Rock came in 1880.\"}"
    assert question.table.content == ROW["table"].strip()


def test_a_heading_counts_only_where_it_has_the_next_number(load):
    text = ("Document 1: The clerk wrote:\n\nDocument 7: the deed.\n\nDocument 2: The deed burned.\n"
            "See Document 3: it is a copy.\nDocument 3: A copy.\nDocument " + "9" * 5000 + ": none")
    question, = load({**ROW, "documents": text})
    assert [chunk.content for chunk in question.provided] == [
        "The clerk wrote:\n\nDocument 7: the deed.", "The deed burned.\nSee Document 3: it is a copy.",
        "A copy.\nDocument " + "9" * 5000 + ": none"]


def test_no_documents_are_shown_where_the_record_has_none(load):
    question, = load({**ROW, "documents": ""})
    assert (question.provided, question.tags["documents"]) == ((), ("none",))


@each(("table", "markdown"), [
    ("|a|b|\n|1|2|", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
    ("a|b\n\n1|2\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
    ("|a|b|\n|1|", "| a | b |\n| --- | --- |\n| 1 |  |"),
    ("|a|\n|1|2|", "| a |  |\n| --- | --- |\n| 1 | 2 |"),
    ("|a|Extra Generation Context|\n|1|tell it briefly", "| a |\n| --- |\n| 1 |"),
    ("|a|document context|b|\n|1|tell it briefly|2|", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
    ("|index|generation context|b|1|x|5|2|y|6|", "| index | b |\n| --- | --- |\n| 1 | 5 |\n| 2 | 6 |"),
    ("|index|b|1|5|2|", "| index | b |\n| --- | --- |\n| 1 | 5 |\n| 2 |  |"),
    ("|index|b|1|5|3|6|", "|index|b|1|5|3|6|"),
    ("|index|b|", "|index|b|"),
])
def test_a_table_keeps_every_cell_but_the_hints(table, markdown):
    assert pipe_table(table) == markdown


def test_raw_records_below_validity_four_are_left_out_unless_asked_for(load):
    rows = [{**ROW, "validity_scalar": validity, "example_id": f"e{validity}"} for validity in (1, 3, 4, 5)]
    assert [question.id for question in load(*rows)] == ["e4", "e5"]
    kept = load(*rows, only_valid=False)
    assert [question.tags["validity"] for question in kept] == [("1",), ("3",), ("4",), ("5",)]


def test_a_generation_log_is_a_raw_record(tmp_path):
    log = {"Resultant Generated Question": ROW["question"], "Resultant Generated Answer": "Aster Point",
           "Generated Document Set": ROW["documents"], "Resultant Generated Table -- Bar-separated": ROW["table"],
           "Example Difficulty": json.dumps(ROW["characteristic_breakdown"]), "Validity Scalar": 4, "Other": "kept out"}
    (tmp_path / "log.json").write_text(json.dumps(log, indent=2))
    question, = Mdbench(path=str(tmp_path)).load().questions
    assert len(question.provided) == 2
    assert question.tags["validity"] == ("4",)


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"documents": "Aster Point was lit in 1871."}, "field documents: expected text that begins with 'Document 1: '"),
    ({"documents": "Introduction\n\nDocument 1: x"}, "field documents: expected text that begins with 'Document 1: '"),
    ({"characteristic_breakdown": {"multi-hop": 2}}, "field characteristic_breakdown.temporal: expected a whole"),
    ({"characteristic_breakdown": "[" * 100_000}, r"field characteristic_breakdown: .*\(nested too deeply\), found"),
    ({"validity_scalar": "5"}, "field validity_scalar: expected a whole number, found '5'"),
    ({"example_id": 1.5}, "field example_id: expected text, a whole number or null"),
])
def test_a_record_that_does_not_fit_says_where(load, changes, complaint):
    with pytest.raises(BenchmarkError, match=rf"mdbench_dataset\.json, line 1, {complaint}"):
        load({**ROW, **changes})


def test_documents_may_be_a_list_and_table_and_breakdown_missing(tmp_path):
    question, = loaded(Mdbench, tmp_path / "hub.jsonl", {
        "question": "Which light came first?", "ground_truth": "Aster Point",
        "documents": ["Aster Point was lit in 1871.", "Boral Rock in 1880."]}).questions
    assert [chunk.content for chunk in question.provided] == ["Aster Point was lit in 1871.", "Boral Rock in 1880."]
    assert (question.table, question.tags) == (None, {})
