"""Rankings with grades, of documents and by any cut, against hand-computed figures and against ir_measures itself."""
import math
import random
from dataclasses import replace

import ir_measures
import pytest
from ir_measures import AP, RR, P, R, nDCG

from documents import Chunk, Document
from experiments import Gold, Scored, score
from experiments.running.gold import match
from strategies import Passage


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
