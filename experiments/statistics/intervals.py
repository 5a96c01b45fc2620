"""Intervals of the difference between two cells over the same questions, and its standard error."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.metrics.bounds import NO_INTERVAL, Interval, Z, room, weight, widened, within
from experiments.metrics.drawing import RESAMPLES, drawn, groups_of, percentiles, together, widening
from experiments.metrics.sample import range_of
from experiments.statistics.pairs import Pairs

if TYPE_CHECKING:
    from experiments.metrics.means import Floats

_NOTHING = 1e-12


def interval_of(pairs: Pairs, seed: int = 0) -> Interval:
    """The interval of the difference of the two figures; without bounds where it has none."""
    if pairs.n and pairs.share and not pairs.clustered:
        return of_shares(*pairs.flips(), pairs.n)
    return bootstrap(pairs, seed)[0] if pairs.n else NO_INTERVAL


def of_shares(gained: int, lost: int, n: int) -> Interval:
    """The interval of the difference of two paired shares: the adjusted Wald interval of Bonett and Price (2012,
    Journal of Educational and Behavioral Statistics), which has a width too where few pairs differ or none does.

    Args:
        gained: pairs that are 0 in the first cell and 1 in the second; `lost` the other way round.
    """
    if n == 0:
        return NO_INTERVAL
    up, down = (gained + 1) / (n + 2), (lost + 1) / (n + 2)
    half = Z * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
    return Interval(max(up - down - half, -1.0), min(up - down + half, 1.0))


def bootstrap(pairs: Pairs, seed: int = 0, resamples: int = RESAMPLES) -> tuple[Interval, float | None]:
    """The bootstrap's interval of the difference of the two figures, and its standard error.

    Expanded percentiles (`drawing.percentiles`). Pairs are drawn whole, and all over one document together, within the
    answerable and within the unanswerable questions, as for the intervals of the cells; where a document has
    questions of both kinds, from all of them at once. Where all differences of a split are equal, or it has a single
    pair, there is the room that the metric's range leaves (`bounds.room`, `bounds.widened`): a difference of
    scores from a to b is from a - b to b - a. There is no interval where the figure is not finite in some resample,
    and no standard error where all resamples agree.
    """
    return bootstraps([pairs], seed, resamples)[0]


def bootstraps(all_pairs: Sequence[Pairs], seed: int = 0,
               resamples: int = RESAMPLES) -> list[tuple[Interval, float | None]]:
    """`bootstrap` of each; those that are drawn from the same groups share what is drawn, which changes none."""
    import numpy as np

    alike: dict[tuple[object, ...], list[int]] = {}
    for place, pairs in enumerate(all_pairs):
        groups = tuple(group.tobytes() for group in groups_of(pairs.units.counts))
        alike.setdefault((pairs.units.sums.shape, *groups), []).append(place)
    found: dict[int, tuple[Interval, float | None]] = {}
    for places in alike.values():
        units = [all_pairs[place].units for place in places]
        sums, counts = drawn(np.stack([one.sums for one in units], axis=2),
                             np.stack([one.counts for one in units], axis=2), np.random.default_rng(seed), resamples)
        for at, place in enumerate(places):
            first, second = all_pairs[place].figures(sums[:, :, at], counts[:, :, at])
            found[place] = _interval(all_pairs[place], second - first)
    return [found[place] for place in range(len(all_pairs))]


def _interval(pairs: Pairs, spread: Floats) -> tuple[Interval, float | None]:
    """The interval and the standard error, of the differences in all resamples."""
    import numpy as np

    units = weight(pairs.units.counts[:, :, 0, 0].sum(axis=1)) if pairs.n else 0.0
    found = percentiles(spread, units)
    if found.low is None or found.high is None:
        return NO_INTERVAL, None
    observed = pairs.observed()
    low, high = _joined(pairs, observed[1] - observed[0], found)
    finite = spread[~np.isnan(spread)]
    error = float(finite.std(ddof=1)) * widening(units) if units > 1 and len(finite) > 1 else 0.0
    no_width = low is None or high is None or math.isclose(low, high)
    return (NO_INTERVAL if no_width else Interval(low, high)), error if error > _NOTHING else None


def _joined(pairs: Pairs, difference: float, found: Interval) -> Interval:
    """With the room of the splits whose differences have no spread."""
    import numpy as np

    least, most = range_of(pairs.metric)
    counts = pairs.units.counts
    if not np.array_equal(counts[:, :, 0], counts[:, :, 1]):  # a question of both splits: its difference is of none
        return found
    wide = np.full(len(pairs.names), most - least)
    down, up = room(pairs.units.sums[:, :, 1] - pairs.units.sums[:, :, 0], counts[:, :, 0], -wide, wide)
    sums, total = np.stack([pairs.units.sums.sum(axis=0)] * 4), counts.sum(axis=0)
    for split in (0, 1):
        sums[split, split, 1] -= down[split] * total[split, 1]
        sums[split + 2, split, 1] += up[split] * total[split, 1]
    first, second = pairs.figures(sums, np.stack([total] * 4))
    return within((least - most, most - least), widened(difference, found, second - first, together(counts)))
