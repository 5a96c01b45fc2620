"""Sum the scores of a set of questions by question or cluster, and draw bootstrap resamples of the sums."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ragbed.experiments.metrics.intervals import (
    Interval,
    bootstrap_interval,
    effective_questions,
    effective_size,
    effective_units,
    room,
    widen,
    wilson,
)
from ragbed.experiments.metrics.metric import BY_SPLIT, SetFigure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragbed.experiments.metrics.metric import Floats

RESAMPLES = 1000
_DRAWS_AT_ONCE = 1_000_000


class Totals(NamedTuple):
    """Sums of scores, and numbers of questions that have a score.

    The arrays have the shape (units or draws) x splits (answerable, unanswerable) x names. For pairs, an axis of sides
    comes before names. A unit is a question, or all questions of a cluster.
    """

    sums: Floats
    counts: Floats

    def whole(self) -> Totals:
        """Return the totals of the whole set, in the shape of a single draw."""
        return Totals(*(array.sum(axis=0)[None] for array in self))

    def side(self, side: int) -> Totals:
        """Return the totals of one side of pairs."""
        return Totals(*(array[:, :, side] for array in self))


@dataclass(frozen=True, slots=True)
class Sample:
    """Scores of a set, summed by unit."""

    names: Sequence[str]  # names of the scores, from `scoring.score_names`
    units: Totals
    limits: tuple[Floats, Floats]  # bounds of scores, splits x names; infinite if unbounded, nan if unknown
    shares: frozenset[str]  # names of scores that are 0 or 1 per question; means over repeats may lie between

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return how many questions of each split have each score, by the score's name."""
        first, second = self.units.counts.sum(axis=0)
        return {name: (int(first[at]), int(second[at])) for at, name in enumerate(self.names)}

    def values(self, figure: SetFigure, totals: Totals) -> Floats:
        """Compute the figure of each draw; nan if undefined."""
        at = [self.names.index(name) for name in figure.names]
        sums, counts = (array[:, :, at] for array in totals)
        return figure.value(_ratio(sums.sum(axis=1), counts.sum(axis=1)), _ratio(sums, counts))

    def interval(self, name: str, figure: SetFigure, value: float, resamples: Totals, corners: Totals) -> Interval:
        """Compute the interval of a metric's figure; see `aggregate`."""
        at = self.names.index(figure.names[0])
        sums, counts = (array[:, :, at].sum(axis=1) for array in self.units)
        having = counts > 0
        if name in self.shares:
            alone = counts.max() <= 1
            return wilson(value, float(counts.sum()) if alone else effective_questions(sums[having], counts[having]))
        shared = has_mixed_units(self.units.counts)
        units = effective_size(counts) if having.any() else 0.0
        if name == BY_SPLIT and units and not shared:
            units = effective_units(*(array[having, :, at] for array in self.units))
        found = bootstrap_interval(value, self.values(figure, resamples), units)
        return widen(value, found, self.values(figure, corners), shared)

    def corners(self) -> Totals:
        """Return six variants of the totals. The first two lower one split each by its `intervals.room`. The next two
        raise one split each. The last two set all scores to their lower, or upper, bounds."""
        import numpy as np

        down, up = room(*self.units, *self.limits)
        total, counts = (array.sum(axis=0) for array in self.units)
        ends = [np.multiply(end, counts, out=np.zeros_like(total), where=counts > 0) for end in self.limits]
        moved = np.stack([total] * 4 + ends)
        for split in (0, 1):
            moved[split, split] -= down[split] * counts[split]
            moved[split + 2, split] += up[split] * counts[split]
        return Totals(moved, np.stack([counts] * 6))


def _ratio(sums: Floats, counts: Floats) -> Floats:
    import numpy as np

    return np.divide(sums, counts, out=np.full_like(sums, math.nan), where=counts > 0)


def sum_units(table: Floats, units: NDArray[np.intp], split: NDArray[np.intp]) -> Totals:
    """Sum a table of questions by unit and split; nan is a missing score."""
    import numpy as np

    found = np.zeros((2, int(units.max(initial=-1)) + 1, 2, *table.shape[1:]))
    mask = np.isfinite(table)
    np.add.at(found[0], (units, split), np.where(mask, table, 0.0))
    np.add.at(found[1], (units, split), mask)
    return Totals(*found)


def has_mixed_units(counts: Floats) -> bool:
    """Return whether any unit has questions of both splits."""
    return bool(_kinds(counts).all(axis=1).any())


def _kinds(counts: Floats) -> NDArray[np.bool_]:
    import numpy as np

    found: NDArray[np.bool_] = np.any(counts, axis=tuple(range(2, counts.ndim)))
    return found


def draw_resamples(samples: Sequence[Totals], seed: int, resamples: int = RESAMPLES) -> list[Totals]:
    """Draw as many units as each sample has, with replacement, and return the totals of each draw.

    Answerable and unanswerable questions are drawn separately, so that both splits keep their size. If a unit has
    questions of both, all units are drawn together. Samples of the same units share the draws, which saves time:
    scipy.stats.bootstrap supports neither strata nor shared draws.
    """
    import numpy as np

    alike: dict[tuple[bytes, ...], list[int]] = {}
    groups: dict[tuple[bytes, ...], list[NDArray[np.bool_]]] = {}
    for at, sample in enumerate(samples):
        kinds = _kinds(sample.counts)
        found = [np.ones(len(kinds), dtype=np.bool_)] if has_mixed_units(sample.counts) else [
            kind for kind in kinds.T if kind.any()]
        key = tuple(group.tobytes() for group in found)
        groups[key] = found
        alike.setdefault(key, []).append(at)
    drawn = [np.zeros((resamples, 2, *sample.sums.shape[1:])) for sample in samples]
    for key, places in alike.items():
        rng = np.random.default_rng(seed)
        for group in groups[key]:
            count = int(group.sum())
            some = slice(None) if count == len(group) else group  # a slice makes no copy
            tables = [array[some].reshape(count, -1) for at in places for array in samples[at]]
            moved = iter(mix_tables(tables, partial(_product, _weights(count, rng, resamples))))
            for at in places:
                drawn[at] += np.stack([next(moved), next(moved)], axis=1).reshape(drawn[at].shape)
    return [Totals(one[:, 0], one[:, 1]) for one in drawn]


def _product(batches: Iterable[Floats], table: Floats) -> Floats:
    import numpy as np

    return np.concatenate([weights @ table for weights in batches])


def mix_tables(tables: Sequence[Floats], mix: Callable[[Floats], Floats]) -> list[Floats]:
    """Apply `mix`, a matrix product from the left, to all tables at once. Columns of zeros are skipped."""
    import numpy as np

    used = [table.any(axis=0) for table in tables]
    moved = mix(np.concatenate([table[:, some] for table, some in zip(tables, used, strict=True)], axis=1))
    found, start = [], 0
    for some in used:
        one = np.zeros((len(moved), some.size))
        one[:, some] = moved[:, start:start + int(some.sum())]
        start += int(some.sum())
        found.append(one)
    return found


def _weights(n: int, rng: np.random.Generator, resamples: int) -> Iterator[Floats]:
    """Yield how often each of n units is drawn, as arrays of resamples x units, in batches that fit into memory."""
    import numpy as np

    size = max(_DRAWS_AT_ONCE // n, 1)
    for start in range(0, resamples, size):
        count = min(size, resamples - start)
        drawn = rng.integers(0, n, size=(count, n)) + n * np.arange(count)[:, None]
        yield np.bincount(drawn.ravel(), minlength=n * count).reshape(count, n).astype(np.float64)
