"""From the scores of questions to the figures of a set: means, set-level metrics, intervals, outcomes."""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypedDict

from agents.types import OUTCOMES, Outcome
from experiments.metrics.scored import Scoring
from experiments.metrics.table import METRICS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESAMPLES = 1000
_LEVEL = 95.0
_Z = 1.959963984540054  # of the normal distribution, at that level
_DRAWS_AT_ONCE = 1_000_000
_DIGITS = 10


class Estimate(TypedDict):
    """A mean with its interval, over n questions. None where n is 0; for where there is no interval see `aggregate`."""

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
              resamples: int = RESAMPLES, refusing: bool = True) -> dict[str, Estimate]:
    """The mean of every metric over the questions that it applies to, with a 95 % interval.

    That of a share is Wilson's score interval (1927), which holds for shares of 0 and 1 and for few questions. That
    of another metric is the percentile bootstrap's: questions are resampled within the answerable and the
    unanswerable, so that both splits keep their size. There is none for one question, where a split has one, nor
    where all resamples agree: a sample without spread says nothing of the spread of what it was drawn from.

    `unified` is the mean of the two splits' means; where one split is empty, corrected scoring takes the other's
    mean and as-published counts the empty one as 0. `citation_f1` is the harmonic mean of the averaged precision
    and recall (CReSt, Table 4). Equal rows in any order give equal figures, rounded to 10 digits.

    Args:
        refusing: whether the rules offer a refusal; without, the unanswerable have no unified score in any scoring.

    Returns:
        name to estimate, in the order of the rows' scores, `citation_f1` after `citation_recall_in_view`.
    """
    import numpy as np

    names = list(dict.fromkeys(name for row in rows for name in row.scores))
    splits = [_columns(split, names) for split in (_split(rows, True), _split(rows, False))]
    totals = [(v.sum(axis=0, keepdims=True), m.sum(axis=0, keepdims=True)) for v, m in splits]
    halving = scoring == "as-published" and refusing
    points = _statistics(totals, names, halving)
    rng = np.random.default_rng(seed)
    spread = _statistics([_resampled(v, m, rng, resamples) for v, m in splits], names, halving)
    sizes = {name: [int(counts[0, at]) for _, counts in totals] for at, name in enumerate(names)}
    if "citation_f1" in points:
        sizes["citation_f1"] = sizes["citation_precision"]
    return {name: _estimate(name, float(points[name][0]), spread[name], sizes[name]) for name in _ordered(points)}


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
                halving: bool) -> dict[str, Floats]:
    """Each metric's value per resample, from the sums and counts of the two splits; nan where it has none.

    Args:
        halving: whether an empty split counts 0 in `unified`.
    """
    (sums, counts), (other_sums, other_counts) = splits
    pooled = _ratio(sums + other_sums, counts + other_counts)
    values = {name: pooled[:, at] for at, name in enumerate(names)}
    if "unified" in values:
        at = names.index("unified")
        values["unified"] = _mean_of_splits(_ratio(sums, counts)[:, at], _ratio(other_sums, other_counts)[:, at],
                                            halving)
    if {"citation_precision", "citation_recall"} <= values.keys():
        precision, recall = values["citation_precision"], values["citation_recall"]
        values["citation_f1"] = _harmonic(precision, recall)
    return values


def _ratio(sums: Floats, counts: Floats) -> Floats:
    import numpy as np

    return np.divide(sums, counts, out=np.full_like(sums, math.nan), where=counts > 0)


def _mean_of_splits(answerable: Floats, unanswerable: Floats, halving: bool) -> Floats:
    import numpy as np

    both = np.nan_to_num(answerable) + np.nan_to_num(unanswerable)
    present = (~np.isnan(answerable)).astype(np.float64) + ~np.isnan(unanswerable)
    halved: Floats = _ratio(both, present)
    return np.where(present == 1, both / 2, halved) if halving else halved


def _harmonic(precision: Floats, recall: Floats) -> Floats:
    """2PR/(P+R), 0 where both are 0."""
    import numpy as np

    total = precision + recall
    return np.divide(2 * precision * recall, total, out=np.where(np.isnan(total), math.nan, 0.0), where=total > 0)


def _estimate(name: str, mean: float, spread: Floats, sizes: Sequence[int]) -> Estimate:
    n = sum(sizes)
    low: float | None = None
    high: float | None = None
    if n > 1 and name in METRICS and METRICS[name].share:
        low, high = _wilson(mean, n)
    elif n > 1 and 1 not in sizes:
        low, high = _percentiles(spread)
    return Estimate(mean=round(mean, _DIGITS) if n else None, low=low, high=high, n=n)


def _wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's score interval: the shares that a test at this level would not reject."""
    scale = 1 + _Z**2 / n
    middle = (share + _Z**2 / (2 * n)) / scale
    half = _Z / scale * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return round(max(middle - half, 0.0), _DIGITS), round(min(middle + half, 1.0), _DIGITS)


def _percentiles(spread: Floats) -> tuple[float | None, float | None]:
    """The bootstrap's interval; none where it has no width."""
    import numpy as np

    usable = spread[~np.isnan(spread)]
    if not len(usable):
        return None, None
    tail = (100.0 - _LEVEL) / 2
    low, high = (round(float(bound), _DIGITS) for bound in np.percentile(usable, [tail, 100.0 - tail]))
    return (low, high) if low < high else (None, None)


def _ordered(values: Mapping[str, Floats]) -> list[str]:
    names = [name for name in values if name != "citation_f1"]
    if "citation_f1" in values:
        after = "citation_recall_in_view" if "citation_recall_in_view" in names else "citation_recall"
        names.insert(names.index(after) + 1, "citation_f1")
    return names
