"""Drawing samples of a set: what is drawn together, and from what it is drawn."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from experiments.metrics.bounds import NO_INTERVAL, TAIL, Interval, student
from experiments.metrics.means import resampled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from experiments.metrics.means import Floats

RESAMPLES = 1000
FEW = 8  # units below which percentiles alone are too narrow


def groups_of(counts: Floats) -> list[NDArray[np.bool_]]:
    """Masks of the units that are drawn from each other: within each split, or all where one is in both splits.

    Args:
        counts: units by splits by whatever: how many questions each unit has.
    """
    import numpy as np

    if together(counts):
        return [np.ones(len(counts), dtype=np.bool_)]
    kinds = _kinds(counts)
    return [group for group in (kinds[:, 0], kinds[:, 1]) if group.any()]


def together(counts: Floats) -> bool:
    """Whether any unit has questions of both splits."""
    return bool(_kinds(counts).all(axis=1).any())


def _kinds(counts: Floats) -> NDArray[np.bool_]:
    """Which splits each unit has questions of."""
    import numpy as np

    found: NDArray[np.bool_] = np.any(counts, axis=tuple(range(2, counts.ndim)))
    return found


def drawn(sums: Floats, counts: Floats, rng: np.random.Generator, resamples: int) -> tuple[Floats, Floats]:
    """Sums and counts of samples of as many units, drawn with replacement within the groups of `groups_of`.

    Args:
        sums: units by splits by whatever; `counts` likewise.

    Returns:
        both with the resamples in place of the units.
    """
    import numpy as np

    drawn_sums, drawn_counts = (np.zeros((resamples, *sums.shape[1:])) for _ in range(2))
    groups = groups_of(counts)
    for group in groups:
        size = int(group.sum())
        splits = [split for split in (0, 1) if counts[group, split].any()]
        totals = resampled(sums[group][:, splits].reshape(size, -1), counts[group][:, splits].reshape(size, -1), rng,
                           resamples)
        shape = (resamples, len(splits), *sums.shape[2:])
        drawn_sums[:, splits] += totals.sums.reshape(shape)
        drawn_counts[:, splits] += totals.counts.reshape(shape)
    return drawn_sums, drawn_counts


def percentiles(spread: Floats, units: float | None = None) -> Interval:
    """The bootstrap's 95 % interval of a figure; without a width where all resamples agree.

    For few units it is wider, as Student's distribution is ("expanded percentile interval": Hesterberg, "What
    Teachers Should Know About the Bootstrap", 2015).

    Args:
        spread: the figure of every resample; nan where it has none, which is left out.
        units: how many were drawn, as they weigh; None for so many that it does not matter.

    Returns:
        no bounds where the figure is infinite in some resample, or nowhere is one.
    """
    import numpy as np
    from scipy.special import ndtr

    usable = spread[~np.isnan(spread)]
    if not len(usable) or np.isinf(usable).any():
        return NO_INTERVAL
    tail = TAIL if units is None else 0.0
    if units is not None and units > 1:
        tail = float(ndtr(-widening(units) * student(units - 1)))
    low, high = np.percentile(usable, [100 * tail, 100 * (1 - tail)])
    return Interval(float(low), float(high))


def around(value: float, spread: Floats, units: float) -> Interval:
    """The 95 % interval of a figure: its percentiles, and of few units, whose resamples are few values and the same
    ones over and over, joined with Student's.

    Args:
        value: the figure; `spread`, that of every resample; `units`, how many were drawn, as they weigh.
    """
    found = percentiles(spread, units)
    if found.low is None or found.high is None or not 1 < units < FEW:
        return found
    half = student(units - 1) * error_of(spread, units)
    return Interval(min(found.low, value - half), max(found.high, value + half))


def error_of(spread: Floats, units: float) -> float:
    """The standard error of a figure; 0 where it cannot be told."""
    import numpy as np

    finite = spread[~np.isnan(spread)]
    return float(finite.std(ddof=1)) * widening(units) if units > 1 and len(finite) > 1 else 0.0


def widening(units: float) -> float:
    """By how much a resample's deviation falls short of that of so many units: a variance over n is not over n - 1."""
    return math.sqrt(units / (units - 1))
