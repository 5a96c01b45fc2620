"""From the scores of questions to the figures of a set: means, set-level metrics, intervals, outcomes."""
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
    """A mean with its interval, over n questions.

    None where n is 0, or where a set-level metric has no finite value; without bounds, where it has none in some
    resample.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class ScoredQuestion:
    """A question with scores that are no record: stored ones, means over repeats, those of another program."""

    answerable: bool
    outcome: Outcome
    scores: Mapping[str, float | None]


def count_outcomes(rows: Sequence[ScoredRow]) -> dict[str, int]:
    """Count how many questions ended in each outcome; none of `OUTCOMES` is left out."""
    counts: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
    for row in rows:
        counts[row.outcome] = counts.get(row.outcome, 0) + 1
    return counts


def make_sample(rows: Sequence[ScoredRow], clusters: Sequence[str] | None = None) -> Sample:
    """Return the rows' scores by unit, the same in whichever order the rows come. Without clusters, or where no two
    rows share one, every row is a unit."""
    import numpy as np

    names = score_names(rows)
    own = [name for name in names if "&" not in name]  # they come first, and None is nan
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

    That of a share is Wilson's score interval, which holds for shares of 0 and 1 and for few questions: over as many
    questions as there are, or where some share a cluster as many as they are worth (`intervals.effective_questions`).

    That of another metric is the bootstrap's (`sample.draw_resamples`, `intervals.around`), of questions or of whole
    clusters. What has little spread to draw from, such as a split of one question, or one in which all have the same
    score, gets the room that the range of its scores leaves (`intervals.room`, `intervals.widened`).

    Set-level metrics are what the groups derive from the means, of the set and of the same resamples. There is no
    interval where one has no finite value in some resample. Equal rows in any order give equal figures, rounded to 10
    digits. Where the rules are not `refusing`, offering no refusal, the unanswerable have no unified score in any
    scoring; each row may have the cluster of its question. Returns name to estimate, in the order of the groups and of
    the metrics in each, a family by its cut.
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
    """Return a mean as it is kept. It has no bounds where the interval has no width, which says nothing."""
    low, high = bounds
    if low is None or high is None or low >= high:
        return Estimate(mean=round(mean, _DIGITS), low=None, high=None, n=n)
    return Estimate(mean=round(mean, _DIGITS), low=round(low, _DIGITS), high=round(high, _DIGITS), n=n)


def estimate_share(count: int, n: int) -> Estimate:
    """Compute the share `count / n` of independent ones with its 95 % interval (Wilson, 1927)."""
    return estimate(count / n, wilson(count / n, n), n) if n else Estimate(mean=None, low=None, high=None, n=0)


def estimate_clustered_share(hits: Sequence[bool], clusters: Sequence[str]) -> Estimate:
    """Compute the share of those that are hits, with its 95 % interval, by clusters where any two share one."""
    totals = Counter(clusters)
    if len(totals) == len(hits):
        return estimate_share(sum(hits), len(hits))
    import numpy as np

    right = Counter(cluster for cluster, hit in zip(clusters, hits, strict=True) if hit)
    worth = effective_questions(*(np.array([counts[name] for name in totals], dtype=np.float64) for counts in (right,
                                                                                                               totals)))
    share = sum(hits) / len(hits)
    return estimate(share, wilson(share, worth), len(hits))
