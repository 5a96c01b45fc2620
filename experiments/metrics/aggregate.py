"""Aggregate scores of questions into figures of a set: means, set-level metrics, intervals, outcomes."""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from ragbed.agents.types import OUTCOMES, Outcome
from ragbed.experiments.metrics.intervals import Interval, effective_questions, wilson
from ragbed.experiments.metrics.sample import RESAMPLES, Sample, Totals, draw_resamples, sum_units
from ragbed.experiments.metrics.scored import ScoredRow, Scoring
from ragbed.experiments.metrics.scoring import get_score, is_share, metric_order, score_names, score_ranges, set_figures

_DIGITS = 10


class Estimate(TypedDict):
    """A mean with its 95 % interval, over n questions. The mean is None if n is 0 or a set-level metric is not finite.
    The bounds are None if the metric is not finite in some resample."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class ScoredQuestion:
    """A question's scores without its record: read from storage, averaged over repeats, or from another program."""

    answerable: bool
    outcome: Outcome
    scores: Mapping[str, float | None]


def count_outcomes(rows: Sequence[ScoredRow]) -> dict[str, int]:
    """Count the questions per outcome. Outcomes that do not occur count 0."""
    counts: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
    for row in rows:
        counts[row.outcome] = counts.get(row.outcome, 0) + 1
    return counts


def make_sample(rows: Sequence[ScoredRow], clusters: Sequence[str] | None = None) -> Sample:
    """Sum the rows' scores by unit; the order of rows does not matter. Units are rows or, if any rows share a cluster,
    clusters."""
    import numpy as np

    names = score_names(rows)
    own = [name for name in names if "&" not in name]  # these come first; None becomes nan
    table = np.array([[row.scores.get(name) for name in own] for row in rows], dtype=np.float64)
    of_several = np.array([[get_score(row, name) for name in names[len(own):]] for row in rows], dtype=np.float64)
    table = np.hstack([table.reshape(len(rows), len(own)), of_several.reshape(len(rows), len(names) - len(own))])
    split = np.array([not row.answerable for row in rows], dtype=np.intp)
    order = np.lexsort((*table.T[::-1], split))
    table, split = table[order], split[order]
    units = np.arange(len(rows))
    if clusters is not None and len(set(clusters)) < len(rows):
        units = np.unique(clusters, return_inverse=True)[1][order]
    sums, counts = sum_units(table, units, split)
    if len(sums) < len(rows):
        order = np.lexsort([*sums.reshape(len(sums), -1).T[::-1], *counts.reshape(len(sums), -1).T[::-1]])
        sums, counts = sums[order], counts[order]
    shares = {name for name, values in zip(names, table.T, strict=True)
              if is_share(name) and np.isin(values[np.isfinite(values)], (0, 1)).all()}
    return Sample(names, Totals(sums, counts), score_ranges(names), frozenset(shares))


def aggregate(rows: Sequence[ScoredRow], scoring: Scoring = "corrected", seed: int = 0, resamples: int = RESAMPLES,
              refusing: bool = True, clusters: Sequence[str] | None = None) -> dict[str, Estimate]:
    """Compute the mean of every metric over the questions that it applies to, with a 95 % interval.

    The interval of a share is Wilson's score interval, which is valid for shares of 0 and 1 and for few questions. If
    questions share clusters, it uses their effective number (`intervals.effective_questions`). Other metrics use the
    bootstrap (`sample.draw_resamples`, `intervals.bootstrap_interval`) of questions or whole clusters. If a split has
    little spread, such as one question or equal scores, its interval is widened within the range of its scores
    (`intervals.room`, `intervals.widen`). Set-level metrics are computed from the means of the set, and their intervals
    from the means of the same resamples. A metric that is not finite in some resample has no interval.

    Equal rows in any order give equal figures, rounded to 10 digits.

    Args:
        refusing: whether the rules offer a refusal. If not, unanswerable questions have no unified score.
        clusters: the cluster of each row's question.

    Returns estimates by name, in the order of the groups and of their metrics; a family's metrics are sorted by cut.
    """
    sample = make_sample(rows, clusters)
    sizes, whole, corners = sample.sizes, sample.units.whole(), sample.corners()
    drawn, = draw_resamples([sample.units], seed, resamples)
    figures = set_figures(sizes, scoring, refusing)
    found = {}
    for name in sorted(figures, key=metric_order):
        figure = figures[name]
        mean, n = float(sample.values(figure, whole)[0]), sum(sizes[figure.names[0]])
        found[name] = (estimate(mean, sample.interval(name, figure, mean, drawn, corners), n) if math.isfinite(mean)
                       else Estimate(mean=None, low=None, high=None, n=n))
    return found


def estimate(mean: float, bounds: Interval, n: int) -> Estimate:
    """Return a rounded estimate, without bounds if the interval has no width."""
    low, high = bounds
    if low is None or high is None or low >= high:
        return Estimate(mean=round(mean, _DIGITS), low=None, high=None, n=n)
    return Estimate(mean=round(mean, _DIGITS), low=round(low, _DIGITS), high=round(high, _DIGITS), n=n)


def estimate_share(count: int, n: int) -> Estimate:
    """Compute the share `count / n` of independent questions with its 95 % interval (Wilson, 1927)."""
    return estimate(count / n, wilson(count / n, n), n) if n else Estimate(mean=None, low=None, high=None, n=0)


def estimate_clustered_share(hits: Sequence[bool], clusters: Sequence[str]) -> Estimate:
    """Compute the share of hits with its 95 % interval, by cluster if any two questions share one."""
    totals = Counter(clusters)
    if len(totals) == len(hits):
        return estimate_share(sum(hits), len(hits))
    import numpy as np

    right = Counter(cluster for cluster, hit in zip(clusters, hits, strict=True) if hit)
    worth = effective_questions(*(np.array([counts[name] for name in totals], dtype=np.float64) for counts in (right,
                                                                                                               totals)))
    share = sum(hits) / len(hits)
    return estimate(share, wilson(share, worth), len(hits))
