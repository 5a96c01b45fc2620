"""CReSt's metrics as ragbed corrects them: every expected question counts.

An outcome other than `answered` and `refused` is no answer: 0 in `unified`, `correct`, `partial` and every citation
metric. An unreadable verdict is `unjudged` and 0 likewise.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.metrics.scored import Scored, Scores

_POINTS = {"Correct": 1.0, "Partially Correct": 0.5, "Wrong": 0.0}


def unified(item: Scored) -> float | None:
    """Score by Table 2 of the paper: answerable and Correct 1, Partially 0.5, Wrong 0, refused -1; unanswerable and
    refused 1, else 0. None for an answerable question without a gold answer, and for an unanswerable one under
    rules that offer no refusal."""
    if not item.answerable:
        return float(_refused(item)) if item.may_refuse else None
    if not item.answers:
        return None
    return -1.0 if _refused(item) else _POINTS.get(item.grade or "", 0.0)


def grades(item: Scored) -> Scores:
    """Score an answerable question's grade. A refusal is Wrong; a failure or an unjudged answer is none of them."""
    if not item.answerable or not item.answers:
        return dict.fromkeys(("correct", "partial", "wrong", "unjudged"))
    refused = _refused(item)
    return {"correct": float(not refused and item.grade == "Correct"),
            "partial": float(not refused and item.grade == "Partially Correct"),
            "wrong": float(refused or item.grade == "Wrong"),
            "unjudged": float(item.outcome == "answered" and item.grade is None)}


def refusals(item: Scored) -> Scores:
    """Score `refusal_accuracy` of unanswerable questions, `refused_answerable` of the others; None under rules that
    offer no refusal."""
    refused = float(_refused(item)) if item.may_refuse else None
    return {"refusal_accuracy": None if item.answerable else refused,
            "refused_answerable": refused if item.answerable else None}


def citations(item: Scored) -> Scores:
    """Score citations: P are the cited chunks that were shown, G all gold items, shown or not; a chunk is in G if it
    holds a gold item.

    Precision |P∩G|/|P|, recall (gold items that a cited chunk holds)/|G|, 0 where nothing is cited. Recall in view
    takes the gold items that were shown, None where none was. None for a question without gold labels.
    """
    if not (item.cites and item.answerable and item.gold_total):
        return dict.fromkeys(("citation_precision", "citation_recall", "citation_recall_in_view"))
    precision, recall = cited_overlap(item)
    in_view = len(frozenset[int]().union(*item.hits.values()))
    return {"citation_precision": precision, "citation_recall": recall,
            "citation_recall_in_view": len(_found(item)) / in_view if in_view else None}


def cited_overlap(item: Scored) -> tuple[float, float]:
    """Return the share of the cited chunks that hold gold, 0 where none is cited, and that of the gold that a cited
    chunk holds.

    Only for a question with gold labels.
    """
    held = [bool(item.hits.get(number)) for number in dict.fromkeys(item.cited)]
    return sum(held) / len(held) if held else 0.0, len(_found(item)) / item.gold_total


def _found(item: Scored) -> frozenset[int]:
    return frozenset[int]().union(*(item.hits.get(number, ()) for number in item.cited))


def score(item: Scored) -> Scores:
    """Score one question by all metrics."""
    return {"unified": unified(item), **grades(item), **refusals(item), **citations(item),
            "invalid_citations": float(len(item.invalid)) if item.cites else None}


def _refused(item: Scored) -> bool:
    return item.outcome == "refused"
