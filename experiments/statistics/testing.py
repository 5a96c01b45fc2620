"""Paired tests of two cells, Holm's correction, and the smallest detectable difference.

A difference is detectable if a two-sided paired test at `ALPHA` divided by the number of comparisons finds it with
probability `POWER`.

The tests are written out for two reasons. scipy.stats.permutation_test supports neither clusters that are swapped
together nor draws shared between comparisons. statsmodels' `mcnemar` and `multipletests` are two short formulas behind
a slow import. The test suite checks this module against both libraries.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ragbed.experiments.metrics.intervals import ALPHA
from ragbed.experiments.metrics.sample import Totals, mix_tables
from ragbed.experiments.metrics.scoring import is_share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragbed.experiments.metrics.metric import Floats
    from ragbed.experiments.statistics.paired import Pairs

POWER = 0.8
# Assumptions before anything is measured: the share of questions whose outcome differs between two cells, and
# the standard deviation of the difference of their scores, which for scores of 0 and 1 is the square root of that.
DISCORDANCE = 0.25
DEVIATION = 0.5
WITHIN = 0.2  # the correlation of the differences of two questions of one cluster
_NEARLY = 1e-9
_STEPS = 25  # bisection steps in the search for the smallest difference
_MANY = 60  # units; with more, the smallest possible p is never the limit
SWAPS = 9_999
_EXACT = 13  # up to this many differing units, all swaps are tried, which are fewer than SWAPS
_AT_ONCE = 200_000  # largest product of units and swaps that is computed in one step
_CLOSE = 1e-10  # figures this close differ only by the order of summation


def mcnemar(gained: int, lost: int) -> float:
    """Compute the two-sided p of McNemar's exact test (1947), whose null hypothesis is that a differing pair is equally
    likely to be gained or lost."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(gained, lost), gained + lost, 0.5)))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Correct each p by Holm's method ("A simple sequentially rejective multiple test procedure", 1979). The order is
    kept. None means that there was no test; it is not counted."""
    tests = sorted((p, place) for place, p in enumerate(values) if p is not None)
    corrected: list[float | None] = [None] * len(values)
    highest = 0.0
    for rank, (p, place) in enumerate(tests):
        highest = max(highest, min(1.0, p * (len(tests) - rank)))
        corrected[place] = highest
    return corrected


def permutation(pairs: Pairs, seed: int = 0, swaps: int = SWAPS) -> float | None:
    """Compute the two-sided p of the paired permutation test, whose null hypothesis is that swapping the cells within
    any pair changes nothing.

    The statistic is the difference of the two figures, also for set-level metrics. Questions that share a document are
    swapped together. With few differing pairs, every swap is tried. Otherwise p is (as extreme + 1) / (drawn + 1),
    which is never 0 (Phipson and Smyth, 2010). Returns None if the difference is not finite.
    """
    return permutations([pairs], seed, swaps)[0]


def permutations(all_pairs: Sequence[Pairs], seed: int = 0, swaps: int = SWAPS) -> list[float | None]:
    """Compute `permutation` for each set of pairs. Sets with the same number of units share the drawn swaps, which
    saves time and does not change p."""
    import numpy as np

    values: list[float | None] = [None] * len(all_pairs)
    alike: dict[int, list[int]] = {}
    for place, pairs in enumerate(all_pairs):
        first, second = pairs.observed()
        if not math.isfinite(second - first):
            continue
        changes = _changes(pairs)
        differing = changes[changes.any(axis=1)]
        units = len(differing)
        if units > _EXACT:
            alike.setdefault(len(changes), []).append(place)
            continue
        ways = ((np.arange(2**units)[:, None] >> np.arange(units)) & 1).astype(np.float64)
        values[place] = _extreme(pairs, ways @ differing) / 2**units
    for units, places in alike.items():
        shifts = mix_tables([_changes(all_pairs[place]) for place in places], partial(_swapped, units, swaps, seed))
        for place, shift in zip(places, shifts, strict=True):
            values[place] = (_extreme(all_pairs[place], shift) + 1) / (swaps + 1)
    return values


def _changes(pairs: Pairs) -> Floats:
    """Return the second cell's sums and counts minus the first's, as an array of units x columns."""
    import numpy as np

    changes = np.stack([of[:, :, 1] - of[:, :, 0] for of in pairs.units], axis=1)
    return changes.reshape(len(changes), -1)


def _swapped(units: int, swaps: int, seed: int, table: Floats) -> Floats:
    """Draw random swaps and sum the table's rows over the units that each swap exchanges. Return swaps x columns."""
    import numpy as np

    rng, columns = np.random.default_rng(seed), table.T.copy()
    size = max(_AT_ONCE // units, 1)  # as many swaps at once as fit into the processor's cache
    shapes = ((min(size, swaps - start), units) for start in range(0, swaps, size))
    # no matrix product: its threads wait for each other on busy cores
    return np.concatenate([np.einsum("wu,cu->wc", rng.integers(0, 2, shape, dtype=np.uint8).astype(np.float64), columns)
                           for shape in shapes])


def _extreme(pairs: Pairs, shift: Floats) -> int:
    """Count the swaps whose difference is undefined or at least as large as the observed one."""
    import numpy as np

    whole, (first, second) = pairs.units.whole(), pairs.observed()
    moved = shift.reshape(len(shift), 2, *whole.sums[0, :, 0].shape)
    totals = Totals(*(np.stack([of[:, :, 0] + moved[:, at], of[:, :, 1] - moved[:, at]], axis=2)
                      for at, of in enumerate(whole)))
    return int(np.sum(~(np.abs(pairs.changes(totals)) < abs(second - first) - _CLOSE)))


def planned_difference(metric: str, answerable: int, unanswerable: int = 0, comparisons: int = 1,
            clusters: Sequence[tuple[int, int]] | None = None) -> float | None:
    """Compute the smallest difference between two cells that this many questions can detect, before anything is run.

    Shares of independent questions use McNemar's test and assume `DISCORDANCE`. Everything else uses a test of means
    (for `unified`, of two splits' means) and assumes `DEVIATION`. Differences within a cluster are assumed to have the
    correlation `WITHIN`. For clusters of m questions this gives Kish's design effect 1 + (m - 1) x `WITHIN` ("Survey
    Sampling", 1965). `clusters` has each cluster's numbers of answerable and unanswerable questions; by default every
    question is its own cluster. Returns None if no difference within the metric's range is detectable.
    """
    n, clusters = answerable + unanswerable, clusters or [(1, 0)] * answerable + [(0, 1)] * unanswerable
    if not n:
        return None
    if is_share(metric) and len(clusters) == n:
        return smallest_share_difference(n, comparisons=comparisons)
    by_split = metric == "unified" and answerable > 0 and unanswerable > 0
    error = DEVIATION / math.sqrt(planned_worth(metric, clusters))
    smallest = smallest_difference(error, len(clusters), len(clusters) - 1 - by_split, comparisons)
    return smallest if smallest is not None and smallest <= 1 else None


def planned_worth(metric: str, clusters: Sequence[tuple[int, int]]) -> float:
    """Compute the effective number of independent questions that `planned_difference` assumes. `clusters` has each
    cluster's numbers of answerable and unanswerable questions."""
    answerable, unanswerable = map(sum, zip(*clusters, strict=True))
    by_split = metric == "unified" and answerable > 0 and unanswerable > 0
    one, other = (1 / (2 * answerable), 1 / (2 * unanswerable)) if by_split else (1 / (answerable + unanswerable),) * 2
    alone = answerable * one**2 + unanswerable * other**2
    joined = math.fsum((first * one + second * other) ** 2 for first, second in clusters)
    return 1 / ((1 - WITHIN) * alone + WITHIN * joined)


def describe_assumptions(metric: str, clustered: bool = False) -> str:
    """Describe what `planned_difference` assumes about two cells' answers."""
    within = f", with a correlation of {WITHIN} between questions over the same documents" if clustered else ""
    if is_share(metric):
        return f"two cells differ in {DISCORDANCE:.0%} of the questions{within}"
    return f"the differences of two cells have a standard deviation of {DEVIATION}{within}"


def smallest_share_difference(n: int, discordance: float = DISCORDANCE, comparisons: int = 1) -> float | None:
    """Compute the smallest difference of two paired shares that McNemar's exact test over `n` pairs detects, if the
    share `discordance` of pairs differs. Returns None if n is too small even when all differing pairs agree in
    direction."""
    low, high = 0.0, 1.0
    if mcnemar_power(n, high, discordance, comparisons) < POWER:
        return None
    for _ in range(_STEPS):  # bisection works because power grows with the difference
        middle = (low + high) / 2
        low, high = (low, middle) if mcnemar_power(n, middle, discordance, comparisons) >= POWER else (middle, high)
    return high


def mcnemar_power(n: int, difference: float, discordance: float = DISCORDANCE, comparisons: int = 1) -> float:
    """Compute the exact power of McNemar's exact test, summed over the number of differing pairs."""
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
    """Return the numbers of differing pairs at which the test can be significant. Also return, for each, the largest
    count of the rarer direction that is still significant."""
    import numpy as np
    from scipy.special import bdtr, bdtrik

    counts = np.arange(n + 1)
    most = np.floor(np.nan_to_num(bdtrik(tail * (1 + _NEARLY), counts, 0.5)))  # never below 0, and close to the tail
    most -= bdtr(most, counts, 0.5) > tail
    return counts[most >= 0], most[most >= 0]


def smallest_difference(error: float, units: int, freedom: int, comparisons: int = 1) -> float | None:
    """Compute the smallest difference with this standard error that the permutation test detects.

    It is error x (t(1 - alpha/2) + t(power)) by Student's distribution. If only k swaps on either side are rare enough
    to be significant, it is larger by 1/(4k), the loss of power in simulations of six to twelve units. Returns None if
    no swap is, since p is never below 2^(1 - units).
    """
    from scipy.special import stdtrit

    rare = math.floor(ALPHA / comparisons * 2.0 ** min(units - 1, _MANY))
    if freedom < 1 or rare < 1:
        return None
    reach = stdtrit(freedom, 1 - ALPHA / comparisons / 2) + stdtrit(freedom, POWER)
    return float(error * reach * (1 + 1 / (4 * rare)))
