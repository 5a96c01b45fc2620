"""The group `ranking`: where the gold stands among what was found, by ir_measures.

A ranking is of gold items, and the evidence of a question gives it, in the order in which it was found, over all of
its searches. A gold item that several chunks hold is found with the first; the others are misses where they hold no
further one, since they bring nothing new. A chunk that holds several items stands for all of them, one after
another: so a chunk with all the gold, first, scores 1 in every metric. Cuts are of chunks: the first five of
`recall@5` are five chunks, however many items they hold.
"""
from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from experiments.metrics.metric import Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring

if TYPE_CHECKING:
    from ir_measures import Evaluator, ScoredDoc

_OVER = "questions with gold whose evidence was searched for"
_DEEPEST = 1_000_000  # a recall of all that stands in a ranking
_NAMES = ("recall@5", "recall@10", "ndcg@10", "mrr", "map")


def ranking(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """0 where nothing was found, a failure included; None for evidence that was placed, and without gold labels."""
    if not item.searched or not item.gold_total:
        return dict.fromkeys(_NAMES)
    return dict(_figures(new_items(item), item.gold_total))


def new_items(item: Scored) -> tuple[int, ...]:
    """How many gold items each chunk of the evidence is the first to hold, in order, up to the last that holds any."""
    seen: set[int] = set()
    new = []
    for held in item.hits.values():
        new.append(len(seen.union(held)) - len(seen))
        seen.update(held)
    while new and not new[-1]:
        new.pop()
    return tuple(new)


@lru_cache(maxsize=16384)
def _figures(new: tuple[int, ...], total: int) -> MappingProxyType[str, float]:
    run = [*_items(new[:5], "5"), *_items(new[:10], "10"), *_items(new, "all")]
    found = {(one.query_id, str(one.measure)): float(one.value) for one in _evaluator(total).iter_calc(run)}
    deep = f"R@{_DEEPEST}"
    return MappingProxyType({
        "recall@5": found["5", deep], "recall@10": found["10", deep], "ndcg@10": found["10", "nDCG@10"],
        "mrr": found["all", "RR"], "map": found["all", "AP"]})


@lru_cache(maxsize=256)
def _evaluator(total: int) -> Evaluator:
    """Of three rankings of the same gold items. Making one costs fifty times what a ranking does."""
    import ir_measures
    from ir_measures import AP, RR, R, nDCG

    gold = [ir_measures.Qrel(query, str(item), 1) for query in ("5", "10", "all") for item in range(total)]
    return ir_measures.evaluator([R @ _DEEPEST, nDCG @ 10, RR, AP], gold)


def _items(new: tuple[int, ...], query: str) -> list[ScoredDoc]:
    """The ranking: gold items by number as they are found, a miss for each chunk that brings none."""
    import ir_measures

    found = 0
    ranked = []
    for place, held in enumerate(new):
        ranked += [str(found + at) for at in range(held)] or [f"miss {place}"]
        found += held
    return [ir_measures.ScoredDoc(query, name, -float(rank)) for rank, name in enumerate(ranked)]


RANKING = Group((
    Metric("recall", "share of the gold among the first N chunks found; N is 5 and 10", _OVER, cut=0),
    Metric("ndcg", "normalised discounted cumulative gain of the first N chunks found; N is 10", _OVER, cut=0),
    Metric("mrr", "1 over the rank of the first gold item found", _OVER),
    Metric("map", "average precision over the gold items", _OVER)), ranking)
