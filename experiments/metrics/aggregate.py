"""From the scores of questions to the figures of a set: means, set-level metrics, intervals, outcomes."""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypedDict

from agents.types import OUTCOMES, Outcome
from experiments.metrics.catalogue import GROUPS, METRICS
from experiments.metrics.means import Derived, Means, Totals, among, means_of, resampled
from experiments.metrics.metric import cut_of, family_of
from experiments.metrics.scored import Scoring

if TYPE_CHECKING:
    from experiments.metrics.means import Floats

RESAMPLES = 1000
_LEVEL = 95.0
_Z = 1.959963984540054  # of the normal distribution, at that level
_DIGITS = 10
_PLACES = {name: place for place, name in enumerate(METRICS)}


class Estimate(TypedDict):
    """A mean with its interval, over n questions.

    None where n is 0, or where a set-level metric has no finite value; for where there is no interval see `aggregate`.
    """

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
    where all resamples agree: a sample without spread says nothing of the spread of what it was drawn from; nor
    where a set-level metric has no finite value in some resample.

    Set-level metrics are what the groups derive from the means, of the set and of the same resamples. Equal rows in
    any order give equal figures, rounded to 10 digits.

    Args:
        refusing: whether the rules offer a refusal; without, the unanswerable have no unified score in any scoring.

    Returns:
        name to estimate, in the order of the groups and of the metrics in each, a family by its cut.
    """
    import numpy as np

    names = names_of(rows)
    splits = [_columns([row for row in rows if row.answerable == kind], names) for kind in (True, False)]
    first, second = (Totals(v.sum(axis=0, keepdims=True), m.sum(axis=0, keepdims=True)) for v, m in splits)
    sizes = {name: (int(first.counts[0, at]), int(second.counts[0, at])) for at, name in enumerate(names)}
    rng = np.random.default_rng(seed)
    points = figures_of(means_of((first, second), names, sizes, scoring, refusing))
    first, second = (resampled(v, m, rng, resamples) for v, m in splits)
    spread = figures_of(means_of((first, second), names, sizes, scoring, refusing))
    return {name: _estimate(name, float(points[name].values[0]), spread[name].values, sizes[points[name].basis])
            for name in sorted(points, key=_place)}


def _place(name: str) -> tuple[int, int, str]:
    return _PLACES.get(family_of(name), len(_PLACES)), cut_of(name), name


def names_of(rows: Iterable[Row]) -> list[str]:
    """What figures rest on: the metrics of the questions, and (`among`) several together."""
    own = sorted({name for row in rows for name in row.scores}, key=_place)
    return [*own, *(among(name, group.together) for group in GROUPS.values() for name in group.together
                    if set(group.together) <= set(own))]


def figures_of(means: Means) -> dict[str, Derived]:
    """Every metric of the set: its pooled mean, or what a group makes of it."""
    figures = {name: Derived(values, name) for name, values in means.pooled.items() if "&" not in name}
    for group in GROUPS.values():
        figures |= group.derive(means)
    return figures


def _columns(rows: Iterable[Row], names: Sequence[str]) -> tuple[Floats, Floats]:
    """Scores (questions by metrics, 0 where there is none) and a mask of the same shape that says where one is."""
    import numpy as np

    listed = [[score_of(row, name) for name in names] for row in rows]
    table = np.array(listed, dtype=np.float64).reshape(len(listed), len(names))
    table = table[np.lexsort(table.T[::-1])] if names else table
    mask = np.isfinite(table)
    return np.where(mask, table, 0.0), mask.astype(np.float64)


def score_of(row: Row, name: str) -> float:
    """The row's score by a name of `names_of`; nan where it has none, or lacks another that the name has with it."""
    scores = [row.scores.get(part) for part in name.split("&")]
    return math.nan if None in scores or scores[0] is None else scores[0]


def _estimate(name: str, mean: float, spread: Floats, sizes: Sequence[int]) -> Estimate:
    n = sum(sizes)
    low: float | None = None
    high: float | None = None
    if not math.isfinite(mean):
        return Estimate(mean=None, low=None, high=None, n=n)
    if n > 1 and (metric := METRICS.get(family_of(name))) is not None and metric.share:
        low, high = _wilson(mean, n)
    elif n > 1 and 1 not in sizes:
        low, high = percentiles(spread)
    return Estimate(mean=round(mean, _DIGITS), low=low, high=high, n=n)


def share_of(count: int, n: int) -> Estimate:
    """The share `count / n` with its 95 % interval (Wilson, 1927)."""
    low, high = _wilson(count / n, n) if n > 1 else (None, None)
    return Estimate(mean=round(count / n, _DIGITS) if n else None, low=low, high=high, n=n)


def _wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's score interval: the shares that a test at this level would not reject."""
    scale = 1 + _Z**2 / n
    middle = (share + _Z**2 / (2 * n)) / scale
    half = _Z / scale * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return round(max(middle - half, 0.0), _DIGITS), round(min(middle + half, 1.0), _DIGITS)


def percentiles(spread: Floats) -> tuple[float | None, float | None]:
    """The bootstrap's interval; none where it has no width, or no bound."""
    import numpy as np

    usable = spread[~np.isnan(spread)]
    if not len(usable) or np.isinf(usable).any():
        return None, None
    tail = (100.0 - _LEVEL) / 2
    low, high = (round(float(bound), _DIGITS) for bound in np.percentile(usable, [tail, 100.0 - tail]))
    return (low, high) if low < high else (None, None)
