"""The fit of a design to scores, with a covariance that allows for clusters, and tests of what it says."""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from experiments.metrics.bounds import NO_INTERVAL, Interval, student, unseen, within
from experiments.statistics.design import Design

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from experiments.metrics.means import Floats

_NOTHING = 1e-12


@dataclass(frozen=True, slots=True)
class Stratum:
    """Questions that are a sample by themselves: all, or of two splits each.

    Attributes:
        scores: cells by questions.
        weights: of the questions, which add up to 1; `clusters` of them, from 0.
        worth: how many clusters of one size these are worth.
        limits: of a score.
        share: of the stratum in the figure that is fitted; shares add up to 1.
    """

    scores: Floats
    weights: Floats
    clusters: NDArray[np.intp]
    worth: float
    limits: tuple[float, float]
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Part:
    """What a stratum adds to the coefficients of a design, and to their covariance.

    Attributes:
        limits: of what it adds to a mean.
    """

    coefficients: Floats
    covariance: Floats
    worth: float
    limits: tuple[float, float]

    def along(self, contrast: Floats) -> tuple[float, float]:
        """What it adds to the contrast, and to its variance."""
        variance = float(contrast @ self.covariance @ contrast)
        return float(contrast @ self.coefficients), variance if variance > _rest(contrast, self.covariance) else 0.0

    def ends(self, apart: bool) -> tuple[float, float]:
        """The least and the most that it adds to a mean, or to how far two of them are apart."""
        least, most = self.limits
        return (least - most, most - least) if apart else self.limits

    def fixed(self, contrasts: Floats) -> bool:
        """Whether any sum of the contrasts is apart from zero without any spread."""
        return bool(_Axes.of(contrasts, self.coefficients, self.covariance).fixed)


class _Axes(NamedTuple):
    """Sums of contrasts whose estimates do not hang together.

    Attributes:
        scaled: those that have a spread, over their standard errors: rows as `contrasts`.
        wald: the sum of the squares of their estimates.
        fixed: whether any of the others is apart from zero.
    """

    scaled: Floats
    wald: float
    fixed: bool

    @classmethod
    def of(cls, contrasts: Floats, coefficients: Floats, covariance: Floats) -> _Axes:
        import numpy as np

        spread, axes = np.linalg.eigh(contrasts @ covariance @ contrasts.T)
        seen = spread > max(_rest(contrast, covariance) for contrast in contrasts)
        others = axes[:, ~seen].T @ contrasts @ coefficients
        scaled = axes[:, seen].T @ contrasts / np.sqrt(spread[seen])[:, None]
        return cls(scaled, float(((scaled @ coefficients) ** 2).sum()),
                   bool(np.abs(others).max(initial=0.0) > math.sqrt(_NOTHING)))


def _rest(contrast: Floats, covariance: Floats) -> float:
    """The variance of the contrast below which it is what rounding leaves of none."""
    return max(_NOTHING * float(contrast**2 @ covariance.diagonal()), _NOTHING**2)


@dataclass(frozen=True, slots=True)
class Fit:
    """Coefficients of a design, robust to whatever hangs together within a cluster: the sum of independent parts."""

    parts: tuple[Part, ...]

    def estimates(self, contrasts: Iterable[Floats], apart: bool) -> Iterator[tuple[float, Interval]]:
        """Each contrast with its interval: Student's, with the degrees of freedom of Welch ("The generalization of
        'Student's' problem when several different population variances are involved", Biometrika 34, 1947) and
        Satterthwaite; a part without any spread has the room that its clusters leave (`bounds.room`), and the
        squares of both add up (`bounds.widened`).

        Args:
            apart: whether these are differences of means; what a model says of combinations that no cell has may be
                beyond what scores can be.
        """
        for contrast in contrasts:
            value = math.fsum(part.along(contrast)[0] for part in self.parts)
            below, above = self._reach(contrast, apart)
            if math.isinf(below) or math.isinf(above):
                yield value, NO_INTERVAL
                continue
            least, most = (math.fsum(ends) for ends in zip(*(part.ends(apart) for part in self.parts), strict=True))
            yield value, within((min(least, value), max(most, value)), Interval(value - below, value + above))

    def _reach(self, contrast: Floats, apart: bool) -> tuple[float, float]:
        """How far below and above its value the contrast may be."""
        known: list[tuple[float, float]] = []
        below, above = [0.0], [0.0]
        for part in self.parts:
            added, variance = part.along(contrast)
            if part.worth > 1 and variance:
                known.append((variance, part.worth - 1))
                continue
            left, (least, most) = unseen(max(part.worth, 1.0)), part.ends(apart)
            below.append(left * max(added - least, 0.0))
            above.append(left * max(most - added, 0.0))
        if known:
            total = math.fsum(variance for variance, _ in known)
            freedom = total**2 / math.fsum(variance**2 / free for variance, free in known)
            below[0] = above[0] = student(freedom) * math.sqrt(total)
        return math.hypot(*below), math.hypot(*above)

    def test(self, contrasts: Floats) -> float | None:
        """The p of Wald's test that all the contrasts are zero.

        Its statistic is taken for Hotelling's T^2 ("The generalization of Student's ratio", 1931), which it is where
        every question is in every cell: F = T^2 (v - q + 1) / (q v), with q and v - q + 1 degrees of freedom for q
        contrasts. Of one part v is its clusters less one; of several it is that of Krishnamoorthy and Yu ("Modified
        Nel and Van der Merwe test for the multivariate Behrens-Fisher problem", Statistics and Probability Letters
        66, 2004), which for one contrast is Welch's. p is never below 2^(1 - G), the least that swapping the levels
        within G clusters could give: of all parts, and of each that differs without any spread.

        Returns:
            None where any part has too few clusters for so many contrasts.
        """
        import numpy as np
        from scipy.special import fdtrc

        least = max(_swapped(math.fsum(part.worth for part in self.parts)),
                    *(_swapped(part.worth) for part in self.parts if part.fixed(contrasts)), 0.0)
        found = _Axes.of(contrasts, np.sum([part.coefficients for part in self.parts], axis=0),
                         np.sum([part.covariance for part in self.parts], axis=0))
        q = len(found.scaled)
        if found.fixed or not q:
            return least if found.fixed else 1.0
        if any(part.worth <= q for part in self.parts):
            return None
        freedom = (q + q**2) / math.fsum(_traces(found.scaled @ part.covariance @ found.scaled.T) / (part.worth - 1)
                                         for part in self.parts)
        f = found.wald * (freedom - q + 1) / (q * freedom)
        return max(float(fdtrc(q, freedom - q + 1, f)), least)


def fit(design: Design, strata: Sequence[Stratum]) -> Fit:
    """Weighted least squares by statsmodels, the covariance by cluster (Liang and Zeger, Biometrika 73, 1986), each
    stratum by itself.

    Every question is in every cell, so that what makes it hard or easy is no part of any contrast between cells. The
    questions of a cluster come in as one, with their mean and their weight, which changes neither coefficients nor
    covariance.
    """
    return Fit(tuple(_part(design, stratum) for stratum in strata))


def _part(design: Design, stratum: Stratum) -> Part:
    import numpy as np
    from statsmodels.regression.linear_model import WLS

    count, weights = int(stratum.clusters.max()) + 1, stratum.weights
    size = np.bincount(stratum.clusters, weights, count).astype(np.float64)
    means = np.array([np.bincount(stratum.clusters, weights * row, count) for row in stratum.scores]) / size
    matrix = design.matrix()
    basis = np.linalg.svd(matrix)[2][:design.rank()].T  # of all that the cells determine; the rest is 0
    model = WLS(means.ravel(), np.repeat(matrix @ basis, count, axis=0), np.tile(size, len(means)))
    groups = np.tile(np.arange(count), len(means))
    fitted = model.fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False})
    few = stratum.worth / (stratum.worth - 1) if stratum.worth > 1 else 1.0
    return Part(stratum.share * (basis @ fitted.params),
                stratum.share**2 * few * (basis @ fitted.cov_params() @ basis.T), stratum.worth,
                (stratum.share * stratum.limits[0], stratum.share * stratum.limits[1]))


def _swapped(clusters: float) -> float:
    return float(2.0 ** max(1 - clusters, -1000.0))


def _traces(matrix: Floats) -> float:
    import numpy as np

    return float(np.trace(matrix @ matrix) + np.trace(matrix) ** 2)
