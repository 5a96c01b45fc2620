"""Variance components of scores by strategy, wording and question, and what it takes to tell strategies apart whatever
the wording.

A score is its strategy's mean, moved by how the instruction is worded, by how hard the question is, by how that suits
the strategy, and by what is left: how it suits the wording, and chance. Wordings are a sample of all that a strategy
could have, questions of all that could be asked; a strategy's mean is over both (Clark, "The language-as-fixed-effect
fallacy", Journal of Verbal Learning and Verbal Behavior 12, 1973). Estimates are those of the analysis of variance,
which are REML's where none is negative: statsmodels' MixedLM gives the same in minutes, and no intervals.
"""
from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ragbed.experiments.metrics.intervals import TAIL, freedom_of, student
from ragbed.experiments.statistics.testing import DEVIATION, POWER

if TYPE_CHECKING:
    from ragbed.experiments.metrics.metric import Floats

PLANNED = ("wording", "strategy x question", "rest")  # the components that a difference of strategies has
# Their variances before anything is measured: the last two make `DEVIATION` of two cells in one wording each.
ASSUMED = (0.03**2, DEVIATION**2 / 4, DEVIATION**2 / 4)
_MOST = 100_000  # questions of a study


class Component(NamedTuple):
    """A variance with its 95 % interval, and what it is below with a confidence of `POWER`, for plans."""

    variance: float
    low: float
    high: float
    likely: float


def components(scores: Floats) -> dict[str, Component]:
    """Estimate the variances of `wording`, `question`, `strategy x question` (of several strategies) and `rest`.

    That of wordings has the interval of Tukey and Williams (Biometrika 49, 1962), with degrees of freedom by how
    heavy-tailed the wordings' means are (Shoemaker, The American Statistician 57, 2003). The others are means over
    questions, with Student's interval, wider above where these are skewed (Johnson, JASA 73, 1978).

    Args:
        scores: strategies by wordings by questions; at least two wordings and two questions.
    """
    from scipy.special import chdtri, fdtri

    strategies, wordings, n = scores.shape
    square, noise, freedom = _of_wordings(scores)
    known = strategies * (wordings - 1) * (n - 1)

    def end(p: float) -> float:
        return max(float((square - noise * fdtri(freedom, known, p)) * freedom / chdtri(freedom, 1 - p)), 0.0)

    rest, by_strategy, own = _parts(scores)
    found = {"wording": Component(max(square - noise, 0.0), end(1 - TAIL), end(TAIL), end(1 - POWER)),
             "question": _mean((own - (by_strategy if strategies > 1 else rest)) / (strategies * wordings))}
    if strategies > 1:
        found["strategy x question"] = _mean((by_strategy - rest) / wordings)
    return {**found, "rest": _mean(rest)}


def difference(scores: Floats, first: int, second: int) -> dict[str, float]:
    """Compute the second strategy's mean less the first's over all wordings and questions, with its 95 % interval by
    Welch and Satterthwaite, as `difference`, `low` and `high`; scores are as those of `components`."""
    _, wordings, n = scores.shape
    square, noise, freedom = _of_wordings(scores)
    change = scores[second].mean(axis=0) - scores[first].mean(axis=0)
    questions = max(float(change.var(ddof=1)) / n - 2 * noise / wordings, 0.0)
    value, half = float(change.mean()), _half((2 * square / wordings, freedom), (questions, n - 1))
    return {"difference": value, "low": value - half, "high": value + half}


def half_width(variances: Sequence[float], strategies: int, wordings: int, questions: int) -> float:
    """Compute what half the interval of `difference` stays below with a probability of `POWER`, of a study of so many
    strategies, wordings and questions, from the variances of the components `PLANNED`."""
    from scipy.special import chdtri

    wording, by_strategy, rest = variances
    parts = ((2 * (wording + rest / questions) / wordings, strategies * (wordings - 1)),
             (2 * by_strategy / questions, questions - 1))
    freedom = freedom_of(*parts)
    return _half(*parts) * math.sqrt(float(chdtri(freedom, 1 - POWER)) / freedom)


def questions_for(precision: float, variances: Sequence[float], strategies: int, wordings: int) -> int | None:
    """Return the least number of questions whose `half_width` is at most the precision; None where none is."""
    def reaches(questions: int) -> bool:
        return half_width(variances, strategies, wordings, questions) <= precision

    found = bisect_left(range(_MOST + 1), True, lo=2, key=reaches)
    return found if found <= _MOST else None


def _of_wordings(scores: Floats) -> tuple[float, float, float]:
    """The variance of the means of a strategy's wordings, the part of it that questions make, and its degrees of
    freedom."""
    strategies, wordings, n = scores.shape
    means = scores.mean(axis=2)
    apart, count, freedom = means - means.mean(axis=1, keepdims=True), means.size, strategies * (wordings - 1)
    second = float((apart**2).mean())
    tails = 0.0
    if count > 3 and second:
        raw = float((apart**4).mean()) / second**2 - 3
        tails = max((count - 1) / ((count - 2) * (count - 3)) * ((count + 1) * raw + 6), 0.0)  # Fisher's G2
    noise = float(_parts(scores)[0].mean()) / n
    return second * count / freedom, noise, freedom / (1 + freedom * tails / (2 * count))


def _parts(scores: Floats) -> tuple[Floats, Floats, Floats]:
    """What each question adds to the mean squares: of the rest, of strategy by question, of question."""
    strategies, wordings, n = scores.shape
    apart = scores - scores.mean(axis=2, keepdims=True)
    each = apart.mean(axis=1)
    every, few = each.mean(axis=0), n / (n - 1)
    rest = ((apart - each[:, None]) ** 2).sum(axis=(0, 1)) / (strategies * (wordings - 1))
    by_strategy = wordings * ((each - every) ** 2).sum(axis=0) / max(strategies - 1, 1)
    return few * rest, few * by_strategy, few * strategies * wordings * every**2


def _mean(values: Floats) -> Component:
    from scipy.special import stdtrit

    n, mean, spread = len(values), float(values.mean()), float(values.std(ddof=1))
    skewed = float(((values - mean) ** 3).mean()) / spread**3 / (6 * math.sqrt(n)) if spread else 0.0

    def above(t: float) -> float:
        return max(mean + spread / math.sqrt(n) * (t + max(skewed, 0.0) * (1 + 2 * t**2)), 0.0)

    low = mean - spread / math.sqrt(n) * student(n - 1)
    return Component(max(mean, 0.0), max(low, 0.0), above(student(n - 1)), above(float(stdtrit(n - 1, POWER))))


def _half(*parts: tuple[float, float]) -> float:
    return student(freedom_of(*parts)) * math.sqrt(math.fsum(variance for variance, _ in parts))
