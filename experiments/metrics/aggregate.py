"""From the scores of questions to the figures of a set: means, set-level metrics, intervals, outcomes."""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypedDict

from agents.types import OUTCOMES, Outcome
from experiments.metrics.scored import Scoring

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESAMPLES = 1000
_LEVEL = 95.0
_DRAWS_AT_ONCE = 1_000_000
_DIGITS = 10


class Estimate(TypedDict):
    """A mean with its interval, over n questions. None where n is 0; no interval where n is 1."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


class Row(Protocol):
    """A scored question."""

    @property
    def answerable(self) -> bool: ...
    @property
    def scores(self) -> Mapping[str, float | None]: ...
    @property
    def outcome(self) -> Outcome: ...


def outcomes(rows: Sequence[Row]) -> dict[str, int]:
    """How many questions ended in each outcome, all outcomes named."""
    counts: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
    for row in rows:
        counts[row.outcome] += 1
    return counts


def aggregate(rows: Sequence[Row], scoring: Scoring = "corrected", seed: int = 0,
              resamples: int = RESAMPLES) -> dict[str, Estimate]:
    """The mean of every metric over the questions that it applies to, with a 95 % percentile bootstrap interval.

    Questions are resampled within the answerable and the unanswerable, so that both splits keep their size.
    `unified` is the mean of the two splits' means; where one split is empty, corrected scoring takes the other's
    mean and as-published counts the empty one as 0. `citation_f1` is the harmonic mean of the averaged precision
    and recall (CReSt, Table 4). Equal rows in any order give equal figures, rounded to 10 digits.

    Returns:
        name to estimate, in the order of the rows' scores, `citation_f1` after `citation_recall_in_view`.
    """
    import numpy as np

    names = list(dict.fromkeys(name for row in rows for name in row.scores))
    splits = [_columns(split, names) for split in (_split(rows, True), _split(rows, False))]
    points = _statistics([(v.sum(axis=0, keepdims=True), m.sum(axis=0, keepdims=True)) for v, m in splits],
                         names, scoring)
    rng = np.random.default_rng(seed)
    drawn = [_resampled(v, m, rng, resamples) for v, m in splits]
    spread = _statistics(drawn, names, scoring)
    counts = dict(zip(names, sum(m.sum(axis=0) for _, m in splits).astype(int).tolist(), strict=True)) if names else {}
    if "citation_f1" in points:
        counts["citation_f1"] = counts["citation_precision"]
    return {name: _estimate(float(points[name][0]), spread[name], counts[name]) for name in _ordered(points)}


def _split(rows: Sequence[Row], answerable: bool) -> list[Row]:
    return [row for row in rows if row.answerable == answerable]


def _columns(rows: Sequence[Row], names: Sequence[str]) -> tuple[Floats, Floats]:
    """Scores (questions by metrics, 0 where there is none) and a mask of the same shape that says where one is."""
    import numpy as np

    listed = sorted([math.inf if (score := row.scores.get(name)) is None else score for name in names] for row in rows)
    table = np.array(listed, dtype=np.float64).reshape(len(rows), len(names))
    mask = np.isfinite(table)
    return np.where(mask, table, 0.0), mask.astype(np.float64)


def _resampled(scores: Floats, mask: Floats, rng: np.random.Generator, resamples: int) -> tuple[Floats, Floats]:
    """Sums and counts per resample (resamples by metrics)."""
    import numpy as np

    n = len(scores)
    sums, counts = np.zeros((resamples, scores.shape[1])), np.zeros((resamples, scores.shape[1]))
    if n == 0:
        return sums, counts
    for rows in _batches(resamples, max(_DRAWS_AT_ONCE // n, 1)):
        drawn = rng.integers(0, n, size=(len(rows), n)) + n * np.arange(len(rows))[:, None]
        weights = np.bincount(drawn.ravel(), minlength=n * len(rows)).reshape(len(rows), n).astype(np.float64)
        sums[rows], counts[rows] = weights @ scores, weights @ mask
    return sums, counts


def _batches(total: int, size: int) -> Iterator[range]:
    for start in range(0, total, size):
        yield range(start, min(start + size, total))


def _statistics(splits: Sequence[tuple[Floats, Floats]], names: Sequence[str],
                scoring: Scoring) -> dict[str, Floats]:
    """Each metric's value per resample, from the sums and counts of the two splits; nan where it has none."""
    (sums, counts), (other_sums, other_counts) = splits
    pooled = _ratio(sums + other_sums, counts + other_counts)
    values = {name: pooled[:, at] for at, name in enumerate(names)}
    if "unified" in values:
        at = names.index("unified")
        values["unified"] = _mean_of_splits(_ratio(sums, counts)[:, at], _ratio(other_sums, other_counts)[:, at],
                                            scoring)
    if {"citation_precision", "citation_recall"} <= values.keys():
        precision, recall = values["citation_precision"], values["citation_recall"]
        values["citation_f1"] = _harmonic(precision, recall)
    return values


def _ratio(sums: Floats, counts: Floats) -> Floats:
    import numpy as np

    return np.divide(sums, counts, out=np.full_like(sums, math.nan), where=counts > 0)


def _mean_of_splits(answerable: Floats, unanswerable: Floats, scoring: Scoring) -> Floats:
    import numpy as np

    both = np.nan_to_num(answerable) + np.nan_to_num(unanswerable)
    present = (~np.isnan(answerable)).astype(np.float64) + ~np.isnan(unanswerable)
    halved: Floats = _ratio(both, present)
    return np.where(present == 1, both / 2, halved) if scoring == "as-published" else halved


def _harmonic(precision: Floats, recall: Floats) -> Floats:
    """2PR/(P+R), 0 where both are 0."""
    import numpy as np

    total = precision + recall
    return np.divide(2 * precision * recall, total, out=np.where(np.isnan(total), math.nan, 0.0), where=total > 0)


def _estimate(mean: float, spread: Floats, n: int) -> Estimate:
    import numpy as np

    if n == 0:
        return Estimate(mean=None, low=None, high=None, n=0)
    usable = spread[~np.isnan(spread)]
    if n == 1 or not len(usable):
        return Estimate(mean=round(mean, _DIGITS), low=None, high=None, n=n)
    tail = (100.0 - _LEVEL) / 2
    low, high = np.percentile(usable, [tail, 100.0 - tail]).tolist()
    return Estimate(mean=round(mean, _DIGITS), low=round(low, _DIGITS), high=round(high, _DIGITS), n=n)


def _ordered(values: Mapping[str, Floats]) -> list[str]:
    names = [name for name in values if name != "citation_f1"]
    if "citation_f1" in values:
        after = "citation_recall_in_view" if "citation_recall_in_view" in names else "citation_recall"
        names.insert(names.index(after) + 1, "citation_f1")
    return names
