"""The smallest difference that so many questions can detect.

"Can detect" means that a two-sided paired test at `ALPHA`, divided by the number of comparisons that are corrected
for, finds it with a probability of `POWER`.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from experiments.metrics.scoring import is_share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from experiments.metrics.metric import Floats

ALPHA = 0.05
POWER = 0.8
# What a plan assumes before anything is measured: the share of questions whose outcome differs between two cells, and
# the standard deviation of the difference of their scores, which for scores of 0 and 1 is the square root of that.
DISCORDANCE = 0.25
DEVIATION = 0.5
WITHIN = 0.2  # the correlation of the differences of two questions of one cluster
_CLOSE = 1e-9
_STEPS = 25  # halvings of the range in which a difference is looked for
_MANY = 60  # units beyond which more make no p too large


def planned(metric: str, answerable: int, unanswerable: int = 0, comparisons: int = 1,
            clusters: Sequence[tuple[int, int]] | None = None) -> float | None:
    """Compute the smallest difference of a metric between two cells that so many questions can detect, before any is
    asked.

    For shares of independent questions it is McNemar's, with an assumed `DISCORDANCE`; else that of means, with an
    assumed `DEVIATION`, of `unified` of two splits' means. The differences of questions of one cluster have the
    assumed correlation `WITHIN`: where all m of a cluster do, that is Kish's design effect 1 + (m - 1) x `WITHIN`
    ("Survey Sampling", 1965) on the variance.

    Args:
        answerable, unanswerable: questions that the metric applies to.
        comparisons: how many are corrected for.
        clusters: how many answerable and unanswerable questions each has; without, every question is one.

    Returns:
        None where no difference could be detected: it would be wider than the metric's range.
    """
    n, clusters = answerable + unanswerable, clusters or [(1, 0)] * answerable + [(0, 1)] * unanswerable
    if is_share(metric) and len(clusters) == n:
        return smallest_share(n, comparisons=comparisons)
    by_split = metric == "unified" and answerable > 0 and unanswerable > 0
    one, other = (1 / (2 * answerable), 1 / (2 * unanswerable)) if by_split else (1 / max(n, 1),) * 2  # their weights
    alone = answerable * one**2 + unanswerable * other**2
    joined = math.fsum((first * one + second * other) ** 2 for first, second in clusters)
    error = DEVIATION * math.sqrt((1 - WITHIN) * alone + WITHIN * joined)
    smallest = smallest_by_error(error, len(clusters), len(clusters) - 1 - by_split, comparisons)
    return smallest if smallest is not None and smallest <= 1 else None


def assumed(metric: str, clustered: bool = False) -> str:
    """Say what `planned` takes two cells' answers to differ by."""
    within = f", with a correlation of {WITHIN} between questions over the same documents" if clustered else ""
    if is_share(metric):
        return f"two cells differ in {DISCORDANCE:.0%} of the questions{within}"
    return f"the differences of two cells have a standard deviation of {DEVIATION}{within}"


def smallest_share(n: int, discordance: float = DISCORDANCE, comparisons: int = 1) -> float | None:
    """Compute the smallest difference of two paired shares that McNemar's exact test over `n` pairs detects.

    Args:
        discordance: the share of pairs that differ; where the difference is larger, all that differ do so one way.

    Returns:
        None where even pairs that all differ one way are too few.
    """
    low, high = 0.0, 1.0
    if mcnemar_power(n, high, discordance, comparisons) < POWER:
        return None
    for _ in range(_STEPS):  # power grows with the difference
        middle = (low + high) / 2
        low, high = (low, middle) if mcnemar_power(n, middle, discordance, comparisons) >= POWER else (middle, high)
    return high


def mcnemar_power(n: int, difference: float, discordance: float = DISCORDANCE, comparisons: int = 1) -> float:
    """Compute the probability that McNemar's exact test detects the difference: exact, over the number of pairs that
    differ."""
    import numpy as np
    from scipy.special import bdtr

    differ = max(discordance, difference)
    if n == 0 or differ == 0:
        return 0.0
    counts, most = _found_up_to(n, ALPHA / comparisons / 2)
    likely = np.diff(bdtr(np.arange(n + 1), n, differ), prepend=0.0)[counts]
    one_way = (differ + difference) / (2 * differ)
    return float(likely @ (bdtr(most, counts, one_way) + bdtr(most, counts, 1 - one_way)))


@lru_cache(maxsize=8)
def _found_up_to(n: int, tail: float) -> tuple[NDArray[np.int64], Floats]:
    """Numbers of pairs that differ, up to `n`, and for each the most of the rarer kind with which the test finds a
    difference; without the numbers with which it never does."""
    import numpy as np
    from scipy.special import bdtr, bdtrik

    counts = np.arange(n + 1)
    most = np.floor(np.nan_to_num(bdtrik(tail * (1 + _CLOSE), counts, 0.5)))  # never below 0, and close to the tail
    most -= bdtr(most, counts, 0.5) > tail
    return counts[most >= 0], most[most >= 0]


def smallest_by_error(error: float, units: int, freedom: int, comparisons: int = 1) -> float | None:
    """Compute the smallest difference of two figures, whose difference has this standard error, that the permutation
    test finds.

    It is error x (t(1 - alpha/2) + t(power)), of Student's distribution with these degrees of freedom, and wider by
    1/(4k) where only k of the ways of swapping the units are rare enough on either side: that much power is lost in
    simulations of six to twelve units.

    Returns:
        None where no way is: p is never below 2^(1 - units).
    """
    from scipy.special import stdtrit

    rare = math.floor(ALPHA / comparisons * 2.0 ** min(units - 1, _MANY))
    if freedom < 1 or rare < 1:
        return None
    reach = stdtrit(freedom, 1 - ALPHA / comparisons / 2) + stdtrit(freedom, POWER)
    return float(error * reach * (1 + 1 / (4 * rare)))
