"""The area under a curve of doses, question by question: one number for how well a way of answering holds."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Areas:
    """Attributes:
        of: by question, the area under its own scores by each metric; None by one that it has not at every dose.
        left_out: by metric, the questions that have it at some dose and no area.
    """

    of: Mapping[str, Row]
    left_out: Mapping[str, int]


def areas(curve: Curve) -> Areas:
    """The areas of all questions that any cell of the curve has.

    A question that a cell lacks, or which is answerable in one cell and not in another, has none. Areas are weighted
    means of scores, with one set of weights, so that they have the range of the metric, and figures of a set are made
    of them as of scores: citation F1 is the harmonic mean of the averaged areas by precision and by recall.
    """
    found: dict[str, Row] = {}
    left_out: Counter[str] = Counter()
    for question in dict.fromkeys(question for cell in curve.cells for question in cell.answers):
        own = [cell.answers[question] for cell in curve.cells if question in cell.answers]
        whole = len(own) == len(curve.cells) and len({one.answerable for one in own}) == 1
        names = dict.fromkeys(name for one in own for name, score in one.scores.items() if score is not None)
        scores = {name: _area(curve, own, name) if whole else None for name in names}
        left_out.update(name for name, score in scores.items() if score is None)
        found[question] = Averaged(own[0].answerable, own[0].outcome, scores)
    return Areas(found, left_out)


def _area(curve: Curve, rows: Sequence[Row], metric: str) -> float | None:
    scores = [row.scores.get(metric) for row in rows]
    known = [score for score in scores if score is not None]
    return area(curve.doses, known) if len(known) == len(scores) else None
