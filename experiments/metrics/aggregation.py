"""Aggregate scores of questions into figures of a set: means, set-level metrics, intervals, outcomes.

Means of judge scores cover only the answers that the judge graded. The `bounds` of a mean are what it would be if every
ungraded answer had the lowest score, or the highest.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NotRequired, TypedDict

from ragbed.agents.types import OUTCOMES
from ragbed.experiments.metrics.intervals import Interval, effective_questions, wilson
from ragbed.experiments.metrics.metric import UNJUDGED, ScoredQuestion, ScoredRow, Scoring, family_of
from ragbed.experiments.metrics.sample import RESAMPLES, Sample, Totals, draw_resamples, sum_units
from ragbed.experiments.metrics.scoring import (
    METRICS,
    get_score,
    is_share,
    metric_order,
    score_names,
    score_range,
    score_ranges,
    set_figures,
)

_SHARES = ("unjudged", "_unread")  # ends of the names of scores that tell what was not graded


def is_judge_score(name: str) -> bool:
    """Return whether the metric of this name is computed from the judge's grades."""
    known = METRICS.get(family_of(name))
    return known is not None and known.judged and known is not UNJUDGED


def unjudged_share(name: str) -> str:
    """Return the name of the score that tells what share of this metric's material was not graded, or not checked for
    support; empty if the metric needs no judge and no check."""
    own = f"{name}_unjudged"
    return own if own in METRICS else "unjudged" if is_judge_score(name) else next(
        (f"{group}_unread" for group in ("sentences", "nuggets") if name.startswith(group[:-1])
         and not name.endswith(("_unread", "_uncited"))), "")


def drop_judge_scores(rows: Iterable[ScoredRow]) -> list[ScoredRow]:
    """Remove the scores of a judge that graded none of the answers. Refusals and failures lose theirs too, because a
    mean over only these would mislead."""
    rows = list(rows)
    shares: dict[str, list[float]] = {}
    for row in rows:
        for name, share in row.scores.items():
            if row.outcome == "answered" and name.endswith(_SHARES) and share is not None:
                shares.setdefault(name, []).append(share)
    lost = {name for name, values in shares.items() if min(values) == 1}
    return [ScoredQuestion(row.answerable, row.outcome, {
        name: None if unjudged_share(name) in lost else score for name, score in row.scores.items()}) for row in rows
    ] if lost else rows


def fill_unjudged(rows: Iterable[ScoredRow], value: float) -> list[ScoredRow]:
    """Give unjudged answers the judge score `value`, from 0 to 1 of the range of a judge's own column. If only some
    repeats of an answer are unjudged, it counts for their share."""
    def fill(name: str, scores: Mapping[str, float | None]) -> float | None:
        score, of = scores[name], unjudged_share(name)
        if name.endswith(_SHARES) or not (share := scores.get(of)):
            return score if score is None or not name.endswith(_SHARES) else 0.0
        low, high = (0.0, 1.0) if of == "unjudged" else score_range(name)
        return (score or 0.0) * (1 - share) + (low + value * (high - low)) * share

    return [ScoredQuestion(row.answerable, row.outcome, {name: fill(name, row.scores) for name in row.scores})
            if any(row.scores[name] for name in row.scores if name.endswith(_SHARES)) else row for row in rows]


_DIGITS = 10


class Estimate(TypedDict):
    """A mean with its 95 % interval, over n questions. The mean is None if n is 0 or a set-level metric is not finite.
    `low` and `high` are None if the metric is not finite in some resample. `bounds`: see above."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    bounds: NotRequired[list[float]]


def count_outcomes(rows: Sequence[ScoredRow]) -> dict[str, int]:
    """Count the questions per outcome. Outcomes that do not occur count 0."""
    counts: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
    for row in rows:
        counts[row.outcome] = counts.get(row.outcome, 0) + 1
    return counts


def make_sample(rows: Sequence[ScoredRow], clusters: Sequence[str] | None = None) -> Sample:
    """Sum the scores of rows, in any order, by unit: by cluster if any rows share one, otherwise by row."""
    import numpy as np

    names = score_names(rows)
    own = [name for name in names if "&" not in name]  # single scores come before joint ones; None becomes nan
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
    rows = drop_judge_scores(rows)
    lacking = {name for row in rows for name, value in row.scores.items() if value and name.endswith(_SHARES)}
    ends = [make_sample(fill_unjudged(rows, value)) for value in (0.0, 1.0)] if lacking else []
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
        if unjudged_share(name) in lacking and math.isfinite(mean):
            found[name]["bounds"] = sorted(round(float(one.values(figure, one.units.whole())[0]), _DIGITS)
                                           for one in ends)
    return found


def estimate(mean: float, bounds: Interval, n: int) -> Estimate:
    """Return a rounded estimate, without interval if that has no width."""
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


_BIN = 100  # answers in a bin of `calibration_error`


def calibration_error(confidences: Sequence[float], right: Sequence[float], as_published: bool = False) -> float | None:
    """Return the root mean square difference, from 0 to 1, between an answer's confidence and whether it is right.

    The answers are sorted by confidence and cut into bins of 100; the last bin takes the rest. A bin's difference is
    that of its two means, weighted by its size. Below 100 answers the result is None. `as_published` leaves out the
    last bin, like BrowseComp-Plus's `evaluate_run.py` (Chen et al. 2025) and the script that it copies.
    """
    import numpy as np

    if (count := len(confidences) // _BIN) == 0:
        return None
    sure, held = np.array(confidences, dtype=np.float64), np.array(right, dtype=np.float64)
    order = np.argsort(sure) if as_published else np.argsort(sure, kind="stable")
    cuts = [_BIN * place for place in range(1, count)]
    bins = list(zip(np.split(sure[order], cuts), np.split(held[order], cuts), strict=True))
    return math.sqrt(sum(len(one) / len(sure) * float(one.mean() - other.mean()) ** 2
                         for one, other in (bins[:-1] if as_published else bins)))
