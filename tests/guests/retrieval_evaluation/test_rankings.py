"""Rankings with grades, of documents and by any cut, against hand-computed figures and against ir_measures itself; TREC
runs, read as trec_eval reads them; and what a reader of rankings is told."""
import gzip
import math
import os
import random
from dataclasses import replace
from pathlib import Path

import ir_measures
import pytest
from ir_measures import AP, RR, P, R, nDCG

from ragbed.documents import BenchmarkError, Chunk, Document, SettingsError
from ragbed.experiments import Gold, Question, Scored, check_settings, score
from ragbed.experiments.analysis.notes import note_shallow_retrievers, note_unranked
from ragbed.experiments.guests.datasets.qrels import judged_questions, read_qrels, read_topics
from ragbed.experiments.guests.retrieval_evaluation.trec_runs import (
    falling_scores,
    read_run,
    score_rankings,
    write_run,
)
from ragbed.experiments.running.gold import match
from ragbed.strategies import Passage


def scored(*held, total=0, grades=(), repeats=()):
    hits = {number: frozenset(items) for number, items in enumerate(held, start=1)}
    return Scored("searched", True, hits=hits, gold_total=total or len(grades), searched=True, grades=tuple(grades),
                  repeats=frozenset(repeats))


def figures(item, *names):
    scores = score(item, groups=("ranking",), wanted=names)
    return [scores[name] for name in names]


def test_gains_are_the_grades_and_no_power_of_two():
    # Gold of grades 1 and 3; the one of grade 1 first, the other third.
    found = scored({0}, (), {1}, grades=(1, 3))
    expected = (1 + 3 / math.log2(4)) / (3 + 1 / math.log2(3))
    assert figures(found, "ndcg@10", "recall@5", "mrr", "map") == pytest.approx([expected, 1.0, 1.0, (1 + 2 / 3) / 2])
    assert figures(scored({1}, {0}, grades=(1, 3)), "ndcg@10") == [1.0]


def test_any_cut_is_a_metric():
    found = scored((), (), {0}, (), {1}, total=4)
    assert figures(found, "recall@2", "recall@3", "recall@5", "precision@3", "precision@5", "mrr@2", "mrr@3") == \
        pytest.approx([0.0, 1 / 4, 1 / 2, 1 / 3, 2 / 5, 0.0, 1 / 3])
    assert figures(found, "ndcg@3") == pytest.approx([(1 / 2) / (1 + 1 / math.log2(3) + 1 / 2)])
    assert figures(replace(found, searched=False), "recall@2", "recall@5") == [None, None]


def test_a_chunk_with_several_items_is_one_of_the_first():
    assert figures(scored({0, 1}, (), total=2), "precision@1", "precision@2", "recall@1") == [1.0, 1 / 2, 1.0]


def test_repeated_chunks_of_a_document_take_no_rank():
    bare = scored((), {0}, {1}, total=2)
    names = ("ndcg@10", "mrr", "map", "recall@2", "precision@3")
    assert figures(scored((), (), {0}, {0}, {1}, total=2, repeats={2, 4}), *names) == figures(bare, *names)


def chunk(document, start):
    return Chunk.of(Document(document, document, "", "", "x" * 40), "plain", start, start + 10)


def test_chunks_repeat_a_document_only_where_gold_is_whole_documents():
    shown = [Passage(number, chunk(document, start)) for number, (document, start) in enumerate(
        [("a", 0), ("b", 0), ("a", 10), ("b", 20), ("a", 20)], start=1)]
    whole = match((Gold("b", relevance=2), Gold("c")), shown, str)
    assert (whole.repeats, whole.grades) == ({3, 4, 5}, (2, 1))
    assert match((Gold("b"), Gold("c")), shown, str).grades == ()
    for finer in (Gold("b", format="plain", start=0, end=4), Gold("b", page=3), Gold("b", chunk="x")):
        assert match((finer, Gold("c")), shown, str).repeats == frozenset()
    assert match((), shown, str).repeats == frozenset()


def test_a_whole_run_has_the_figures_of_ir_measures():
    rng = random.Random(0)
    documents = [f"d{number}" for number in range(300)]
    qrels, run, ours = {}, {}, {}
    for query in map(str, range(60)):
        judged = rng.sample(documents, rng.randint(1, 12))
        ranked = rng.sample(documents, 150)
        qrels[query] = {document: rng.randint(1, 4) for document in judged}
        run[query] = {document: float(-rank) for rank, document in enumerate(ranked)}
        item = scored(*({judged.index(one)} if one in judged else () for one in ranked),
                      grades=tuple(qrels[query].values()))
        ours[query] = score(item, groups=("ranking",), wanted=("recall@20", "ndcg@100", "precision@10", "mrr@7"))
    named = {R @ 5: "recall@5", R @ 10: "recall@10", R @ 100: "recall@100", P @ 5: "precision@5", nDCG @ 10: "ndcg@10",
             RR: "mrr", RR @ 10: "mrr@10", AP: "map", R @ 20: "recall@20", nDCG @ 100: "ndcg@100",
             P @ 10: "precision@10", RR @ 7: "mrr@7"}
    for one in ir_measures.iter_calc(list(named), qrels, run):
        assert ours[one.query_id][named[one.measure]] == pytest.approx(one.value, abs=1e-12), one


DATA = Path(__file__).parents[2] / "data"
COLUMNS = ("ndcg@10", "recall@100", "mrr")


def test_a_column_that_looks_deeper_than_the_search_is_told():
    assert note_shallow_retrievers({"bm25@5": 5, "dense@100": 100}, COLUMNS) == [
        "bm25@5 finds 5 chunks per question, so metrics with a larger cutoff equal those at 5; set k to at least 100."]


def test_queries_without_a_relevant_document_are_counted():
    questions = [Question("a", "?", (), True, gold=(Gold("d"),)), Question("b", "?", (), True)]
    assert note_unranked(questions)[0].startswith("1 of 2 queries have no relevant document")
    assert note_unranked(questions[:1]) == []


def test_scores_that_are_equal_in_single_precision_are_a_tie_as_in_trec_eval(run):
    assert read_run(run("1 Q0 a 1 20.00000002 x\n1 Q0 b 2 20.00000001 x\n")) == {"1": ["b", "a"]}


def test_a_run_that_only_searches_finds_as_many_as_its_columns_look_at():
    fields = {"name": "s", "benchmark": {"kind": "beir", "path": "x"}, "reasoning": "search_only",
              "retriever": ["bm25", {"kind": "dense", "k": 7}]}
    assert [one.name for one in check_settings(fields, "s.yaml").retriever] == ["bm25@100", "dense@7"]


@pytest.mark.parametrize(("name", "text", "says"), [
    ("qrels.txt", "1 0 a relevant\n2 0 c 1\n", "line 1: expected query, document and relevance"),
    ("qrels.txt", "1 0 a 1\n1 0 a 0\n", "for the query 1 the document a appears twice, as '1' and as '0'"),
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
    with pytest.raises(BenchmarkError, match="the query 1 appears twice"):
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
    rankings = {"1": {"d2": 7.25, "d3": 7.25, "d1": -0.5}, "q:2": {"d9": None}, "3": {}}
    write_run(tmp_path / name, rankings, "bm25@100 · fixed")
    assert read_run(tmp_path / name) == {"1": ["d2", "d3", "d1"], "q:2": ["d9"]}
    read = list(ir_measures.read_trec_run(str(tmp_path / name)))
    assert [one.doc_id for one in sorted(read, key=lambda one: -one.score) if one.query_id == "1"] == ["d2", "d3", "d1"]
    assert [one.score for one in read] == pytest.approx([7.25, 7.25, -0.5, 1], abs=1e-6)
    before = (tmp_path / name).read_bytes()
    write_run(tmp_path / name, rankings, "bm25@100 · fixed")
    assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize(("text", "complaint"), [
    ("1 Q0 d1 1 0.5\n", "line 1: expected query, Q0, document, rank, score and tag, found '1 Q0 d1 1 0.5'"),
    (LINES + "1 Q0 d4 1 nan x\n", "line 6: expected query"),
    ("1 Q0 d4 1 1e999 x\n", "line 1: expected query"),
    ("1 Q0 d4 1 0x1 x\n", "line 1: expected query"),
    (LINES + "1 Q0 d1 9 0 x\n", "line 6: the document d1 is ranked twice for the query 1"),
    ("\n \n", "the file is empty"),
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
        with pytest.raises(BenchmarkError, match=f"{place.name}: not a regular file"):
            read_run(place)


def test_a_ranking_is_scored_by_graded_documents():
    gold = tuple(Gold(name, relevance=grade) for name, grade in (("a", 2), ("b", 1), ("c", 3)))
    questions = [Question("1", "?", (), True, gold=gold), Question("2", "?", (), True, gold=gold)]
    rankings = {"1": ["x", "c", "a", "y"], "7": ["a"]}
    scores = score_rankings(rankings, questions, ["ndcg@2"])
    named = {nDCG @ 10: "ndcg@10", nDCG @ 2: "ndcg@2", RR: "mrr", AP: "map", R @ 5: "recall@5"}
    qrels = {one.id: {item.document: item.relevance for item in gold} for one in questions}
    listed = {"1": {name: float(-rank) for rank, name in enumerate(rankings["1"])}}
    for one in ir_measures.iter_calc(list(named), qrels, listed):
        assert scores[one.query_id].scores[named[one.measure]] == pytest.approx(one.value)
    assert scores["2"].scores["ndcg@10"] == 0.0


@pytest.mark.parametrize("gold", [Gold("a", page=2), Gold("a", format="plain", start=0, end=3)])
def test_gold_that_is_finer_than_documents_is_refused(gold):
    with pytest.raises(SettingsError, match="is part of a document, but a TREC run ranks whole documents"):
        score_rankings({}, [Question("1", "?", (), True, gold=(gold,))])


def test_equal_scores_keep_their_order_and_missing_or_rising_ones_become_ranks():
    first, second, third = falling_scores([0.5, 0.5, 0.5])
    assert (first, second, third) == (0.5, 0.5 - 2**-25, 0.5 - 2**-24)  # one step of single precision each
    assert falling_scores([0.25, 0.5]) == [2.0, 1.0]
    assert falling_scores([0.5, None]) == [2.0, 1.0]
    assert falling_scores([1e300]) == [1.0]


def test_judged_counts_grades_below_0_and_queries_without_gold_as_ir_measures_does():
    qrels = {"1": {"a": 1, "b": -1, "c": 0}, "2": {"a": 0, "b": -2}, "3": {"a": 2}}
    ranked = {"1": ["b", "x", "a", "y"], "2": ["x", "b", "a"]}
    questions = judged_questions(qrels, dict.fromkeys(qrels, "text"), Path("qrels"))
    found = score_rankings(ranked, questions, ["judged@3", "bpref"])
    assert [round(found[id].scores["judged@3"], 6) for id in qrels] == [0.666667, 0.666667, 0]
    run = [ir_measures.ScoredDoc(query, document, -place) for query, documents in ranked.items()
           for place, document in enumerate(documents)]
    by_query = {one.query_id: one.value for one in ir_measures.iter_calc([ir_measures.Judged @ 3], _qrels(qrels), run)}
    assert {id: found[id].scores["judged@3"] for id in qrels} == pytest.approx(by_query)
    assert found["1"].scores["bpref"] == 1  # `b` is not among the judged irrelevant ones, as in trec_eval
    assert found["2"].scores["bpref"] is None


def _qrels(judged):
    return [ir_measures.Qrel(query, document, grade) for query, grades in judged.items()
            for document, grade in grades.items()]
