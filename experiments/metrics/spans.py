"""The group `spans`: how many of the characters that were found are gold, and how many of the gold were found.

Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval" (Chroma technical report, 2024), section "Metrics",
and the code that comes with it, github.com/brandonstarxel/chunking_evaluation, which counts characters. With E the
characters of a question's gold and R those of the chunks that were found:

    recall = |E and R| / |E|    precision = |E and R| / |R|    IoU = |E and R| / (|R| + |E| - |E and R|)

A character counts once in |E| and in |E and R|, however many chunks hold it. In |R| it counts as often as it was found:
a chunk that overlaps another costs what it repeats. The report takes the first five chunks of each question.

Precision omega is the precision of a retriever that finds exactly the chunks that hold gold: the most that a chunker
leaves to be had.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from experiments.metrics.metric import Group, Metric, cut_of, family_of
from experiments.metrics.scored import Extent, Scored, Scores, Scoring

_OVER = "questions whose gold is spans of characters, and whose evidence was searched for"
_NAMES = ("char_recall@5", "char_precision@5", "char_iou@5")

Spans = Mapping[tuple[str, str], Sequence[tuple[int, int]]]


def spans(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """0 where nothing was found, a failure included; None for evidence that was placed, and for gold of another kind.
    """
    return {name: spans_at(item, name) for name in _NAMES}


def spans_at(item: Scored, name: str) -> float | None:
    """As `spans`, by a name with any cut."""
    if not item.searched or not item.marked:
        return None
    found = item.found[:cut_of(name)]
    gold, taken = _size(united(item.marked)), sum(one.end - one.start for one in found)
    both = shared(united(item.marked), united(found))
    of = {"char_recall": gold, "char_precision": taken, "char_iou": taken + gold - both}[family_of(name)]
    return both / of if of else 0.0


def precision_omega(chunks: Iterable[Extent], gold: Sequence[Extent]) -> float:
    """The gold's share of the characters of all chunks that hold any of it, each character once; gold that no chunk
    holds counts among them, as in the report's code. 0 where no chunk holds any."""
    wanted = united(gold)
    holding = united(one for one in chunks if shared(wanted, united([one])))
    both = shared(wanted, holding)
    return both / (_size(holding) + _size(wanted) - both) if both else 0.0


def united(extents: Iterable[Extent]) -> Spans:
    """The characters of all, each once: for each document and format spans in order that do not touch."""
    found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for one in sorted(extents):
        known = found[one.document, one.format]
        if known and one.start <= known[-1][1]:
            known[-1] = known[-1][0], max(known[-1][1], one.end)
        else:
            known.append((one.start, one.end))
    return found


def shared(first: Spans, second: Spans) -> int:
    """How many characters both have."""
    return sum(max(0, min(end, other_end) - max(start, other_start)) for place in first.keys() & second.keys()
               for start, end in first[place] for other_start, other_end in second[place])


def _size(spans: Spans) -> int:
    return sum(end - start for parts in spans.values() for start, end in parts)


SPANS = Group((
    Metric("char_recall", "share of the gold's characters in the first N chunks found; in every record for 5", _OVER,
           cut=0),
    Metric("char_precision", "share of the characters of the first N chunks found that are gold; in every record for "
                             "5", _OVER, cut=0),
    Metric("char_iou", "gold characters found, over those that are gold or found in the first N chunks; in every "
                       "record for 5", _OVER, cut=0)), spans, at=spans_at)
