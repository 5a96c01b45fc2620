"""Intervals that need no draws: of shares, and of what a sample without spread leaves open."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from experiments.metrics.means import Floats

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
Z = 1.959963984540054  # of the normal distribution, at that level
_EQUAL = 1e-12


class Interval(NamedTuple):
    """A 95 % interval; None where there is none."""

    low: float | None
    high: float | None


NO_INTERVAL = Interval(None, None)


def wilson(share: float, n: float) -> Interval:
    """Wilson's score interval (1927): the shares that a test at this level would not reject.

    Args:
        n: questions, or as many independent ones as they are worth.
    """
    scale = 1 + Z**2 / n
    middle = (share + Z**2 / (2 * n)) / scale
    half = Z / scale * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return Interval(max(middle - half, 0.0), min(middle + half, 1.0))


def effective(sums: Floats, counts: Floats) -> float:
    """How many independent questions those of the clusters are worth for the interval of a share.

    It is the number for which the variance of independent questions is that between the clusters (Kish's design
    effect, "Survey Sampling", 1965), less what so few clusters leave unknown of that variance: Student's quantile
    takes the place of the normal one, as Korn and Graubard do it (Survey Methodology 24, 1998), of as many clusters
    as they weigh. In Wilson's interval
    it covers well, for rare shares too (Dean and Pagano, Journal of Survey Statistics and Methodology 3, 2015). Where
    all answers are equal it is the number of clusters, as they weigh.

    Args:
        sums: right answers of each cluster; `counts`, its questions, one at least.
    """
    n, clusters, weighs = float(counts.sum()), len(counts), weight(counts)
    share = float(sums.sum()) / n
    if clusters < 2 or not 0 < share < 1:
        return weighs
    between = clusters / (clusters - 1) * float(((sums - share * counts) ** 2).sum()) / n**2
    worth = share * (1 - share) / between if between else n
    return max(min(worth * (Z / student(weighs - 1)) ** 2, n), 1.0)


def weight(counts: Floats) -> float:
    """How many clusters of one size these weigh as: Kish's effective number, n^2 / (sum of the squared sizes)."""
    return float(counts.sum() ** 2 / (counts**2).sum())


@lru_cache(maxsize=1024)
def student(freedom: float) -> float:
    """The quantile of Student's distribution that a 95 % interval reaches to."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - TAIL))


def unseen(n: float) -> float:
    """The largest share of what was drawn from that n draws may all have missed: 1 - 0.025^(1/n).

    It is Clopper and Pearson's upper limit (1934) at none of n, which "the rule of three" approximates one-sided
    (Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249, 1983).
    """
    return float(-math.expm1(math.log(TAIL) / n))


def room(sums: Floats, counts: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """How far below and above its mean the truth may be, for what a sample with little spread has not seen.

    Where all n values are c, at most the share `unseen` of the others has other values, which are at least `low` and
    at most `high`: the mean is within [c - unseen (c - low), c + unseen (high - c)]. Of numbers without an upper
    bound it is Garwood's exact interval of a Poisson rate (1936), of their differences the wider half of it. n is the
    number of units, as they weigh.

    Where the values differ, that room counts by (1 - s / S)^(n - 1): s is their standard deviation, S the largest that
    values of this mean can have in the range (Bhatia and Davis, American Mathematical Monthly 107, 2000), 1 without a
    range. So the interval does not jump where values that were equal begin to differ, and many units, or values of 0
    and 1, have what the bootstrap says alone.

    Args:
        sums: units by splits by names; `counts` likewise.
        low, high: bounds of one question's value, splits by names: infinite where it has none, nan where that is not
            known.

    Returns:
        two arrays of splits by names.
    """
    import numpy as np

    down, up = np.zeros(sums.shape[1:]), np.zeros(sums.shape[1:])
    total = counts.sum(axis=0)
    for split, name in np.argwhere((total > 0) & ~np.isnan(low)):
        having = counts[:, split, name] > 0
        parts, shares = sums[having, split, name], counts[having, split, name]
        value, worth = float(parts.sum() / shares.sum()), weight(shares)
        spread = math.sqrt(float((shares * (parts / shares - value) ** 2).sum() / shares.sum()))
        least, most = float(low[split, name]), float(high[split, name])
        down[split, name], up[split, name] = (
            _likeness(spread, value - least, most - value) ** (worth - 1) * max(side, 0.0)
            for side in _left(value, worth, least, most))
    return down, up


def _likeness(spread: float, below: float, above: float) -> float:
    """1 where values are all equal, 0 where they differ as much as a range allows that goes so far from their mean."""
    largest = math.sqrt(max(below * above, 0.0))
    return 1.0 if spread < _EQUAL else max(1 - spread / (largest if 0 < largest < math.inf else 1.0), 0.0)


def _left(value: float, n: float, least: float, most: float) -> tuple[float, float]:
    """How far below and above the mean may be where all n values are this one."""
    if math.isinf(least):  # a difference of counts
        return (max(_of_counts(abs(value), n)),) * 2
    if math.isinf(most):
        return _of_counts(value, n)
    return unseen(n) * (value - least), unseen(n) * (most - value)


def _of_counts(value: float, n: float) -> tuple[float, float]:
    """How far below and above a mean of counts its rate may be (Garwood, Biometrika 28, 1936)."""
    from scipy.special import gammaincinv

    least = float(gammaincinv(value * n, TAIL)) / n if value > 0 else 0.0
    return value - least, float(gammaincinv(value * n + 1, 1 - TAIL)) / n - value


def widened(value: float, interval: Interval, corners: Sequence[float] | Floats, together: bool) -> Interval:
    """The interval of a figure, joined with the room that splits with little spread have.

    Of independent splits the squares of the distances from the figure add up, as the variances do (MOVER: Zou and
    Donner, Statistics in Medicine 27, 2008); where splits share what is drawn, the distances do.

    Args:
        corners: the figure with the first split's room used downwards, with the second's, and both upwards.
        together: whether the splits share what is drawn.
    """
    if interval.low is None or interval.high is None or not all(map(math.isfinite, corners)):
        return NO_INTERVAL
    pairs = [sorted((float(low), float(high))) for low, high in zip(corners[:2], corners[2:], strict=True)]
    below = [value - least for least, _ in pairs if least < value - _EQUAL]
    above = [most - value for _, most in pairs if most > value + _EQUAL]
    join = math.fsum if together else _root
    low = value - join([max(value - interval.low, 0.0), *below]) if below else interval.low
    high = value + join([max(interval.high - value, 0.0), *above]) if above else interval.high
    return Interval(low, high)


def within(ends: Sequence[float] | Floats, interval: Interval) -> Interval:
    """The part of the interval that is between both ends of what its figure can be; nan is no limit."""
    low, high = interval
    least, most = sorted(map(float, ends))
    if low is None or high is None or math.isnan(least) or math.isnan(most):
        return interval
    return Interval(max(low, least), min(high, most))


def _root(distances: Sequence[float]) -> float:
    return math.hypot(*distances)
