"""Paired tests of two cells, and the correction for how many are shown.

They are written out: scipy.stats.permutation_test knows neither clusters that are swapped together nor draws that
comparisons share, and statsmodels' `mcnemar` and `multipletests` are the two formulas below behind a slow import. The
tests hold them to both libraries' figures.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from experiments.metrics.sample import Totals, mixed

if TYPE_CHECKING:
    from experiments.metrics.metric import Floats
    from experiments.statistics.paired import Pairs

SWAPS = 9_999
_EXACT = 13  # units that differ, up to which all ways to swap them are tried: fewer than SWAPS
_AT_ONCE = 200_000  # of units times swaps
_CLOSE = 1e-10  # of two figures that are equal but for the order of their sums


def mcnemar(gained: int, lost: int) -> float:
    """Compute the two-sided p of McNemar's exact test (1947), of pairs that are 0 in the first cell and 1 in the
    second, and the other way round: of those that differ, as many are gained as lost."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(gained, lost), gained + lost, 0.5)))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Correct each p by Holm's method ("A simple sequentially rejective multiple test procedure", 1979), in order.

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


def permutation(pairs: Pairs, seed: int = 0, swaps: int = SWAPS) -> float | None:
    """Compute the two-sided p of the paired permutation test: swapping the cells within any pair changes nothing.

    The statistic is the difference of the two cells' figures, of a set-level metric too. All questions over one
    document are swapped together. Where few pairs differ every way is tried; else the p of so many drawn ones is
    (as extreme + 1) / (drawn + 1), which is never 0 (Phipson and Smyth, 2010).

    Returns:
        None where the difference is not finite.
    """
    return permutations([pairs], seed, swaps)[0]


def permutations(all_pairs: Sequence[Pairs], seed: int = 0, swaps: int = SWAPS) -> list[float | None]:
    """Compute `permutation` of each. Those of equally many units are swapped in the same drawn ways, which takes a
    fraction of the time, and each p is what it would be alone."""
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
        shifts = mixed([_changes(all_pairs[place]) for place in places], partial(_swapped, units, swaps, seed))
        for place, shift in zip(places, shifts, strict=True):
            values[place] = (_extreme(all_pairs[place], shift) + 1) / (swaps + 1)
    return values


def _changes(pairs: Pairs) -> Floats:
    """Return sums and counts of the second cell less the first's, units by columns."""
    import numpy as np

    changes = np.stack([of[:, :, 1] - of[:, :, 0] for of in pairs.units], axis=1)
    return changes.reshape(len(changes), -1)


def _swapped(units: int, swaps: int, seed: int, table: Floats) -> Floats:
    """Add up the table's rows of the units that each drawn way swaps: ways by columns."""
    import numpy as np

    rng, columns = np.random.default_rng(seed), table.T.copy()
    size = max(_AT_ONCE // units, 1)  # as many ways at once as the processor's cache holds
    shapes = ((min(size, swaps - start), units) for start in range(0, swaps, size))
    # no matrix product: its threads wait for each other where cores are busy
    return np.concatenate([np.einsum("wu,cu->wc", rng.integers(0, 2, shape, dtype=np.uint8).astype(np.float64), columns)
                           for shape in shapes])


def _extreme(pairs: Pairs, shift: Floats) -> int:
    """Count the ways of swapping in which the difference is as large as the observed one; what has no figure counts.

    Args:
        shift: of each way, the changes of the units that it swaps, added up.
    """
    import numpy as np

    whole, (first, second) = pairs.units.whole(), pairs.observed()
    moved = shift.reshape(len(shift), 2, *whole.sums[0, :, 0].shape)
    totals = Totals(*(np.stack([of[:, :, 0] + moved[:, at], of[:, :, 1] - moved[:, at]], axis=2)
                      for at, of in enumerate(whole)))
    return int(np.sum(~(np.abs(pairs.changes(totals)) < abs(second - first) - _CLOSE)))
