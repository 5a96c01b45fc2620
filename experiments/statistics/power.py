"""The smallest difference that so many questions can detect.

"Can detect" means that a two-sided paired test at `ALPHA`, divided by the number of comparisons that are corrected
for, finds it with a probability of `POWER`.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from experiments.metrics import METRICS
from experiments.metrics.metric import family_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from experiments.metrics.means import Floats

ALPHA = 0.05
POWER = 0.8
# What a plan assumes before anything is measured: the share of questions whose outcome differs between two cells, and
# the standard deviation of the difference of their scores, which for scores of 0 and 1 is the square root of that.
DISCORDANCE = 0.25
DEVIATION = 0.5
_STEPS = 25  # halvings of the range in which a difference is looked for


def planned(metric: str, answerable: int, unanswerable: int = 0, comparisons: int = 1) -> float | None:
    """The smallest difference of a metric between two cells that so many questions can detect, before any is asked.

    For shares it is McNemar's, with an assumed `DISCORDANCE`; for other metrics that of means, with an assumed
    `DEVIATION`, of `unified` of two splits' means.

    Args:
        answerable, unanswerable: questions that the metric applies to.
        comparisons: how many are corrected for.

    Returns:
        None where no difference could be detected: it would be wider than the metric's range.
    """
    smallest = _planned(metric, answerable, unanswerable, comparisons)
    return smallest if smallest is not None and smallest <= 1 else None


def assumed(metric: str) -> str:
    """What `planned` takes two cells' answers to differ by, in words."""
    known = METRICS.get(family_of(metric))
    if known is not None and known.share:
        return f"two cells differ in {DISCORDANCE:.0%} of the questions"
    return f"the differences of two cells have a standard deviation of {DEVIATION}"


def _planned(metric: str, answerable: int, unanswerable: int, comparisons: int) -> float | None:
    known = METRICS.get(family_of(metric))
    if known is not None and known.share:
        return smallest_share(answerable + unanswerable, comparisons=comparisons)
    splits = [n for n in (answerable, unanswerable) if n]
    if metric != "unified" or len(splits) < 2:
        return smallest_mean(sum(splits), comparisons=comparisons)
    error = math.sqrt(sum(DEVIATION**2 / n for n in splits)) / 2
    return smallest_by_error(error, sum(splits) - 2, comparisons)


def smallest_share(n: int, discordance: float = DISCORDANCE, comparisons: int = 1) -> float | None:
    """The smallest difference of two paired shares that McNemar's exact test over `n` pairs detects.

    Args:
        discordance: the share of pairs that differ; where the difference is larger, all that differ do so one way.

    Returns:
        None where even pairs that all differ one way are too few.
    """
    return _smallest(lambda difference: mcnemar_power(n, difference, discordance, comparisons))


def mcnemar_power(n: int, difference: float, discordance: float = DISCORDANCE, comparisons: int = 1) -> float:
    """The probability that McNemar's exact test detects the difference: exact, over the number of pairs that differ."""
    import numpy as np
    from scipy.special import bdtr, gammaln, xlog1py, xlogy

    differ = max(discordance, difference)
    if n == 0 or differ == 0:
        return 0.0
    counts, most = _found_up_to(n, ALPHA / comparisons / 2)
    if not len(counts):
        return 0.0
    likely = np.exp(gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1) + xlogy(counts, differ)
                    + xlog1py(n - counts, -differ))
    one_way = (differ + difference) / (2 * differ)
    return float(likely @ (bdtr(most, counts, one_way) + bdtr(most, counts, 1 - one_way)))


@lru_cache(maxsize=8)
def _found_up_to(n: int, tail: float) -> tuple[NDArray[np.int64], Floats]:
    """Numbers of pairs that differ, up to `n`, and for each the most of the rarer kind with which the test finds a
    difference; without the numbers with which it never does."""
    import numpy as np
    from scipy.special import bdtr

    most = np.full(n + 1, -1.0)
    rarer = 0
    for count in range(n + 1):  # one pair more adds at most one
        if rarer <= count and bdtr(rarer, count, 0.5) <= tail:
            most[count] = rarer
            rarer += 1
        else:
            most[count] = rarer - 1
    counts = np.arange(n + 1)
    return counts[most >= 0], most[most >= 0]


def smallest_mean(n: int, deviation: float = DEVIATION, comparisons: int = 1) -> float | None:
    """The smallest difference of two means over the same `n` questions.

    Args:
        deviation: the standard deviation of the questions' differences.
    """
    return smallest_by_error(deviation / math.sqrt(n), n - 1, comparisons) if n > 1 else None


def smallest_by_error(error: float, freedom: int, comparisons: int = 1) -> float | None:
    """The smallest difference of two figures whose difference has this standard error.

    It is error x (t(1 - alpha/2) + t(power)), of Student's distribution with these degrees of freedom.
    """
    from scipy.special import stdtrit

    if freedom < 1:
        return None
    return float(error * (stdtrit(freedom, 1 - ALPHA / comparisons / 2) + stdtrit(freedom, POWER)))


def _smallest(power: Callable[[float], float]) -> float | None:
    """The smallest difference up to 1 that has the power, by halving: power grows with the difference."""
    low, high = 0.0, 1.0
    if power(high) < POWER:
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high
