"""Means of a set's scores, of the set itself or of every resample of it: what set-level metrics are derived from."""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from experiments.metrics.scored import Scoring

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_DRAWS_AT_ONCE = 1_000_000


def among(name: str, together: Sequence[str]) -> str:
    """The name of a metric's mean over the questions that have all of these metrics, itself among them."""
    return "&".join([name, *(other for other in together if other != name)])


class Totals(NamedTuple):
    """Sums of the scores, and numbers of the questions that have one: arrays of resamples by metrics."""

    sums: Floats
    counts: Floats


class Derived(NamedTuple):
    """A set-level metric: its value per resample, nan where it has none. It is over the questions that `basis` has."""

    values: Floats
    basis: str


@dataclass(frozen=True, slots=True)
class Means:
    """Means per resample, and their number of questions.

    Attributes:
        pooled: by name, over all questions that have the metric, or (`among`) several; nan where none has.
        splits: by name, over the answerable ones and over the unanswerable ones.
        sizes: by name, how many questions of each split have it; of the set itself, not of a resample.
        refusing: whether the rules offer a refusal.
    """

    pooled: Mapping[str, Floats]
    splits: Mapping[str, tuple[Floats, Floats]]
    sizes: Mapping[str, tuple[int, int]]
    scoring: Scoring = "corrected"
    refusing: bool = True

    def __contains__(self, name: str) -> bool:
        return name in self.pooled

    def __getitem__(self, name: str) -> Floats:
        return self.pooled[name]

    def same_questions(self, names: Sequence[str]) -> bool:
        """Whether equally many questions of each split have each of the metrics."""
        return len({self.sizes.get(name) for name in names}) == 1


def means_of(splits: tuple[Totals, Totals], names: Sequence[str], sizes: Mapping[str, tuple[int, int]],
             scoring: Scoring, refusing: bool) -> Means:
    """The means of the totals of the answerable questions and of the others."""
    first, second = (_ratio(*split) for split in splits)
    pooled = _ratio(splits[0].sums + splits[1].sums, splits[0].counts + splits[1].counts)
    places = {name: at for at, name in enumerate(names)}
    return Means({name: pooled[:, at] for name, at in places.items()},
                 {name: (first[:, at], second[:, at]) for name, at in places.items()}, sizes, scoring, refusing)


def resampled(scores: Floats, mask: Floats, rng: np.random.Generator, resamples: int) -> Totals:
    """The totals of samples of as many questions, drawn with replacement.

    Args:
        scores: questions by metrics, 0 where a question has none.
        mask: of the same shape, 1 where it has one.
    """
    import numpy as np

    n = len(scores)
    sums, counts = np.zeros((resamples, scores.shape[1])), np.zeros((resamples, scores.shape[1]))
    if n == 0:
        return Totals(sums, counts)
    for rows in _batches(resamples, max(_DRAWS_AT_ONCE // n, 1)):
        drawn = rng.integers(0, n, size=(len(rows), n)) + n * np.arange(len(rows))[:, None]
        weights = np.bincount(drawn.ravel(), minlength=n * len(rows)).reshape(len(rows), n).astype(np.float64)
        sums[rows], counts[rows] = weights @ scores, weights @ mask
    return Totals(sums, counts)


def harmonic_mean(first: Floats, second: Floats) -> Floats:
    """2ab/(a+b), 0 where both are 0, nan where either is."""
    import numpy as np

    total = first + second
    return np.divide(2 * first * second, total, out=np.where(np.isnan(total), math.nan, 0.0), where=total > 0)


def mean_of_splits(answerable: Floats, unanswerable: Floats, empty_as_zero: bool) -> Floats:
    """The mean of two means. Where one of them is nan it is the other, or half of it."""
    import numpy as np

    both = np.nan_to_num(answerable) + np.nan_to_num(unanswerable)
    present = (~np.isnan(answerable)).astype(np.float64) + ~np.isnan(unanswerable)
    halved: Floats = _ratio(both, present)
    return np.where(present == 1, both / 2, halved) if empty_as_zero else halved


def _ratio(sums: Floats, counts: Floats) -> Floats:
    import numpy as np

    return np.divide(sums, counts, out=np.full_like(sums, math.nan), where=counts > 0)


def _batches(total: int, size: int) -> Iterator[range]:
    for start in range(0, total, size):
        yield range(start, min(start + size, total))
