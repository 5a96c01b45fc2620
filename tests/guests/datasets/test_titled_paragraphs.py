"""HotpotQA, 2WikiMultihopQA and MoreHopQA: paragraphs under titles, with the supporting ones as gold."""
import json
from pathlib import Path

import pytest
from loaded import loaded

from ragbed.documents import BenchmarkError
from ragbed.experiments.guests.datasets.hotpotqa import HotpotQa
from ragbed.experiments.guests.datasets.morehopqa import MoreHopQa
from ragbed.experiments.guests.datasets.two_wiki import TwoWiki

DATA = Path(__file__).parents[2] / "data"
ROW = {"_id": "a", "question": "Who cast the bell of Esk?", "answer": "Tom Lund", "type": "bridge", "level": "hard",
       "context": [["Esk", ["Esk is a port.", " Its bell is by Lund.", " It rings."]],
                   ["Lund", ["Tom Lund cast bells."]]],
       "supporting_facts": [["Esk", 1], ["Lund", 0], ["Esk", 0]]}
COLUMNS = {**ROW, "context": {"title": ["Esk", "Lund"], "sentences": [ROW["context"][0][1], ROW["context"][1][1]]},
           "supporting_facts": {"title": ["Esk", "Lund", "Esk"], "sent_id": [1, 0, 0]}}


@pytest.fixture
def one(tmp_path):
    return lambda row, kind=HotpotQa, **settings: loaded(kind, tmp_path / "dev.jsonl", row, **settings)


def shown(benchmark):
    question = benchmark.questions[0]
    gold = {item.chunk for item in question.gold}
    return [(chunk.content, chunk.id in gold) for chunk in question.provided]


def test_paragraphs_are_chunks_under_their_titles_and_each_supporting_one_is_gold_once(one):
    benchmark = one(ROW)
    assert shown(benchmark) == [("Esk\nEsk is a port. Its bell is by Lund. It rings.", True),
                                ("Lund\nTom Lund cast bells.", True)]
    assert len(benchmark.questions[0].gold) == 2


def test_sentences_are_chunks_so_that_citations_are_supporting_facts(one):
    benchmark = one(ROW, units="sentences")
    assert shown(benchmark) == [("Esk\nEsk is a port.", True), ("Esk\nIts bell is by Lund.", True),
                                ("Esk\nIt rings.", False), ("Lund\nTom Lund cast bells.", True)]
    assert len(benchmark.documents) == 2


@pytest.mark.parametrize("units", ["paragraphs", "sentences"])
def test_the_layouts_say_the_same(one, units):
    text = {**ROW, **{field: json.dumps(ROW[field]) for field in ("context", "supporting_facts")}}
    assert one(ROW, units=units) == one(COLUMNS, units=units) == one(text, units=units)


def test_a_supporting_fact_that_is_not_there_stays_gold(one):
    row = {**ROW, "supporting_facts": [["Esk", 9], ["Absent", 0]]}
    assert [(gold.document, gold.chunk) for gold in one(row, units="sentences").questions[0].gold] == [
        ("Esk", "Esk#9"), ("Absent", "Absent#0")]
    known, absent = one(row).questions[0].gold
    assert (known.chunk, absent.document, absent.chunk) == (one(row).questions[0].provided[0].id, "Absent", None)


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"context": [["Esk", "one text"]]}, r"line 1, field context\[0\]: expected a title and a list of sentences"),
    ({"context": {"title": ["a"], "sentences": []}}, "field context: expected title and sentences as two lists of one"),
    ({"context": "no JSON"}, "field context: expected JSON text of a list of pairs"),
    ({"supporting_facts": [["Esk"]]}, r"field supporting_facts\[0\]: expected a pair of title and sent_id"),
    ({"supporting_facts": [["Esk", "1"]]}, r"field supporting_facts\[0\]: expected a title and the number of a"),
])
def test_a_record_that_does_not_fit_says_where(one, changes, complaint):
    with pytest.raises(BenchmarkError, match=complaint):
        one({**ROW, **changes})


def test_two_wikis_evidence_is_the_reference_reasoning_and_its_aliases_are_accepted(one, tmp_path):
    row = {**ROW, "evidences": [["Esk bell", "made by", "Tom Lund"]], "answer_id": "Q7"}
    question = one(row, TwoWiki).questions[0]
    assert [step.text for step in question.steps] == ["Esk bell | made by | Tom Lund"]
    assert question.answers == ("Tom Lund",)
    (tmp_path / "id_aliases.json").write_text('{"Q_id": "Q7", "aliases": ["T. Lund"], "demonyms": []}\n'
                                              '{"Q_id": "Q8", "aliases": ["other"], "demonyms": []}\n')
    assert one(row, TwoWiki).questions[0].answers == ("Tom Lund", "T. Lund")
    with pytest.raises(BenchmarkError, match=r"field evidences\[0\]: expected subject, relation and object as three"):
        one({**row, "evidences": [["Esk bell", "made by"]]}, TwoWiki)


def test_a_run_skips_bad_records_where_that_is_asked_for_and_names_them_in_its_notes(ragbed, serve, tmp_path):
    rows = [{**ROW, "_id": str(number), "evidences": []} for number in range(5)]
    rows[1], rows[3] = ({name: value for name, value in row.items() if name != "context"} for row in (rows[1], rows[3]))
    (tmp_path / "dev.jsonl").write_text("\n".join(map(json.dumps, rows)))
    server = serve(lambda _: "<Answer>Tom Lund</Answer>")
    asked = ("run", "two_wiki", tmp_path / "dev.jsonl", "--model", f"{server.url}#m", "--out", tmp_path / "runs")
    ragbed.refuses(*asked, says=["dev.jsonl, line 2, field context: expected a list of pairs"])
    run = ragbed.json(*asked, "--skip-bad")
    assert run["cells"][0]["n"] == 3
    assert run["notes"][0].startswith(
        "2 invalid records were left out (skip_bad): dev.jsonl, line 2, 4. The first: ")
    assert "2 invalid records were left out" in ragbed(*asked, "--skip-bad", "--dry-run")[2]


def test_the_split_of_a_folder_is_read_and_an_unknown_one_is_named(tmp_path):
    for split, id in (("train", "t"), ("validation", "v")):
        (tmp_path / f"{split}-00000.jsonl").write_text(json.dumps({**ROW, "_id": id}) + "\n")
    assert [question.id for question in HotpotQa(path=str(tmp_path)).load().questions] == ["v"]
    assert [question.id for question in HotpotQa(path=str(tmp_path), split="train").load().questions] == ["t"]
    with pytest.raises(BenchmarkError, match="no file for the split test; set split to one of: dev, train"):
        HotpotQa(path=str(tmp_path), split="test").load()


def test_a_folder_that_holds_a_question_twice_is_refused(tmp_path):
    for name in ("distractor_dev", "fullwiki_dev"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(ROW) + "\n")
    with pytest.raises(BenchmarkError, match="two questions have the id a; make the ids unique"):
        HotpotQa(path=str(tmp_path)).load()


def test_morehopqa_has_its_chain_and_the_paragraphs_that_support_it():
    questions = MoreHopQa(path=str(DATA / "morehopqa")).load().questions
    first = questions[0]
    assert first.sub_questions[1] == "Who is the current drummer of #1?"
    assert first.sub_answers == ("Maroon 5", "Matt Flynn", "116")
    assert first.tags == {"hops": ("3",), "reasoning_type": ("Symbolic", "Commonsense"), "answer_type": ("number",),
                          "chain": ("masked",)}
    assert {gold.chunk for gold in first.gold} == {chunk.id for chunk in first.provided}
    assert [question.tags["hops"] for question in questions] == [("3",), ("1",), ("5",)]
