"""Confidence intervals of shares, of bootstrapped figures, and of samples without spread.

Wilson's formula and the expanded percentiles are written out because scipy.stats and statsmodels take 0.7 s to import
and support neither effective sample sizes nor percentiles widened for small samples.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ragbed.experiments.metrics.metric import Floats

LEVEL = 0.95
ALPHA = 0.05  # significance level of tests; intervals have the level 1 - ALPHA
TAIL = (1 - LEVEL) / 2
Z = 1.959963984540054  # quantile of the normal distribution at that level
FEW = 8  # with fewer units, percentiles alone are too narrow
_EQUAL = 1e-12
_TINY = 1e-300
_SHOWN = 1e-9  # the smallest bound that is not rounded to 0


class Interval(NamedTuple):
    """A 95 % interval; its bounds are None if there is none."""

    low: float | None
    high: float | None


NO_INTERVAL = Interval(None, None)


def wilson(share: float, n: float) -> Interval:
    """Compute Wilson's score interval (1927). `n` is the number of questions, or their effective number."""
    scale = 1 + Z**2 / n
    middle = (share + Z**2 / (2 * n)) / scale
    half = Z / scale * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return Interval(max(middle - half, 0.0), min(middle + half, 1.0))


def effective_questions(sums: Floats, counts: Floats) -> float:
    """Compute how many independent questions would give a share the same precision as these clusters.

    The number follows from the variance between clusters (Kish's design effect, "Survey Sampling", 1965). Few clusters
    determine that variance poorly. So the number is reduced by using Student's quantile instead of the normal one, as
    Korn and Graubard do (Survey Methodology 24, 1998). With Wilson's interval, coverage is good for rare shares too
    (Dean and Pagano, Journal of Survey Statistics and Methodology 3, 2015). If all answers are equal, the result is
    `effective_size`. `sums` counts each cluster's right answers, `counts` its questions (at least one).
    """
    n, clusters, weighs = float(counts.sum()), len(counts), effective_size(counts)
    share = float(sums.sum()) / n
    if clusters < 2 or not 0 < share < 1:
        return weighs
    between = clusters / (clusters - 1) * float(((sums - share * counts) ** 2).sum()) / n**2
    independent = share * (1 - share) / between if between else n
    return max(min(independent * (Z / student_quantile(weighs - 1)) ** 2, n), 1.0)


def effective_size(counts: Floats) -> float:
    """Compute Kish's effective number of clusters, n^2 / (sum of squared sizes)."""
    return float(counts.sum() ** 2 / (counts**2).sum())


def degrees_of_freedom(*parts: tuple[float, float]) -> float:
    """Compute the degrees of freedom of a sum of independent variances (Satterthwaite, Biometrics Bulletin 2, 1946;
    Welch, Biometrika 34, 1947). The result is 1 if all variances are zero."""
    spread = math.fsum(variance**2 / own for variance, own in parts)
    return math.fsum(variance for variance, _ in parts) ** 2 / spread if spread else 1.0


def effective_units(sums: Floats, counts: Floats) -> float:
    """Compute the effective number of units of the mean of two splits' means: its degrees of freedom plus one. So a
    small split that causes most of the variance counts only as its few units. Both arrays are units by splits."""
    known = []
    for own, many in zip(sums.T, counts.T, strict=True):
        own, many = own[many > 0], many[many > 0]
        n = effective_size(many) if len(many) else 0.0
        if n > 1:
            spread = float(((own - own.sum() / many.sum() * many) ** 2).sum())
            known.append((spread * n / (n - 1) / float(many.sum()) ** 2, n - 1))
    if math.fsum(variance for variance, _ in known) < _EQUAL:
        return effective_size(counts.sum(axis=1))
    return degrees_of_freedom(*known) + 1


@lru_cache(maxsize=1024)
def student_quantile(freedom: float) -> float:
    """Return the quantile of Student's distribution for a two-sided 95 % interval."""
    from scipy.special import stdtrit  # importing scipy.stats takes half a second longer

    return float(stdtrit(freedom, 1 - TAIL))


def bootstrap_interval(value: float, spread: Floats, units: float) -> Interval:
    """Compute the 95 % bootstrap interval of a figure.

    It is the expanded percentile interval, which is wider for few units, like Student's distribution (Hesterberg, "What
    Teachers Should Know About the Bootstrap", 2015). Below `FEW` units few distinct resamples exist, so the union with
    Student's interval is returned. There are no bounds if the figure is infinite in any resample or finite in none.

    Args:
        spread: the figure in every resample; nan values are ignored.
        units: effective number of units.
    """
    from scipy.special import ndtr

    if units <= 1:
        return percentiles(spread, 0.0)
    found = percentiles(spread, float(ndtr(-_widening(units) * student_quantile(units - 1))))
    if found.low is None or found.high is None or units >= FEW:
        return found
    half = student_quantile(units - 1) * standard_error(spread, units)
    return Interval(min(found.low, value - half), max(found.high, value + half))


def match_test(difference: float, interval: Interval, p: float | None) -> Interval:
    """Return the interval of a difference so that it excludes 0 if and only if p is below `ALPHA`.

    If interval and test disagree, the bound next to 0 becomes the test-based one (Miettinen, American Journal of
    Epidemiology 103, 1976): the difference times 1 - z / z(p), where z(p) is the normal quantile of p. It is at most as
    far from 0 as the other bound.
    """
    from scipy.special import ndtri

    low, high = interval
    if p is None or low is None or high is None or (low <= 0 <= high) == (p >= ALPHA):
        return interval
    bound = abs(difference) * (1 - Z / max(-float(ndtri(max(p, _TINY) / 2)), _EQUAL))
    if difference > 0:
        return Interval(max(bound, -high if p >= ALPHA else _SHOWN), max(high, difference))
    return Interval(min(low, difference), min(-bound, -low if p >= ALPHA else -_SHOWN))


def percentiles(spread: Floats, tail: float = TAIL) -> Interval:
    """Cut the share `tail` off each end of a figure's resamples. The interval has no bounds if any is infinite."""
    import numpy as np

    usable = spread[~np.isnan(spread)]
    if not len(usable) or np.isinf(usable).any():
        return NO_INTERVAL
    low, high = np.percentile(usable, [100 * tail, 100 * (1 - tail)])
    return Interval(float(low), float(high))


def standard_error(spread: Floats, units: float) -> float:
    """Compute the standard error of a figure from its resamples; 0 if undefined."""
    import numpy as np

    finite = spread[~np.isnan(spread)]
    return float(finite.std(ddof=1)) * _widening(units) if units > 1 and len(finite) > 1 else 0.0


def _widening(units: float) -> float:  # corrects for resamples whose variance divides by n instead of n - 1
    return math.sqrt(units / (units - 1))


def max_unseen_share(n: float) -> float:
    """Compute the largest share of a population that n draws can plausibly all miss: 1 - 0.025^(1/n).

    It is Clopper and Pearson's upper limit (1934) for 0 of n. The rule of three approximates its one-sided form (Hanley
    and Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249, 1983).
    """
    return float(-math.expm1(math.log(TAIL) / n))


def room(sums: Floats, counts: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Compute how far below and above the sample mean the true mean may be, for samples with little spread.

    If all n values equal c, at most the share `max_unseen_share` of the population differs from c, by values between
    `low` and `high`. So the mean is within [c - unseen (c - low), c + unseen (high - c)]. Counts without an upper bound
    use Garwood's exact interval of a Poisson rate (1936). Differences of counts use its wider half. n is the effective
    number of units.

    If the values differ, the room is multiplied by (1 - s / S)^(n - 1). Here s is their standard deviation. S is the
    largest possible one for this mean and range (Bhatia and Davis, American Mathematical Monthly 107, 2000), or 1
    without a range. So one deviating value does not make the interval jump.

    Args:
        sums, counts: units by splits by names.
        low, high: bounds of one question's value, splits by names; infinite if unbounded, nan if unknown.

    Returns two arrays of splits by names.
    """
    import numpy as np

    found = np.zeros((2, *sums.shape[1:]))
    for at in map(tuple, np.argwhere((counts.sum(axis=0) > 0) & ~np.isnan(low))):
        parts, shares = (array[(counts[(..., *at)] > 0, *at)] for array in (sums, counts))
        value, n = float(parts.sum() / shares.sum()), effective_size(shares)
        spread = math.sqrt(float((shares * (parts / shares - value) ** 2).sum() / shares.sum()))
        least, most = float(low[at]), float(high[at])
        largest = math.sqrt(max((value - least) * (most - value), 0.0))
        alike = 1.0 if spread < _EQUAL else max(1 - spread / (largest if 0 < largest < math.inf else 1.0), 0.0)
        found[(..., *at)] = [alike ** (n - 1) * max(side, 0.0) for side in _room_of_constant(value, n, least, most)]
    return found[0], found[1]


def _room_of_constant(value: float, n: float, least: float, most: float) -> tuple[float, float]:
    if math.isinf(least):  # a difference of counts
        return (max(_poisson_room(abs(value), n)),) * 2
    if math.isinf(most):
        return _poisson_room(value, n)
    return max_unseen_share(n) * (value - least), max_unseen_share(n) * (most - value)


def _poisson_room(value: float, n: float) -> tuple[float, float]:
    """Return the room below and above a mean of counts, treated as a Poisson rate (Garwood, Biometrika 28, 1936)."""
    from scipy.special import gammaincinv

    least = float(gammaincinv(value * n, TAIL)) / n if value > 0 else 0.0
    return value - least, float(gammaincinv(value * n + 1, 1 - TAIL)) / n - value


def widen(value: float, interval: Interval, corners: Sequence[float] | Floats, together: bool) -> Interval:
    """Widen a figure's interval by the room of splits with little spread, within the figure's range.

    For independent splits the squared distances add up, as variances do (MOVER: Zou and Donner, Statistics in Medicine
    27, 2008). For splits that share units (`together`), the distances themselves add up. `corners` has the figure for
    each of the six variants of `Sample.corners`.
    """
    if interval.low is None or interval.high is None or not all(map(math.isfinite, corners[:4])):
        return NO_INTERVAL
    pairs = [sorted((float(low), float(high))) for low, high in zip(corners[:2], corners[2:4], strict=True)]
    below = [value - least for least, _ in pairs if least < value - _EQUAL]
    above = [most - value for _, most in pairs if most > value + _EQUAL]
    join = math.fsum if together else lambda distances: math.hypot(*distances)
    low = value - join([max(value - interval.low, 0.0), *below]) if below else interval.low
    high = value + join([max(interval.high - value, 0.0), *above]) if above else interval.high
    return clip_interval(corners[4:], Interval(low, high))


def clip_interval(ends: Sequence[float] | Floats, interval: Interval) -> Interval:
    """Cut the interval to the range between both ends; nan is no limit."""
    low, high = interval
    least, most = sorted(map(float, ends))
    if low is None or high is None or math.isnan(least) or math.isnan(most):
        return interval
    return Interval(max(low, least), min(high, most))
