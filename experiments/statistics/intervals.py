"""Intervals of the difference between two cells over the same questions, and its standard error."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from experiments.metrics.aggregate import RESAMPLES
from experiments.metrics.means import resampled
from experiments.statistics.pairs import Pairs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from experiments.metrics.means import Floats

_TAIL = 0.025
_Z = 1.959963984540054


class Interval(NamedTuple):
    """A 95 % interval; None where there is none."""

    low: float | None
    high: float | None


def of_shares(gained: int, lost: int, n: int) -> Interval:
    """The interval of the difference of two paired shares: the adjusted Wald interval of Bonett and Price (2012,
    Journal of Educational and Behavioral Statistics), which has a width too where few pairs differ or none does.

    Args:
        gained: pairs that are 0 in the first cell and 1 in the second; `lost` the other way round.
    """
    if n == 0:
        return Interval(None, None)
    up, down = (gained + 1) / (n + 2), (lost + 1) / (n + 2)
    half = _Z * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
    return Interval(max(up - down - half, -1.0), min(up - down + half, 1.0))


def bootstrap(pairs: Pairs, seed: int = 0, resamples: int = RESAMPLES) -> tuple[Interval, float | None]:
    """The bootstrap's interval of the difference of the two figures, and its standard error.

    Percentiles, widened for few pairs as Student's distribution is ("expanded percentile interval": Hesterberg, "What
    Teachers Should Know About the Bootstrap", 2015). Pairs are drawn whole, and all over one document together. They
    are drawn within the answerable and within the unanswerable questions, as the intervals of the cells are; where a
    document has questions of both kinds, from all of them at once. There is none where one of the groups drawn from
    has a single member, nor where all resamples agree, nor where the figure is not finite in some.
    """
    import numpy as np
    from scipy.special import ndtr, stdtrit

    spread = _resampled(pairs, np.random.default_rng(seed), resamples)
    spread = None if spread is None else spread[~np.isnan(spread)]
    if spread is None or len(spread) < 2 or np.isinf(spread).any() or math.isclose(spread.min(), spread.max()):
        return Interval(None, None), None
    units = len(pairs.units.sums)
    widening = math.sqrt(units / (units - 1))
    tail = 100 * float(ndtr(widening * stdtrit(units - 1, _TAIL)))
    low, high = np.percentile(spread, [tail, 100 - tail])
    return Interval(float(low), float(high)), float(spread.std(ddof=1)) * widening


def _resampled(pairs: Pairs, rng: np.random.Generator, resamples: int) -> Floats | None:
    """The difference in every resample; None where a group has nothing to draw from."""
    import numpy as np

    shape = pairs.units.sums.shape[1:]
    sums, counts = np.zeros((resamples, *shape)), np.zeros((resamples, *shape))
    for group in _groups(pairs):
        size = int(group.sum())
        if size == 1:
            return None
        drawn = resampled(pairs.units.sums[group].reshape(size, -1), pairs.units.counts[group].reshape(size, -1), rng,
                          resamples)
        sums += drawn.sums.reshape(sums.shape)
        counts += drawn.counts.reshape(counts.shape)
    first, second = pairs.figures(sums, counts)
    return second - first


def _groups(pairs: Pairs) -> list[NDArray[np.bool_]]:
    """Masks of the units that are drawn from each other."""
    import numpy as np

    kinds: NDArray[np.bool_] = np.any(pairs.units.counts, axis=(2, 3))  # units by splits
    if kinds.all(axis=1).any():
        return [np.ones(len(kinds), dtype=np.bool_)]
    return [group for group in (kinds[:, 0], kinds[:, 1]) if group.any()]
