"""The area under a curve of doses, question by question: one number for how well a way of answering holds."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from experiments.comparing.variants import Averaged
from experiments.dose.curves import Curve
from experiments.metrics.sample import Row


def area(doses: Sequence[float], scores: Sequence[float]) -> float:
    """The area under straight lines between the points, over the range of doses: the mean height of the curve.

    With doses d_1 < ... < d_m and scores s_i it is sum((s_i + s_(i+1)) / 2 * (d_(i+1) - d_i)) / (d_m - d_1), the
    trapezoidal rule; 1 for a score of 1 at every dose, whatever the doses are.
    """
    parts = ((first + second) / 2 * (to - at)
             for (at, to), (first, second) in zip(pairwise(doses), pairwise(scores), strict=True))
    return sum(parts) / (doses[-1] - doses[0])


def areas(curve: Curve, metrics: Sequence[str]) -> Mapping[str, Row]:
    """By question, the area under its own scores by each metric; None by one that it has not at every dose.

    A question that a cell lacks, or in which it is answerable in one cell and not in another, has no area.
    """
    found: dict[str, Row] = {}
    first = curve.cells[0].answers
    for question, row in first.items():
        own = [cell.answers[question] for cell in curve.cells if question in cell.answers]
        whole = len(own) == len(curve.cells) and len({one.answerable for one in own}) == 1
        scores = {metric: _area(curve, own, metric) if whole else None for metric in metrics}
        found[question] = Averaged(row.answerable, row.outcome, scores)
    return found


def _area(curve: Curve, rows: Sequence[Row], metric: str) -> float | None:
    scores = [row.scores.get(metric) for row in rows]
    known = [score for score in scores if score is not None]
    return area(curve.doses, known) if len(known) == len(scores) else None
