"""The group `points`: a judge's grade from 0 to 10 (MDBench).

As published, accuracy is the grade over 10, "EM" is a grade above 8, and a grade that is not an integer breaks the
scoring of the whole set. Ours goes on: as published such an answer has no graded figure and leaves the means, since
the published code never gave it one; corrected it counts 0. Both count it in `unjudged`. The published code knows no
refusal: as published whatever is not empty has the judge's grade.
"""
from __future__ import annotations

from experiments.metrics.metric import ANSWERABLE, UNJUDGED, Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring

_MOST = 10
_EM_ABOVE = 8
_NAMES = ("graded_accuracy", "graded_em", "unjudged")


def points(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Over answerable questions with a gold answer; a failure, and corrected a refusal, is 0 without a judge."""
    if not item.answerable or not item.answers:
        return dict.fromkeys(_NAMES)
    if not (item.text if scoring == "as-published" else item.outcome == "answered"):
        return dict.fromkeys(_NAMES, 0.0)
    if item.points is None:
        lost = None if scoring == "as-published" else 0.0
        return {"graded_accuracy": lost, "graded_em": lost, "unjudged": 1.0}
    return {"graded_accuracy": item.points / _MOST, "graded_em": float(item.points > _EM_ABOVE), "unjudged": 0.0}


POINTS = Group((
    Metric("graded_accuracy", "the judge's grade from 0 to 10, over 10", ANSWERABLE, judged=True),
    Metric("graded_em", "share graded above 8", ANSWERABLE, share=True, judged=True),
    UNJUDGED), points)
