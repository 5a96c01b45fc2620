"""Intervals of the difference between two cells over the same questions, and its standard error."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from experiments.metrics.aggregate import interval
from experiments.metrics.bootstrap import RESAMPLES, around, drawn, error_of, groups_of, together
from experiments.metrics.bounds import LEVEL, NO_INTERVAL, Interval, Z, room, weight, widened, wilson, within
from experiments.metrics.sample import ranges_of
from experiments.statistics.pairs import Pairs

if TYPE_CHECKING:
    from experiments.metrics.means import Floats

_NOTHING = 1e-12
_VAST = 1e300  # which unlike infinity is nothing times nothing


class Drawn(NamedTuple):
    """What the bootstrap says of pairs.

    Attributes:
        difference: the interval of the difference of the two figures, and its standard `error`; None where there
            is none.
        first, second: the intervals of the figures themselves.
    """

    difference: Interval = NO_INTERVAL
    error: float | None = None
    first: Interval = NO_INTERVAL
    second: Interval = NO_INTERVAL


def interval_of(pairs: Pairs, seed: int = 0) -> Interval:
    """The interval of the difference of the two figures; without bounds where it has none."""
    if pairs.n and pairs.share and not pairs.clustered:
        return of_shares(*pairs.flips(), pairs.n)
    return bootstrap(pairs, seed).difference if pairs.n else NO_INTERVAL


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


def with_zero(interval: Interval, p: float | None) -> Interval:
    """The interval, which holds 0 where the test of the same difference finds none: it is approximate, and by itself
    leaves 0 out now and then where an exact test does not."""
    if interval.low is None or interval.high is None or p is None or p < 1 - LEVEL:
        return interval
    return Interval(min(interval.low, 0.0), max(interval.high, 0.0))


def bootstrap(pairs: Pairs, seed: int = 0, resamples: int = RESAMPLES) -> Drawn:
    """The bootstrap of the difference of the two figures, and of both.

    Expanded percentiles (`drawing.around`). Pairs are drawn whole, and all over one document together, within the
    answerable and within the unanswerable questions, as for the intervals of the cells; where a document has
    questions of both kinds, from all of them at once. Where the differences of a split have little spread, or it has a
    single pair, there is the room that the range of its scores leaves (`bounds.room`, `bounds.widened`): a difference
    of scores from a to b is from a - b to b - a. There is no interval where the figure is not finite in some resample,
    and no standard error where all resamples agree.
    """
    return bootstraps([pairs], seed, resamples)[0]


def bootstraps(all_pairs: Sequence[Pairs], seed: int = 0, resamples: int = RESAMPLES) -> list[Drawn]:
    """`bootstrap` of each; those that are drawn from the same groups share what is drawn, which changes none."""
    import numpy as np

    alike: dict[tuple[object, ...], list[int]] = {}
    for place, pairs in enumerate(all_pairs):
        groups = tuple(group.tobytes() for group in groups_of(pairs.units.counts))
        alike.setdefault((pairs.units.sums.shape, *groups), []).append(place)
    found: dict[int, Drawn] = {}
    for places in alike.values():
        units = [all_pairs[place].units for place in places]
        sums, counts = drawn(np.stack([one.sums for one in units], axis=2),
                             np.stack([one.counts for one in units], axis=2), np.random.default_rng(seed), resamples)
        for at, place in enumerate(places):
            first, second = all_pairs[place].figures(sums[:, :, at], counts[:, :, at])
            found[place] = _drawn(all_pairs[place], first, second)
    return [found[place] for place in range(len(all_pairs))]


def of_sides(pairs: Pairs) -> tuple[Interval, Interval]:
    """The intervals of both cells' shares over the pairs: Wilson's."""
    first, second = (wilson(share, pairs.side(side).worth(pairs.metric))
                     for side, share in enumerate(pairs.observed()))
    return first, second


def _drawn(pairs: Pairs, first: Floats, second: Floats) -> Drawn:
    """From the two figures in all resamples."""
    observed = pairs.observed()
    sides = [_side(pairs, side, observed[side], figures) for side, figures in enumerate((first, second))]
    units = weight(pairs.units.counts[:, :, 0, 0].sum(axis=1)) if pairs.n else 0.0
    spread = second - first
    change = observed[1] - observed[0]
    found = around(change, spread, units)
    if found.low is None or found.high is None:
        return Drawn(first=sides[0], second=sides[1])
    low, high = _joined(pairs, change, found)
    error = error_of(spread, units)
    no_width = low is None or high is None or math.isclose(low, high)
    return Drawn(NO_INTERVAL if no_width else Interval(low, high), error if error > _NOTHING else None, *sides)


def _side(pairs: Pairs, side: int, value: float, spread: Floats) -> Interval:
    made = pairs.side(side)
    return interval(made, pairs.metric, pairs.names[0], value, spread, pairs.figure(*made.corners()))


def _joined(pairs: Pairs, difference: float, found: Interval) -> Interval:
    """With the room of the splits whose differences have little spread, within what the difference can be."""
    import numpy as np

    low, high = ranges_of(pairs.names)
    sums, counts = pairs.units
    if not np.array_equal(counts[:, :, 0], counts[:, :, 1]):  # a question of one split in a cell, of the other in one
        sums, counts = (np.stack([of.sum(axis=1), np.zeros_like(of[:, 0])], axis=1) for of in (sums, counts))
    down, up = room(sums[:, :, 1] - sums[:, :, 0], counts[:, :, 0], low - high, high - low)
    sums, total = np.stack([sums.sum(axis=0)] * 4), counts.sum(axis=0)
    for split, at, by in ((0, 0, -down), (1, 1, -down), (0, 2, up), (1, 3, up)):
        n, before = total[split, 1], sums[at, split, 1].copy()
        sums[at, split, 1] = np.clip(before + by[split] * n, low[split] * n, np.minimum(high[split], _VAST) * n)
        sums[at, split, 0] -= by[split] * n - (sums[at, split, 1] - before)  # for which the second has no room
    least, most = (np.multiply(end, total[:, 1], out=np.zeros_like(low), where=total[:, 1] > 0) for end in (low, high))
    sums = np.concatenate([sums, np.stack([[most, least], [least, most]]).transpose(0, 2, 1, 3)])
    first, second = pairs.figures(sums, np.stack([total] * 6))
    change = second - first
    return within(change[4:], widened(difference, found, change[:4], together(counts)))
