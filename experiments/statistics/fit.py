"""The fit of a design to scores, with a covariance that allows for clusters, and tests of what it says."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.metrics.bounds import NO_INTERVAL, Interval, student, unseen, weight, within
from experiments.statistics.design import Design

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from experiments.metrics.means import Floats

_NOTHING = 1e-12


@dataclass(frozen=True, slots=True)
class Fit:
    """Coefficients of a design.

    Attributes:
        covariance: of the coefficients, robust to whatever hangs together within a cluster.
        clusters: how many, as they weigh.
    """

    coefficients: Floats
    covariance: Floats
    clusters: float

    def values(self, contrasts: Floats) -> tuple[Floats, Floats]:
        """Estimates and their standard errors."""
        import numpy as np

        variances = np.einsum("ij,jk,ik->i", contrasts, self.covariance, contrasts)
        return contrasts @ self.coefficients, np.sqrt(np.clip(variances, 0.0, None))

    def interval(self, value: float, error: float, limits: tuple[float, float]) -> Interval:
        """Student's; where the clusters do not differ at all, the room that they leave (`bounds.room`).

        Args:
            limits: of the value; what a model says of combinations that no cell has may be beyond.
        """
        limits = min(limits[0], value), max(limits[1], value)
        if self.clusters <= 1 or error < _NOTHING:
            if not all(map(math.isfinite, limits)):
                return NO_INTERVAL
            left = unseen(max(self.clusters, 1.0))
            return within(limits, Interval(value - left * (value - limits[0]), value + left * (limits[1] - value)))
        half = student(self.clusters - 1) * error
        return within(limits, Interval(value - half, value + half))

    def test(self, contrasts: Floats) -> float | None:
        """The p of Wald's test that all the contrasts are zero.

        Its statistic is taken for Hotelling's T^2 ("The generalization of Student's ratio", 1931), which it is where
        every question is in every cell: F = T^2 (G - q) / (q (G - 1)), with q and G - q degrees of freedom for q
        contrasts over G clusters. It is never 0: not below 2^(1 - G), the least that swapping the levels within so
        many clusters could give.

        Returns:
            None where there are no more clusters than contrasts.
        """
        import numpy as np
        from scipy.special import fdtrc

        values, _ = self.values(contrasts)
        least = float(2.0 ** max(1 - self.clusters, -1000.0))
        spread, axes = np.linalg.eigh(contrasts @ self.covariance @ contrasts.T)
        along = axes.T @ values
        seen = spread > max(_NOTHING * float(spread.max(initial=0.0)), _NOTHING**2)
        if np.abs(along[~seen]).max(initial=0.0) > math.sqrt(_NOTHING):
            return least  # a difference without any spread
        q = int(seen.sum())
        if not q:
            return 1.0
        if self.clusters <= q:
            return None
        wald = float((along[seen] ** 2 / spread[seen]).sum())
        f = wald / q * (self.clusters - q) / (self.clusters - 1)
        return max(float(fdtrc(q, self.clusters - q, f)), least)


def fit(design: Design, scores: Floats, weights: Floats, clusters: NDArray[np.intp]) -> Fit:
    """Weighted least squares by statsmodels, its covariance by cluster (Liang and Zeger, Biometrika 73, 1986).

    Every question is in every cell, so that what makes it hard or easy is no part of any contrast between cells. The
    questions of a cluster come in as one, with their mean and their weight, which changes neither coefficients nor
    covariance.

    Args:
        scores: cells by questions.
        weights: of the questions, which add up to 1; `clusters` of them, from 0.
    """
    import numpy as np
    from statsmodels.regression.linear_model import WLS

    count = int(clusters.max()) + 1
    size = np.bincount(clusters, weights, count).astype(np.float64)
    means = np.array([np.bincount(clusters, weights * row, count) for row in scores]) / size
    matrix = design.matrix()
    basis = np.linalg.svd(matrix)[2][:design.rank()].T  # of all that the cells determine; the rest is 0
    model = WLS(means.ravel(), np.repeat(matrix @ basis, count, axis=0), np.tile(size, len(scores)))
    groups = np.tile(np.arange(count), len(scores))
    fitted = model.fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False})
    weighs = weight(size)
    few = weighs / (weighs - 1) if weighs > 1 else 1.0
    return Fit(basis @ fitted.params, basis @ fitted.cov_params() @ basis.T * few, weighs)
