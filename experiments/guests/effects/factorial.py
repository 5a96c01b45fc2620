"""Estimate and test the main effects and interactions of factors, as far as a run's cells determine them."""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

from ragbed.experiments.metrics.intervals import (
    NO_INTERVAL,
    Interval,
    clip_interval,
    degrees_of_freedom,
    effective_size,
    max_unseen_share,
    student_quantile,
)
from ragbed.experiments.metrics.sample import has_mixed_units
from ragbed.experiments.metrics.scoring import score_range

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragbed.experiments.metrics.metric import Floats

Levels = Mapping[str, str | None]
Term = tuple[str, ...]  # a factor, or two that interact
_NOTHING = 1e-12


@dataclass(frozen=True, slots=True)
class Design:
    """Cells as rows of levels, and the terms that they determine. A term is one factor or a pair. It is determined if
    all its levels, or combinations of levels, occur under at least one combination of the other factors. If a factor
    has no effect in a cell, the cell counts for every level of it when other factors are compared."""

    cells: tuple[Levels, ...]  # the level of each factor in each cell; None if the factor has no effect there
    levels: Mapping[str, tuple[str, ...]]  # levels of each factor that varies, in order of occurrence

    @property
    def crossed(self) -> bool:
        """Return whether every combination of levels is a cell."""
        return {tuple(cell.values()) for cell in self.cells}.issuperset(product(*self.levels.values()))

    @property
    def terms(self) -> list[Term]:
        """Return the terms that the cells determine: first single factors, then pairs."""
        every = [*((name,) for name in self.levels), *combinations(self.levels, 2)]
        return [term for term in every if len(self.means(term))]

    def means(self, names: Term) -> Floats:
        """Return the contrasts (combinations x cells) that give the marginal mean of each level or combination of
        levels. The mean is over the combinations of the other factors under which all of the term's levels were run,
        with equal weights. If there are none, the result has no rows."""
        import numpy as np

        others = {tuple((name, level) for name, level in cell.items() if name not in names)
                  for cell in self.cells if all(cell[name] is not None for name in names)}
        found = []
        for rest in sorted(others, key=str):
            alike = [all(None in (level, cell[name]) or level == cell[name] for name, level in rest)
                     for cell in self.cells]
            asked = np.array([[fits and at == tuple(cell[name] for name in names)
                               for fits, cell in zip(alike, self.cells, strict=True)]
                              for at in self.combinations(names)], dtype=np.float64)
            if asked.any(axis=1).all():
                found.append(asked / asked.sum(axis=1, keepdims=True))
        return np.mean(found, axis=0) if found else np.empty((0, len(self.cells)))

    def combinations(self, names: Term) -> list[tuple[str, ...]]:
        """Return the combinations of levels in the order of the rows of `means`."""
        return list(product(*(self.levels[name] for name in names)))

    def effects(self, names: Term) -> Floats:
        """Return the contrasts that give the effects. For one factor, an effect is a level's mean minus the mean over
        the levels. For two factors, it is the mean of a combination minus the prediction from the main effects."""
        import numpy as np

        centred = self.means(names).reshape(*(len(self.levels[name]) for name in names), -1)
        for axis in range(len(names)):
            centred = centred - centred.mean(axis=axis, keepdims=True)
        return np.asarray(centred.reshape(-1, centred.shape[-1]))


def varying_levels(cells: Sequence[Levels], factors: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the levels of each factor that has several, in order of occurrence."""
    levels = {name: tuple(dict.fromkeys(level for cell in cells if (level := cell[name]) is not None))
              for name in factors}
    return {name: among for name, among in levels.items() if len(among) > 1}


def make_design(cells: Sequence[Levels], factors: Sequence[str]) -> Design:
    """Return the design of all factors that vary."""
    levels = varying_levels(cells, factors)
    return Design(tuple({name: cell[name] for name in levels} for cell in cells), levels)


class _FittedPart(NamedTuple):
    """The contribution of one independent sample (all questions or one split) to the means of cells."""

    means: Floats
    covariance: Floats  # covariance of these means
    worth: float  # effective number of clusters
    limits: tuple[float, float]  # lower and upper bound of its contribution to a mean

    def along(self, contrast: Floats) -> tuple[float, float]:
        """Return the part's contributions to the contrast and to the contrast's variance."""
        variance = float(contrast @ self.covariance @ contrast)
        return float(contrast @ self.means), variance if variance > _rounding_limit(contrast, self.covariance) else 0.0

    def ends(self, apart: bool) -> tuple[float, float]:
        """Return the least and the most that the part can contribute to a mean or (`apart`) to a difference of means.
        """
        least, most = self.limits
        return (least - most, most - least) if apart else self.limits


def _rounding_limit(contrast: Floats, covariance: Floats) -> float:
    """Return the limit below which a contrast's variance is only rounding error and counts as 0."""
    return max(_NOTHING * float(contrast**2 @ covariance.diagonal()), _NOTHING**2)


@dataclass(frozen=True, slots=True)
class Fit:
    """The means of cells with cluster-robust covariance, as a sum of independent parts."""

    parts: tuple[_FittedPart, ...]

    def estimates(self, contrasts: Iterable[Floats], apart: bool) -> Iterator[tuple[float, Interval]]:
        """Estimate each contrast and its Student interval, with the degrees of freedom of Welch (Biometrika 34, 1947)
        and Satterthwaite. If a part has no spread, the interval is widened by `intervals.room`. The squared distances
        of the parts add up, as in `intervals.widen`. `apart`: whether contrasts are differences of means."""
        for contrast in contrasts:
            value = math.fsum(part.along(contrast)[0] for part in self.parts)
            below, above = self._reach(contrast, apart)
            if math.isinf(below) or math.isinf(above):
                yield value, NO_INTERVAL
                continue
            least, most = (math.fsum(ends) for ends in zip(*(part.ends(apart) for part in self.parts), strict=True))
            yield value, clip_interval((min(least, value), max(most, value)), Interval(value - below, value + above))

    def _reach(self, contrast: Floats, apart: bool) -> tuple[float, float]:
        known: list[tuple[float, float]] = []
        below, above = [0.0], [0.0]
        for part in self.parts:
            added, variance = part.along(contrast)
            if part.worth > 1 and variance:
                known.append((variance, part.worth - 1))
                continue
            left, (least, most) = max_unseen_share(max(part.worth, 1.0)), part.ends(apart)
            below.append(left * max(added - least, 0.0))
            above.append(left * max(most - added, 0.0))
        if known:
            total = math.fsum(variance for variance, _ in known)
            below[0] = above[0] = student_quantile(degrees_of_freedom(*known)) * math.sqrt(total)
        return math.hypot(*below), math.hypot(*above)

    def test(self, contrasts: Floats) -> float | None:
        """Compute the p of Wald's test that all contrasts are zero.

        Every question is in every cell, so the statistic is Hotelling's T^2 ("The generalization of Student's ratio",
        1931). For q contrasts, F = T^2 (v - q + 1) / (q v) has q and v - q + 1 degrees of freedom. For one part, v is
        its number of clusters minus one. For several parts, v is computed as by Krishnamoorthy and Yu (Statistics and
        Probability Letters 66, 2004). p is at least 2^(1 - G), the smallest p that swapping levels within G clusters
        can give. Return None if a part has too few clusters.
        """
        import numpy as np
        from scipy.special import fdtrc

        means = np.sum([part.means for part in self.parts], axis=0)
        scaled, fixed = _axes(contrasts, means, np.sum([part.covariance for part in self.parts], axis=0))
        least = max(_least(math.fsum(part.worth for part in self.parts)), *(
            _least(part.worth) for part in self.parts if _axes(contrasts, part.means, part.covariance)[1]), 0.0)
        q = len(scaled)
        if fixed or not q:
            return least if fixed else 1.0
        if any(part.worth <= q for part in self.parts):
            return None
        parts = [(scaled @ part.covariance @ scaled.T, part.worth - 1) for part in self.parts]
        freedom = (q + q**2) / math.fsum(float((one @ one).trace() + one.trace() ** 2) / free for one, free in parts)
        f = float(((scaled @ means) ** 2).sum()) * (freedom - q + 1) / (q * freedom)
        return max(float(fdtrc(q, freedom - q + 1, f)), least)


def _axes(contrasts: Floats, means: Floats, covariance: Floats) -> tuple[Floats, bool]:
    """Return uncorrelated combinations of the contrasts, each divided by its standard error. Also return whether any
    contrast without spread differs from zero."""
    import numpy as np

    spread, axes = np.linalg.eigh(contrasts @ covariance @ contrasts.T)
    seen = spread > max(_rounding_limit(contrast, covariance) for contrast in contrasts)
    others = axes[:, ~seen].T @ contrasts @ means
    return (axes[:, seen].T @ contrasts / np.sqrt(spread[seen])[:, None],
            bool(np.abs(others).max(initial=0.0) > math.sqrt(_NOTHING)))


def _least(clusters: float) -> float:
    return float(2.0 ** max(1 - clusters, -1000.0))


def fit(scores: Floats, split: NDArray[np.intp], clusters: NDArray[np.intp], metric: str) -> Fit:
    """Fit the means of cells, with a covariance by cluster (Liang and Zeger, Biometrika 73, 1986).

    The two splits are fitted separately. If any cluster has questions of both, they are fitted as one part, in which
    only variation within splits counts as random. Every question is in every cell, so its difficulty cancels in
    contrasts.

    Args:
        scores: cells by questions.
        split: split of each question: always 0, or 0 and 1 if the figure is the mean of two splits.
        clusters: cluster of each question, numbered from 0.
    """
    import numpy as np

    counts = np.zeros((int(clusters.max(initial=-1)) + 1, 2))
    np.add.at(counts, (clusters, split), 1)
    sizes = counts.sum(axis=0)
    kinds = np.flatnonzero(sizes)
    if has_mixed_units(counts):
        weights = 1 / (sizes[split] * len(kinds))
        means = np.array([np.bincount(split, row, 2) for row in scores]) / sizes
        levelled = scores - means[:, split] + (scores @ weights)[:, None]
        return Fit((_part(levelled, weights, clusters, min(map(effective_size, counts.T[kinds])),
                          score_range(metric)),))
    return Fit(tuple(
        _part(scores[:, split == kind], np.full(int(sizes[kind]), 1 / (sizes[kind] * len(kinds))),
              np.unique(clusters[split == kind], return_inverse=True)[1], effective_size(counts[:, kind]),
              score_range(metric, answerable=not kind)) for kind in kinds))


def _part(scores: Floats, weights: Floats, clusters: NDArray[np.intp], worth: float,
          limits: tuple[float, float]) -> _FittedPart:
    """Fit one part. Every cluster is in every cell, so this is the covariance of a mean, as in statsmodels' WLS with
    `cov_type="cluster"`."""
    import numpy as np

    size = np.bincount(clusters, weights).astype(np.float64)
    share = float(size.sum())
    own = np.array([np.bincount(clusters, weights * row) for row in scores])
    means = own.sum(axis=1)
    spread = own - means[:, None] / share * size
    few = worth / (worth - 1) if worth > 1 else 1.0
    return _FittedPart(means, few * (spread @ spread.T), worth, (share * limits[0], share * limits[1]))
