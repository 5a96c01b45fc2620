"""What a reader of rankings is told: cuts beyond what was searched, queries without gold, chunks of documents."""
from pathlib import Path

import pytest

from documents import BenchmarkError
from experiments import Gold, Question, check_settings
from experiments.analysis.notes import on_cuts, on_unranked
from experiments.analysis.trec import read_run
from experiments.benchmarks.qrels import read_qrels, read_topics

DATA = Path(__file__).parent / "data"
COLUMNS = ("ndcg@10", "recall@100", "mrr")


def test_a_column_that_looks_deeper_than_the_search_is_told():
    assert on_cuts({"bm25@5": 5, "dense@100": 100}, COLUMNS) == [
        "bm25@5 finds 5 for a question, so its figures for more than 5 are those for 5; set k to 100 or more."]


def test_queries_without_a_relevant_document_are_counted():
    questions = [Question("a", "?", (), True, gold=(Gold("d"),)), Question("b", "?", (), True)]
    assert on_unranked(questions)[0].startswith("1 of 2 queries have no relevant document")
    assert on_unranked(questions[:1]) == []


def test_scores_that_are_equal_in_single_precision_are_a_tie_as_in_trec_eval(tmp_path):
    file = tmp_path / "run"
    file.write_text("1 Q0 a 1 20.00000002 x\n1 Q0 b 2 20.00000001 x\n")
    assert read_run(file) == {"1": ["b", "a"]}


def test_a_run_that_only_searches_finds_as_many_as_its_columns_look_at():
    fields = {"name": "s", "benchmark": {"kind": "beir", "path": "x"}, "reasoning": "search_only",
              "retriever": ["bm25", {"kind": "dense", "k": 7}]}
    assert [one.name for one in check_settings(fields, "s.yaml").retriever] == ["bm25@100", "dense@7"]


@pytest.mark.parametrize(("name", "text", "says"), [
    ("qrels.txt", "1 0 a relevant\n2 0 c 1\n", "line 1: expected query, document and relevance"),
    ("qrels.txt", "1 0 a 1\n1 0 a 0\n", "for the query 1 the document a stands there twice, as '1' and as '0'"),
    ("qrels.jsonl", '{"query-id": "1", "corpus-id": "a", "score": 0.9}\n', "score"),
])
def test_judgements_that_are_none_or_contradict_are_one_line(tmp_path, name, text, says):
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(BenchmarkError, match=says):
        read_qrels(file)


def test_a_header_of_known_names_is_passed_over_and_a_judgement_may_be_repeated(tmp_path):
    file = tmp_path / "qrels.tsv"
    file.write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n1\ta\t1\n")
    assert read_qrels(file) == {"1": {"a": 1}}


def test_two_texts_of_one_query_are_one_line(tmp_path):
    file = tmp_path / "topics.tsv"
    file.write_text("1\tReefs?\n1\tBells?\n")
    with pytest.raises(BenchmarkError, match="the query 1 stands there twice"):
        read_topics([file])


def test_a_run_that_never_searched_says_nothing_of_rankings(serve, town, ragbed):
    mrke = {"kind": "mrke", "path": str(DATA / "mrke" / "mrke.jsonl")}  # whose questions name no gold
    summary = ragbed.json("run", town.config(serve(town.reply).url, benchmark=mrke, conditions="closed-book"))
    assert summary["cells"][0]["metrics"]["em"]["n"] == summary["cells"][0]["n"] > 0
    assert [note for note in summary["notes"] if "relevant document" in note] == []


def test_queries_that_qrels_leave_without_a_relevant_document_are_told(ragbed, tmp_path):
    (tmp_path / "qrels.tsv").write_text("1\ta\t1\n2\tb\t1\n3\tc\t0\n")
    (tmp_path / "mine.run").write_text("1 Q0 a 1 2.0 x\n2 Q0 c 1 2.0 x\n3 Q0 c 1 2.0 x\n")
    status, out, err = ragbed("evaluate-retrieval", "--qrels", tmp_path / "qrels.tsv", "--run", tmp_path / "mine.run")
    assert (status, "1 of 3 queries have no relevant document" in out + err) == (0, True)
