"""What a reader of rankings is told: cuts beyond what was searched, queries without gold, chunks of documents."""
from __future__ import annotations

from documents.types import Chunk
from experiments.evidence.gold import match
from experiments.question import Gold, Question
from experiments.ranking_notes import on_cuts, on_unranked
from experiments.settings.file import check_settings
from experiments.trec.files import read_run
from strategies.types import Passage

COLUMNS = ("ndcg@10", "recall@100", "mrr")


def test_a_column_that_looks_deeper_than_the_search_is_told():
    assert on_cuts({"bm25@5": 5, "dense@100": 100}, COLUMNS) == [
        "bm25@5 finds 5 for a question, so its figures for more than 5 are those for 5; set k to 100 or more."]


def test_queries_without_a_relevant_document_are_counted():
    questions = [Question("a", "?", (), True, gold=(Gold("d"),)), Question("b", "?", (), True)]
    assert on_unranked(questions)[0].startswith("1 of 2 queries have no relevant document")
    assert on_unranked(questions[:1]) == []


def test_a_document_that_is_the_query_takes_no_rank():
    evidence = [Passage(at, Chunk(name, name, "plain", 0, 1, name)) for at, name in enumerate(("q", "d"), start=1)]
    assert match((Gold("d"),), evidence, lambda id: id, "q").repeats == {1}
    assert match((Gold("d"),), evidence, lambda id: id).repeats == set()


def test_scores_that_are_equal_in_single_precision_are_a_tie_as_in_trec_eval(tmp_path):
    file = tmp_path / "run"
    file.write_text("1 Q0 a 1 20.00000002 x\n1 Q0 b 2 20.00000001 x\n")
    assert read_run(file) == {"1": ["b", "a"]}


def test_a_run_that_only_searches_finds_as_many_as_its_columns_look_at():
    fields = {"name": "s", "benchmark": {"kind": "beir", "path": "x"}, "reasoning": "search_only",
              "retriever": ["bm25", {"kind": "dense", "k": 7}]}
    assert [one.name for one in check_settings(fields, "s.yaml").retriever] == ["bm25@100", "dense@7"]
