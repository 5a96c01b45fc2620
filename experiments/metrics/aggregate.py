"""From the scores of questions to the figures of a set: means, set-level metrics, intervals, outcomes."""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from agents.types import OUTCOMES
from experiments.metrics.bootstrap import RESAMPLES, around, drawn
from experiments.metrics.bounds import Interval, effective, widened, wilson, within
from experiments.metrics.catalogue import GROUPS
from experiments.metrics.means import Derived, Means, Totals, means_of
from experiments.metrics.sample import Sample, ScoredRow, place, sample_of
from experiments.metrics.scored import Scoring

if TYPE_CHECKING:
    from experiments.metrics.means import Floats

_DIGITS = 10


class Estimate(TypedDict):
    """A mean with its interval, over n questions.

    None where n is 0, or where a set-level metric has no finite value; without bounds, where it has none in some
    resample.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int


def outcomes(rows: Sequence[ScoredRow]) -> dict[str, int]:
    """How many questions ended in each outcome, all that a model's answer may have named."""
    counts: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
    for row in rows:
        counts[row.outcome] = counts.get(row.outcome, 0) + 1
    return counts


def aggregate(rows: Sequence[ScoredRow], scoring: Scoring = "corrected", seed: int = 0, resamples: int = RESAMPLES,
              refusing: bool = True, clusters: Sequence[str] | None = None) -> dict[str, Estimate]:
    """The mean of every metric over the questions that it applies to, with a 95 % interval.

    That of a share is Wilson's score interval, which holds for shares of 0 and 1 and for few questions: over as many
    questions as there are, or where some share a cluster as many as they are worth (`bounds.effective`).

    That of another metric is the bootstrap's (`drawing.around`). Questions, or whole clusters where some share one, are
    drawn within the answerable and the unanswerable, so that both splits keep their size; where a cluster has
    questions of both kinds, from all at once. What has little spread to draw from, such as a split of one question, or
    one in which all have the same score, gets the room that the range of its scores leaves (`bounds.room`), joined
    to the bootstrap's limits as independent ones are (MOVER: Zou and Donner, Statistics in Medicine 27, 2008); where
    splits share clusters, added.

    Set-level metrics are what the groups derive from the means, of the set and of the same resamples. There is no
    interval where one has no finite value in some resample. Equal rows in any order give equal figures, rounded to 10
    digits.

    Args:
        refusing: whether the rules offer a refusal; without, the unanswerable have no unified score in any scoring.
        clusters: of each row, the cluster of its question; None where every question is by itself.

    Returns:
        name to estimate, in the order of the groups and of the metrics in each, a family by its cut.
    """
    import numpy as np

    made = sample_of(rows, clusters)

    def figures(sums: Floats, counts: Floats) -> dict[str, Derived]:
        splits = Totals(sums[:, 0], counts[:, 0]), Totals(sums[:, 1], counts[:, 1])
        return figures_of(means_of(splits, made.names, made.sizes, scoring, refusing))

    points = figures(made.sums.sum(axis=0)[None], made.counts.sum(axis=0)[None])
    spread = figures(*drawn(made.sums, made.counts, np.random.default_rng(seed), resamples))
    corners = figures(*made.corners())
    return {name: _estimate(made, name, points[name], spread[name].values, corners[name].values)
            for name in sorted(points, key=place)}


def figures_of(means: Means) -> dict[str, Derived]:
    """Every metric of the set: its pooled mean, or what a group makes of it."""
    figures = {name: Derived(values, name) for name, values in means.pooled.items() if "&" not in name}
    for group in GROUPS.values():
        figures |= group.derive(means)
    return figures


def _estimate(made: Sample, name: str, point: Derived, spread: Floats, corners: Floats) -> Estimate:
    mean, n = float(point.values[0]), sum(made.sizes[point.basis])
    if not math.isfinite(mean):
        return Estimate(mean=None, low=None, high=None, n=n)
    return estimate(mean, interval(made, name, point.basis, mean, spread, corners), n)


def interval(made: Sample, name: str, basis: str, mean: float, spread: Floats, corners: Floats) -> Interval:
    """The interval of a metric's figure; see `aggregate`.

    Args:
        basis: the name whose questions it is over.
        spread: the figure in every resample; `corners`, that of `Sample.corners`.
    """
    if name in made.shares:
        return wilson(mean, made.worth(name))
    found = around(mean, spread, made.units(basis))
    return within(corners[4:], widened(mean, found, corners[:4], made.together))


def estimate(mean: float, bounds: Interval, n: int) -> Estimate:
    """A mean as it is kept. Without bounds where the interval has no width: it says nothing then."""
    low, high = bounds
    if low is None or high is None or low >= high:
        return Estimate(mean=round(mean, _DIGITS), low=None, high=None, n=n)
    return Estimate(mean=round(mean, _DIGITS), low=round(low, _DIGITS), high=round(high, _DIGITS), n=n)


def share_of(count: int, n: int) -> Estimate:
    """The share `count / n` of independent ones with its 95 % interval (Wilson, 1927)."""
    return estimate(count / n, wilson(count / n, n), n) if n else Estimate(mean=None, low=None, high=None, n=0)


def share_among(hits: Sequence[bool], clusters: Sequence[str]) -> Estimate:
    """The share of those that are hits, with its 95 % interval, by cluster where any two share one.

    Args:
        clusters: of each.
    """
    totals = Counter(clusters)
    if len(totals) == len(hits):
        return share_of(sum(hits), len(hits))
    import numpy as np

    right = Counter(cluster for cluster, hit in zip(clusters, hits, strict=True) if hit)
    worth = effective(np.array([right[name] for name in totals], dtype=np.float64),
                      np.array([*totals.values()], dtype=np.float64))
    share = sum(hits) / len(hits)
    return estimate(share, wilson(share, worth), len(hits))
