"""The group `ranking`: the ranks at which gold was found, with the formulas of trec_eval.

A ranking consists of gold items, in the order in which the question's searches found the evidence. A gold item in
several chunks counts at the first of these chunks. The others are misses unless they contain another gold item. A chunk
with several items counts as several ranks, one per item. So if the first chunk has all of the gold, every metric is 1.
Cuts count chunks: `recall@5` is over five chunks, however many items they contain.

If all gold is whole documents, the ranking consists of documents, each at the rank of its best chunk, and cuts count
documents, as in TREC and BEIR.

Relevance may be graded. The gain of an item in `ndcg` is its grade and the discount 1 / log2(rank + 1), as in
trec_eval's `ndcg_cut` (Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20, 2002),
without a power of two. All other metrics treat every gold item as relevant.

The group `judgements`: `judged@k` is the share of the first k results that have a judgement, as in ir_measures: a
grade below 0 is one too, and queries without relevant documents count. `bpref` uses only documents judged 0 or above
(Buckley and Voorhees, "Retrieval evaluation with incomplete information", SIGIR 2004): with R gold items and N items
judged irrelevant, it is the mean of 1 - min(n, R) / min(N, R) over the gold items, where n of the N are ranked before
the item. A gold item that is not found counts 0.

The group `spans`: how many of the found characters are gold, and how many of the gold ones were found. Smith and
Troynikov, "Evaluating Chunking Strategies for Retrieval" (Chroma technical report, 2024), section "Metrics", and its
code, github.com/brandonstarxel/chunking_evaluation. With E the set of characters of a question's gold, and R that of
the chunks found:

    recall = |E and R| / |E|    precision = |E and R| / |R|    IoU = |E and R| / (|R| + |E| - |E and R|)

A character counts once in |E| and in |E and R|, and in |R| as often as it was found, so overlapping chunks lower
precision. The report takes the first five chunks of each question. Precision omega is the precision of a retriever that
finds exactly the chunks with gold: the upper bound for a chunker.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import log2
from types import MappingProxyType

from ragbed.experiments.metrics.metric import Extent, Metric, MetricGroup, Scored, Scores, Scoring, cut_of, family_of

_SPANS = "questions whose gold is spans of characters, and whose evidence was searched for"
_SPAN_NAMES = ("char_recall@5", "char_precision@5", "char_iou@5")

Spans = Mapping[tuple[str, str], Sequence[tuple[int, int]]]


def spans(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score the characters of the first five chunks. Scores are 0 if nothing was found or the question failed. They are
    None if the condition placed the evidence without a search, or if gold is not spans."""
    return {name: spans_at(item, name) for name in _SPAN_NAMES}


def spans_at(item: Scored, name: str) -> float | None:
    """Score a metric of `spans` with any cut, given its name."""
    if not item.searched or not item.marked:
        return None
    found = item.found[:cut_of(name)]
    gold, taken = total_length(merge_extents(item.marked)), sum(one.end - one.start for one in found)
    both = overlap_length(merge_extents(item.marked), merge_extents(found))
    of = {"char_recall": gold, "char_precision": taken, "char_iou": taken + gold - both}[family_of(name)]
    return both / of if of else 0.0


def merge_extents(extents: Iterable[Extent]) -> Spans:
    """Merge extents into ordered spans that do not touch, by document and format."""
    found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for one in sorted(extents):
        known = found[one.document, one.format]
        if known and one.start <= known[-1][1]:
            known[-1] = known[-1][0], max(known[-1][1], one.end)
        else:
            known.append((one.start, one.end))
    return found


def overlap_length(first: Spans, second: Spans) -> int:
    """Count the characters that both sets of spans cover."""
    return sum(max(0, min(end, other_end) - max(start, other_start)) for place in first.keys() & second.keys()
               for start, end in first[place] for other_start, other_end in second[place])


def total_length(spans: Spans) -> int:
    """Count the characters of merged spans."""
    return sum(end - start for parts in spans.values() for start, end in parts)


SPANS = MetricGroup((
    Metric("char_recall", "share of the gold's characters in the first N chunks found; every record has N = 5", _SPANS,
           cut=0),
    Metric("char_precision", "share of the characters of the first N chunks found that are gold; every record has N = "
                             "5", _SPANS, cut=0),
    Metric("char_iou", "gold characters found, over those that are gold or found in the first N chunks; every record "
                       "has N = 5", _SPANS, cut=0)), spans, at=spans_at)


_RANKED = "questions with gold whose evidence was searched for"
_RANKED_NAMES = ("recall@5", "recall@10", "recall@100", "precision@5", "ndcg@10", "mrr", "mrr@10", "map")

Grades = tuple[int, ...]


def ranking(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score a ranking. Scores are 0 if nothing was found or the question failed. They are None without gold, or if the
    condition placed the evidence without a search."""
    if not _applies(item):
        return dict.fromkeys(_RANKED_NAMES)
    return dict(_figures(new_items(item), _ideal(item), _RANKED_NAMES))


def ranking_at(item: Scored, name: str) -> float | None:
    """Score a metric of `ranking` with any cut, given its name."""
    return _figures(new_items(item), _ideal(item), (name,))[name] if _applies(item) else None


def _applies(item: Scored) -> bool:
    return item.searched and bool(item.gold_total)


def _ideal(item: Scored) -> Grades:
    return tuple(sorted(item.grades or (1,) * item.gold_total, reverse=True))


def new_items(item: Scored) -> tuple[Grades, ...]:
    """For each rank, return the grades of the gold items that occur there for the first time, up to the last rank with
    gold. A rank is a chunk or, if gold is whole documents, a document."""
    seen: set[int] = set()
    new: list[Grades] = []
    for number, held in item.hits.items():
        if number in item.repeats:
            continue
        grades: Grades = ()
        if held:
            grades = tuple(item.grades[one] if item.grades else 1 for one in sorted(set(held) - seen))
            seen.update(held)
        new.append(grades)
    while new and not new[-1]:
        new.pop()
    return tuple(new)


@lru_cache(maxsize=16384)
def _figures(new: tuple[Grades, ...], ideal: Grades, names: tuple[str, ...]) -> MappingProxyType[str, float]:
    return MappingProxyType({name: _figure(name, new, ideal) for name in names})


def _figure(name: str, new: Sequence[Grades], ideal: Grades) -> float:
    family, cut = family_of(name), cut_of(name)
    taken = new[:cut or None]
    if family == "precision":  # counts ranks with new gold; a rank with several items counts once
        return sum(map(bool, taken)) / cut
    gains = [grade for grades in taken for grade in grades or (0,)]  # grade of each item in order, 0 for a miss
    if family == "ndcg":
        return _ndcg(gains, ideal, cut)
    ranks = [rank for rank, gain in enumerate(gains, 1) if gain]  # ranks of gold items
    if family == "recall":
        return len(ranks) / len(ideal)
    if family == "mrr":
        return 1 / ranks[0] if ranks else 0.0
    precision = 0.0
    for found, rank in enumerate(ranks, 1):
        precision += found / rank
    return precision / len(ideal)


def _ndcg(gains: Iterable[int], ideal: Iterable[int], cut: int) -> float:
    best = _dcg(sorted(ideal, reverse=True)[:cut])
    return _dcg(list(gains)[:cut]) / best if best else 0.0


def _dcg(gains: Iterable[int]) -> float:
    total = 0.0  # added one by one, as in trec_eval: `sum` rounds differently from Python 3.12 on
    for place, gain in enumerate(gains):
        total += max(gain, 0) / log2(place + 2)
    return total


def judgements(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score how much of a ranking is judged. Scores are 0 if nothing was found, and None as for `ranking`."""
    return {name: judgements_at(item, name) for name in ("judged@10", "bpref")}


def judgements_at(item: Scored, name: str) -> float | None:
    """Score a metric of `judgements` with any cut, given its name, or `ndcg@k` over all judged items."""
    ranks = [number for number in item.hits if number not in item.repeats]
    if family_of(name) == "judged" and item.searched and (item.gold_total or item.judged):
        known = [bool(item.hits[one]) or item.names.get(one) in item.judged for one in ranks[:cut_of(name)]]
        return sum(known) / len(known) if known else 0.0
    if not _applies(item):
        return None
    ranked, grades = judged_ranking(item)
    if family_of(name) == "ndcg":
        return _ndcg([grades.get(one, 0) for one in ranked], grades.values(), cut_of(name))
    relevant = sum(grade > 0 for grade in grades.values())
    useless, total = 0, 0.0
    for one in ranked:
        if grades.get(one, 0) > 0:
            total += 1 - min(useless, relevant) / min(len(grades) - relevant, relevant) if useless else 1
        else:
            useless += one in grades
    return total / relevant


GOLD = "gold "  # prefix of the names of gold items


def judged_ranking(item: Scored) -> tuple[list[str], dict[str, int]]:
    """Return the names of the found passages or documents in order, and the grade of every judged name except those
    below 0, which trec_eval treats as unjudged. The first passage that contains a gold item is listed under the item's
    name."""
    seen: set[int] = set()
    ranked: list[str] = []
    for number in (one for one in item.hits if one not in item.repeats):
        new = sorted(set(item.hits[number]) - seen) if item.hits[number] else []
        ranked += [f"{GOLD}{one}" for one in new] or [item.names.get(number, "")]
        seen.update(new)
    gold = {f"{GOLD}{one}": item.grades[one] if item.grades else 1 for one in range(item.gold_total)}
    return list(dict.fromkeys(ranked)), {**{name: grade for name, grade in item.judged.items() if grade >= 0}, **gold}


JUDGEMENTS = MetricGroup((
    Metric("judged", "share of the first N found that were judged, relevant or not", _RANKED, cut=0),
    Metric("bpref", "how rarely a passage judged irrelevant ranks before the gold", _RANKED)), judgements,
    at=judgements_at)


RANKING = MetricGroup((
    Metric("recall", "share of the gold among the first N found; every record has N = 5, 10 and 100", _RANKED, cut=0),
    Metric("precision", "share of the first N found that contain gold; every record has N = 5", _RANKED, cut=0),
    Metric("ndcg", "normalised discounted cumulative gain of the first N found, by grade; every record has N = 10",
           _RANKED, cut=0),
    Metric("mrr", "reciprocal rank of the first gold item, among all hits or the first N", _RANKED,
           cut=0, uncut=True),
    Metric("map", "average precision over the gold items", _RANKED)), ranking, at=ranking_at)
