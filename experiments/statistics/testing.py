"""Paired tests of two cells, and the correction for how many are shown."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from experiments.statistics.pairs import Pairs

if TYPE_CHECKING:
    from experiments.metrics.means import Floats

SWAPS = 9_999
_EXACT = 13  # units that differ, up to which all ways to swap them are tried: fewer than SWAPS
_AT_ONCE = 200_000  # of units times swaps
_CLOSE = 1e-10  # of two figures that are equal but for the order of their sums


def mcnemar(gained: int, lost: int) -> float:
    """The two-sided p of McNemar's exact test (1947): of the pairs that differ, as many would be gained as lost.

    Args:
        gained: pairs that are 0 in the first cell and 1 in the second; `lost` the other way round.
    """
    from scipy.special import bdtr  # of the same library, scipy.stats takes half a second to import

    return min(1.0, 2 * float(bdtr(min(gained, lost), gained + lost, 0.5)))


def permutation(pairs: Pairs, seed: int = 0, swaps: int = SWAPS) -> float | None:
    """The two-sided p of the paired permutation test: swapping the cells within any pair changes nothing.

    The statistic is the difference of the two cells' figures, of a set-level metric too. All questions over one
    document are swapped together. Where few pairs differ every way is tried; else the p of so many drawn ones is
    (as extreme + 1) / (drawn + 1), which is never 0 (Phipson and Smyth, 2010).

    Returns:
        None where the difference is not finite.
    """
    import numpy as np

    first, second = pairs.observed()
    observed = abs(second - first)
    if not math.isfinite(observed):
        return None
    sums, counts = (values[:, :, 1] - values[:, :, 0] for values in pairs.units)
    differs = (np.abs(sums) + np.abs(counts)).any(axis=(1, 2))
    units = int(differs.sum())
    if not units:
        return 1.0
    extreme = 0
    for drawn in _all_ways(units) if units <= _EXACT else _drawn(units, swaps, seed):
        swapped = abs(_swapped(pairs, drawn, sums[differs], counts[differs]))
        extreme += int(np.sum(~(swapped < observed - _CLOSE)))  # what has no figure counts as extreme
    return extreme / 2**units if units <= _EXACT else (extreme + 1) / (swaps + 1)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """p after Holm's correction ("A simple sequentially rejective multiple test procedure", 1979), in the same order.

    The smallest is multiplied by the number of tests, the next by one less, and so on; none falls below the one
    before it. None is no test.
    """
    tests = sorted((p, place) for place, p in enumerate(values) if p is not None)
    corrected: list[float | None] = [None] * len(values)
    highest = 0.0
    for rank, (p, place) in enumerate(tests):
        highest = max(highest, min(1.0, p * (len(tests) - rank)))
        corrected[place] = highest
    return corrected


def _all_ways(units: int) -> Iterator[Floats]:
    """Every way to swap the units: ways by units, 1 where swapped."""
    import numpy as np

    yield ((np.arange(2**units)[:, None] >> np.arange(units)) & 1).astype(np.float64)


def _drawn(units: int, swaps: int, seed: int) -> Iterator[Floats]:
    """So many ways, drawn; as many at once as the processor's cache holds."""
    import numpy as np

    rng = np.random.default_rng(seed)
    size = max(_AT_ONCE // units, 1)
    for start in range(0, swaps, size):
        yield rng.integers(0, 2, size=(min(size, swaps - start), units), dtype=np.uint8).astype(np.float64)


def _swapped(pairs: Pairs, drawn: Floats, sums: Floats, counts: Floats) -> Floats:
    """The difference of the figures for each way to swap the units.

    Args:
        drawn: ways by units, 1 where swapped.
        sums: units by splits by names, the second cell's less the first's; `counts` likewise.
    """
    import numpy as np

    moved = []
    for total, change in zip(pairs.units, (sums, counts), strict=True):
        both = total.sum(axis=0)
        shift = np.zeros((len(drawn), *change.shape[1:]))
        for column in np.argwhere(change.any(axis=0)):  # few: counts seldom differ, and most metrics are one column
            at = (slice(None), *column)
            # not a matrix product: its threads wait for each other where cores are busy
            shift[at] = np.einsum("wu,u->w", drawn, change[at].copy())
        moved.append(np.stack([both[:, 0] + shift, both[:, 1] - shift], axis=2))
    first, second = pairs.figures(moved[0], moved[1])
    return second - first
