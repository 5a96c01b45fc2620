"""Agreement between two raters of the same answers: judges, repeats of one, or people.

Cohen's kappa (1960), with quadratic weights (1968) for points, is scikit-learn's. Of steps each is one judgement, held
or not, as the DetectiveQA paper compares its judge with people (Table 4).
"""
from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from experiments.analysis.view import Value, View
from experiments.judges.base import GRADES
from experiments.judges.model import MOST_POINTS
from experiments.metrics import Estimate, share_among
from experiments.metrics.intervals import percentiles
from experiments.metrics.sample import Totals, resampled
from experiments.question import Rubric
from experiments.record import Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

JudgedAnswer = tuple[str, str]  # cell and question
Pairs = Sequence[tuple[int, int]]  # places of the two raters' labels, one for each judgement
_NONE = Estimate(mean=None, low=None, high=None, n=0)
LABELS: Mapping[Rubric, tuple[str, ...]] = MappingProxyType({
    "grades": GRADES, "points": tuple(map(str, range(MOST_POINTS + 1))), "steps": ("held", "not held")})


@dataclass(frozen=True, slots=True)
class Rater:
    """Who graded, and what they said of each answer. A verdict may be unjudged."""

    name: str
    verdicts: Mapping[JudgedAnswer, Verdict]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two raters agree.

    Attributes:
        n: answers that both judged.
        judgements: what is compared: the answers, or their steps.
        agree: share of judgements that are equal; None without any. `agree_low` and `agree_high`, its 95 % interval:
            Wilson's, by question where one has several.
        kappa: Cohen's; None where it is not defined: without judgements, or where all are of one label.
        low, high: 95 % interval of the kappa: percentiles over resamples of questions, with all answers to each. None
            for one question, and where all resamples agree.
        labels: of the rows and columns of `table`.
        table: judgements by the first rater's label (rows) and the second's (columns).
    """

    first: str
    second: str
    n: int
    judgements: int
    agree: float | None
    agree_low: float | None
    agree_high: float | None
    kappa: float | None
    low: float | None
    high: float | None
    labels: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]


def agreements(raters: Sequence[Rater], rubric: Rubric, steps: Mapping[JudgedAnswer, int],
               seed: int = 0) -> list[Agreement]:
    """Return the agreement of every two of the raters, in order.

    Args:
        steps: number of reference steps of each answer, for the rubric `steps`.
    """
    return [_agreement(first, second, rubric, steps, seed) for first, second in itertools.combinations(raters, 2)]


def kappa(pairs: Pairs, count: int, quadratic: bool) -> float | None:
    """Cohen's kappa; None where it is not defined: without pairs, or where all labels are one.

    Args:
        count: of the labels that there are, whether they occur or not: quadratic weights go by their distance.
    """
    if len({label for pair in pairs for label in pair}) < 2:
        return None
    from sklearn.metrics import cohen_kappa_score

    first, second = zip(*pairs, strict=True)
    return round(float(cohen_kappa_score(first, second, labels=list(range(count)),
                                         weights="quadratic" if quadratic else None)), 10)


def _agreement(first: Rater, second: Rater, rubric: Rubric, steps: Mapping[JudgedAnswer, int], seed: int) -> Agreement:
    labels, quadratic = LABELS[rubric], rubric == "points"
    n, by_question = 0, dict[str, list[tuple[int, int]]]()
    for item, verdict in first.verdicts.items():
        other = second.verdicts.get(item)
        if other is not None and not (verdict.unjudged or other.unjudged):
            n += 1
            sides = (_places(one, steps.get(item, 0)) for one in (verdict, other))
            by_question.setdefault(item[1], []).extend(zip(*sides, strict=True))
    pairs = [pair for judged in by_question.values() for pair in judged]
    counts = Counter(pairs)
    equal = share_among([one == other for one, other in pairs],
                        [question for question, judged in by_question.items() for _ in judged]) if pairs else _NONE
    low, high = _interval(list(by_question.values()), len(labels), quadratic, seed)
    return Agreement(
        first.name, second.name, n, len(pairs),
        equal["mean"], equal["low"], equal["high"],
        kappa(pairs, len(labels), quadratic), low, high, labels,
        tuple(tuple(counts[row, column] for column in range(len(labels))) for row in range(len(labels))))


def _places(verdict: Verdict, steps: int) -> list[int]:
    if verdict.grade is not None:
        return [GRADES.index(verdict.grade)]
    if verdict.points is not None:
        return [verdict.points]
    return [int(step not in (verdict.steps or ())) for step in range(steps)]


def _interval(questions: Sequence[Pairs], count: int, quadratic: bool,
              seed: int) -> tuple[float | None, float | None]:
    """The bootstrap's interval of the kappa, over the resamples in which it is defined."""
    if len(questions) < 2:
        return None, None
    import numpy as np

    tables = np.zeros((len(questions), 2, count, count))
    for question, pairs in enumerate(questions):
        for pair in pairs:
            tables[(question, 0, *pair)] += 1
    drawn, = resampled([Totals(tables, np.ones_like(tables))], seed)
    low, high = percentiles(kappas(drawn.sums[:, 0], quadratic))
    if low is None or high is None or low >= high:
        return None, None
    return round(low, 10), round(high, 10)


def kappas(tables: Floats, quadratic: bool) -> Floats:
    """Return the kappa of each table of counts (tables by labels by labels), as `kappa` has it of one; nan where
    undefined.

    A thousand resamples at once take milliseconds; one by one they would take a second.
    """
    import numpy as np

    count = tables.shape[1]
    distance = np.abs(np.subtract.outer(np.arange(count), np.arange(count))).astype(np.float64)
    weights = distance**2 if quadratic else np.minimum(distance, 1.0)
    expected = tables.sum(axis=2)[:, :, None] * tables.sum(axis=1)[:, None, :]
    chance = (weights * expected).sum(axis=(1, 2))
    seen = (weights * tables).sum(axis=(1, 2)) * tables.sum(axis=(1, 2))
    ratio: Floats = np.divide(seen, chance, out=np.full_like(seen, np.nan), where=chance > 0)
    return 1 - ratio


def agreement_view(found: Sequence[Agreement], rubric: Rubric, answers: int) -> View:
    """Return how far every two raters agree.

    Args:
        answers: how many there are to judge.
    """
    steps = rubric == "steps"
    kappa_of = "kappa, quadratic weights" if rubric == "points" else "kappa"
    rows = tuple((one.first, one.second, one.n, *([one.judgements] if steps else []),
                  _figure(one.agree, one.agree_low, one.agree_high, one.n),
                  _figure(one.kappa, one.low, one.high, one.n)) for one in found)
    notes = ("A kappa is undefined where two raters gave one and the same label throughout, or judged no answer both.",
             ) if any(one.kappa is None for one in found) else ()
    return View("agreement", f"Agreement on {answers} answers", (
        "first", "second", "n", *(["steps"] if steps else []), "agree", kappa_of), rows, 2, notes=notes)


def _figure(mean: float | None, low: float | None, high: float | None, n: int) -> Value:
    return None if mean is None else {"mean": mean, "low": low, "high": high, "n": n}
