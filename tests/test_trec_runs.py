"""TREC runs: read as trec_eval reads them, written so that it can, refused in one line, scored as ir_measures does."""
import gzip
import os

import ir_measures
import pytest
from ir_measures import AP, RR, R, nDCG

from documents import BenchmarkError, SettingsError
from experiments import Gold, Question
from experiments.analysis.trec import read_run, scores_of, write_run

LINES = "1 Q0 d1 1 0.5 x\n1 Q0 d2 2 1.5e0 x\n\n2\tQ0\td9\t1\t-3\tx\r\n1 Q0 d3 1 0.5 x\n"


@pytest.fixture
def run(tmp_path):
    def write(text, name="a.run"):
        content = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return tmp_path / name
    return write


@pytest.mark.parametrize("name", ["a.run", "a.run.gz"])
def test_documents_stand_by_score_and_equal_ones_as_trec_eval_has_them(run, name):
    assert read_run(run(LINES, name)) == {"1": ["d2", "d3", "d1"], "2": ["d9"]}


@pytest.mark.parametrize("name", ["a.run", "b/a.run.gz"])
def test_what_is_written_is_read_again_and_by_ir_measures(tmp_path, name):
    rankings = {"1": ["d2", "d3", "d1"], "q:2": ["d9"], "3": []}
    write_run(tmp_path / name, rankings, "bm25@100 · fixed")
    assert read_run(tmp_path / name) == {"1": ["d2", "d3", "d1"], "q:2": ["d9"]}
    read = list(ir_measures.read_trec_run(str(tmp_path / name)))
    assert [one.doc_id for one in sorted(read, key=lambda one: -one.score) if one.query_id == "1"] == rankings["1"]
    before = (tmp_path / name).read_bytes()
    write_run(tmp_path / name, rankings, "bm25@100 · fixed")
    assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize(("text", "complaint"), [
    ("1 Q0 d1 1 0.5\n", "line 1: expected query, Q0, document, rank, score and tag, found '1 Q0 d1 1 0.5'"),
    (LINES + "1 Q0 d4 1 nan x\n", "line 6: expected query"),
    ("1 Q0 d4 1 1e999 x\n", "line 1: expected query"),
    ("1 Q0 d4 1 0x1 x\n", "line 1: expected query"),
    (LINES + "1 Q0 d1 9 0 x\n", "line 6: the document d1 is ranked twice for the query 1"),
    ("\n \n", "no line in it"),
    (b"1 Q0 \xff 1 1 x\n", "cannot be read as text in UTF-8"),
    ("1 Q0 " + "d" * 70_000, "line 1: longer than 65,536 characters"),
])
def test_a_line_that_does_not_fit_is_refused_in_one(run, text, complaint):
    with pytest.raises(BenchmarkError) as refused:
        read_run(run(text))
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_cut_or_no_gzip_or_not_there_is_refused(run, tmp_path):
    whole = gzip.compress("".join(f"1 Q0 d{at} {at} {-at} x\n" for at in range(999)).encode())
    (tmp_path / "cut.gz").write_bytes(whole[:-12])
    (tmp_path / "none.gz").write_bytes(LINES.encode())
    for name in ("cut.gz", "none.gz", "missing.run"):
        with pytest.raises(BenchmarkError, match=f"{name}: cannot be read: "):
            read_run(tmp_path / name)


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(BenchmarkError, match=f"{place.name}: is no regular file"):
            read_run(place)


def test_a_ranking_is_scored_by_graded_documents():
    gold = tuple(Gold(name, relevance=grade) for name, grade in (("a", 2), ("b", 1), ("c", 3)))
    questions = [Question("1", "?", (), True, gold=gold), Question("2", "?", (), True, gold=gold)]
    rankings = {"1": ["x", "c", "a", "y"], "7": ["a"]}
    scores = scores_of(rankings, questions, ["ndcg@2"])
    named = {nDCG @ 10: "ndcg@10", nDCG @ 2: "ndcg@2", RR: "mrr", AP: "map", R @ 5: "recall@5"}
    qrels = {one.id: {item.document: item.relevance for item in gold} for one in questions}
    listed = {"1": {name: float(-rank) for rank, name in enumerate(rankings["1"])}}
    for one in ir_measures.iter_calc(list(named), qrels, listed):
        assert scores[one.query_id].scores[named[one.measure]] == pytest.approx(one.value)
    assert scores["2"].scores["ndcg@10"] == 0.0


@pytest.mark.parametrize("gold", [Gold("a", page=2), Gold("a", format="plain", start=0, end=3)])
def test_gold_that_is_finer_than_documents_is_refused(gold):
    with pytest.raises(SettingsError, match="is finer than documents, and a TREC run ranks documents"):
        scores_of({}, [Question("1", "?", (), True, gold=(gold,))])
