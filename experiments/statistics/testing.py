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
    return permutations([pairs], seed, swaps)[0]


def permutations(all_pairs: Sequence[Pairs], seed: int = 0, swaps: int = SWAPS) -> list[float | None]:
    """`permutation` of each. Those of equally many units are swapped in the same drawn ways, which takes a fraction of
    the time, and each p is what it would be alone."""
    found = [_exact(pairs) for pairs in all_pairs]
    drawn: dict[int, list[int]] = {}
    for place, (pairs, (known, _)) in enumerate(zip(all_pairs, found, strict=True)):
        if not known:
            drawn.setdefault(len(pairs.units.sums), []).append(place)
    values = [p for _, p in found]
    for places in drawn.values():
        for place, p in zip(places, _by_draws([all_pairs[place] for place in places], seed, swaps), strict=True):
            values[place] = p
    return values


def _exact(pairs: Pairs) -> tuple[bool, float | None]:
    """Whether no ways need be drawn, and the p then."""
    import numpy as np

    observed = _observed(pairs)
    if not math.isfinite(observed):
        return True, None
    sums, counts = _changes(pairs)
    differs = (np.abs(sums) + np.abs(counts)).any(axis=(1, 2))
    units = int(differs.sum())
    if units > _EXACT:
        return False, None
    ways = ((np.arange(2**units)[:, None] >> np.arange(units)) & 1).astype(np.float64)
    return True, _extreme(pairs, observed, *(np.einsum("wu,usn->wsn", ways, change[differs])
                                             for change in (sums, counts))) / 2**units


def _by_draws(all_pairs: Sequence[Pairs], seed: int, swaps: int) -> list[float]:
    """Of pairs with equally many units."""
    import numpy as np

    changes = [np.stack(_changes(pairs)) for pairs in all_pairs]
    flat = [change.transpose(1, 0, 2, 3).reshape(change.shape[1], -1) for change in changes]
    used = [one.any(axis=0) for one in flat]  # few: counts seldom differ, and most metrics are one column
    table = np.concatenate([one[:, some] for one, some in zip(flat, used, strict=True)], axis=1).T.copy()
    # not a matrix product: its threads wait for each other where cores are busy
    shift = np.concatenate([np.einsum("wu,cu->wc", ways, table)
                            for ways in _drawn(table.shape[1], swaps, seed)])
    found, start = [], 0
    for pairs, change, some in zip(all_pairs, changes, used, strict=True):
        moved = np.zeros((swaps, some.size))
        moved[:, some] = shift[:, start:start + int(some.sum())]
        start += int(some.sum())
        sums, counts = moved.reshape(swaps, *change.shape[:1], *change.shape[2:]).swapaxes(0, 1)
        found.append((_extreme(pairs, _observed(pairs), sums, counts) + 1) / (swaps + 1))
    return found


def _observed(pairs: Pairs) -> float:
    first, second = pairs.observed()
    return abs(second - first)


def _changes(pairs: Pairs) -> tuple[Floats, Floats]:
    """Sums and counts of the second cell less the first's: units by splits by names."""
    sums, counts = (values[:, :, 1] - values[:, :, 0] for values in pairs.units)
    return sums, counts


def _extreme(pairs: Pairs, observed: float, sums: Floats, counts: Floats) -> int:
    """In how many ways of swapping the difference is as large as the observed one; what has no figure counts.

    Args:
        sums: ways by splits by names: the changes of the units that are swapped, added up; `counts` likewise.
    """
    import numpy as np

    moved = []
    for total, shift in zip(pairs.units, (sums, counts), strict=True):
        both = total.sum(axis=0)
        moved.append(np.stack([both[:, 0] + shift, both[:, 1] - shift], axis=2))
    first, second = pairs.figures(moved[0], moved[1])
    return int(np.sum(~(np.abs(second - first) < observed - _CLOSE)))


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


def _drawn(units: int, swaps: int, seed: int) -> Iterator[Floats]:
    """So many ways, drawn; as many at once as the processor's cache holds."""
    import numpy as np

    rng = np.random.default_rng(seed)
    size = max(_AT_ONCE // units, 1)
    for start in range(0, swaps, size):
        yield rng.integers(0, 2, size=(min(size, swaps - start), units), dtype=np.uint8).astype(np.float64)
