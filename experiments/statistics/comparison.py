"""Compare two cells by one metric: difference, interval, test, effect size, and the smallest detectable difference."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ragbed.experiments.metrics.intervals import (
    ALPHA,
    NO_INTERVAL,
    Interval,
    Z,
    bootstrap_interval,
    effective_size,
    effective_units,
    match_test,
    room,
    standard_error,
    widen,
    wilson,
)
from ragbed.experiments.metrics.metric import BY_SPLIT
from ragbed.experiments.metrics.sample import RESAMPLES, Totals, draw_resamples, has_mixed_units
from ragbed.experiments.metrics.scoring import score_ranges
from ragbed.experiments.statistics.testing import (
    Pairs,
    holm,
    mcnemar,
    permutations,
    smallest_difference,
    smallest_share_difference,
)

if TYPE_CHECKING:
    from ragbed.experiments.metrics.metric import Floats

_DIGITS = 10

Test = Literal["McNemar", "permutation", "race"]
_NOTHING = 1e-12
_VAST = 1e300  # replaces infinity, because 0 times infinity is nan


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of two cells by one metric, over the questions that both have. Missing figures are None.

    Attributes:
        before, after: the metric of the first and the second cell, with 95 % intervals. `difference` is the second
            minus the first; its interval, `low` to `high`, excludes 0 if and only if p is below 0.05.
        gained, lost: numbers of pairs whose score is higher, or lower, in the second cell; None for a metric of
            sets.
        odds: for scores of 0 and 1, (gained + 1/2) / (lost + 1/2), which is finite even if no pair is lost (Haldane,
            Annals of Human Genetics 20, 1956).
        dz: for other scores, Cohen's d_z: the mean difference over the standard deviation of the differences, with
            pairs weighted as in the metric.
        smallest: the smallest difference that the test would detect, given the variance of these pairs; None if it
            cannot detect any.
        said: the verdict in words, if early stopping made it.
        bounds: of the difference, if answers are unjudged (`metrics.aggregation`).
    """

    metric: str
    n: int  # pairs; `clusters`: independent groups of pairs, fewer than n if questions share documents
    clusters: int
    unpaired: int  # questions to which the metric applies in only one cell
    before: float | None
    after: float | None
    difference: float | None
    low: float | None
    high: float | None
    gained: int | None
    lost: int | None
    test: Test
    p: float | None  # p of the test; `p_holm`: after Holm's correction over all comparisons shown together
    p_holm: float | None
    odds: float | None
    dz: float | None
    smallest: float | None
    before_low: float | None = None
    before_high: float | None = None
    after_low: float | None = None
    after_high: float | None = None
    said: str | None = None
    bounds: Sequence[float] | None = None

    @property
    def real(self) -> bool:
        """Return whether the difference is significant after the correction."""
        return self.p_holm is not None and self.p_holm < ALPHA

    @classmethod
    def of(cls, metric: str, stored: Mapping[str, Any]) -> Comparison:
        """Rebuild a comparison from the output of `plain`."""
        kept: dict[str, Any] = {one.name: stored.get(one.name) for one in fields(cls)}
        return cls(**{**kept, "metric": metric})

    def plain(self) -> dict[str, Any]:
        """Return the comparison as a dict without the metric, for summaries and `ragbed compare --json`."""
        return {name: value for name, value in asdict(self).items() if name != "metric" and (
            value is not None or name != "bounds")}


def compare(all_pairs: Sequence[Pairs], seed: int = 0) -> list[Comparison]:
    """Compare the two cells of each set of pairs, in order. p is corrected for the number of sets.

    Scores of 0 and 1 use McNemar's test and the interval of Bonett and Price, unless questions share documents.
    Everything else uses the permutation test and the bootstrap interval, by document if questions share documents.
    """
    finite = [bool(pairs.n) and all(map(math.isfinite, pairs.observed())) for pairs in all_pairs]
    exact = [pairs.share and not pairs.clustered for pairs in all_pairs]
    many = sum(pairs.n > 0 for pairs in all_pairs)
    found = zip(*(draw([pairs for pairs, some, one in zip(all_pairs, finite, exact, strict=True) if some and not one],
                       seed) for draw in (bootstraps, permutations)), strict=True)
    made = []
    for pairs, some, one in zip(all_pairs, finite, exact, strict=True):
        interval, p, smallest, sides = NO_INTERVAL, None, None, (NO_INTERVAL, NO_INTERVAL)
        if some and one:
            gained, lost = pairs.flips()
            before, after = pairs.observed()
            interval, sides = share_difference_interval(gained, lost, pairs.n), (wilson(before, pairs.n), wilson(after,
                                                                                                                 pairs.n))
            p, smallest = mcnemar(gained, lost), smallest_share_difference(pairs.n, (gained + lost) / pairs.n, many)
        elif some:
            (interval, error, sides), p = next(found)
            units = len(pairs.units.sums)
            smallest = smallest_difference(error, units, units - 1, many) if error else None
        made.append(_make_comparison(pairs, one, interval, p, smallest, sides))
    return [replace(one, p_holm=_round(p)) for one, p in zip(made, holm([one.p for one in made]), strict=True)]


def _make_comparison(pairs: Pairs, exact: bool, interval: Interval, p: float | None, smallest: float | None,
                     sides: tuple[Interval, Interval]) -> Comparison:
    first, second = pairs.observed() if pairs.n else (math.nan, math.nan)
    gained, lost = pairs.flips() if pairs.scores is not None else (None, None)
    low, high = match_test(second - first, interval, p)
    return Comparison(
        metric=pairs.metric, n=pairs.n, clusters=len(pairs.units.sums), unpaired=pairs.unpaired,
        before=_round(first), after=_round(second), difference=_round(second - first),
        low=_round(low), high=_round(high), gained=gained, lost=lost,
        test="McNemar" if exact else "permutation", p=_round(p), p_holm=None,
        odds=None if gained is None or lost is None or not pairs.share else _round((gained + 0.5) / (lost + 0.5)),
        dz=_dz(pairs), smallest=_round(smallest),
        before_low=_round(sides[0].low), before_high=_round(sides[0].high),
        after_low=_round(sides[1].low), after_high=_round(sides[1].high), bounds=pairs.bounds)


def _round(value: float | None) -> float | None:
    return round(value, _DIGITS) if value is not None and math.isfinite(value) else None


def _dz(pairs: Pairs) -> float | None:
    if pairs.scores is None or pairs.share or pairs.n < 2:
        return None
    change, weights = pairs.scores[:, 1] - pairs.scores[:, 0], pairs.weights
    mean = float(weights @ change)
    variance = float(weights @ (change - mean) ** 2) / (1 - float(weights @ weights))
    return _round(mean / math.sqrt(variance)) if variance > _NOTHING**2 else None


def difference_interval(pairs: Pairs, seed: int = 0) -> Interval:
    """Compute the interval of the difference of two figures. It has no bounds if it cannot be determined."""
    if pairs.n and pairs.share and not pairs.clustered:
        return share_difference_interval(*pairs.flips(), pairs.n)
    return bootstrap(pairs, seed).difference if pairs.n else NO_INTERVAL


def share_difference_interval(gained: int, lost: int, n: int) -> Interval:
    """Compute the adjusted Wald interval of the difference of two paired shares (Bonett and Price, Journal of
    Educational and Behavioral Statistics 37, 2012), which has a positive width even if no pair differs."""
    if n == 0:
        return NO_INTERVAL
    up, down = (gained + 1) / (n + 2), (lost + 1) / (n + 2)
    half = Z * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
    return Interval(max(up - down - half, -1.0), min(up - down + half, 1.0))


class Bootstrapped(NamedTuple):
    """The bootstrap of pairs: the interval of the difference, its standard error, and the intervals of both figures."""

    difference: Interval
    error: float | None
    sides: tuple[Interval, Interval]


def bootstrap(pairs: Pairs, seed: int = 0, resamples: int = RESAMPLES) -> Bootstrapped:
    """Bootstrap one set of pairs; see `bootstraps`."""
    return bootstraps([pairs], seed, resamples)[0]


def bootstraps(all_pairs: Sequence[Pairs], seed: int = 0, resamples: int = RESAMPLES) -> list[Bootstrapped]:
    """Bootstrap the difference and both figures of each set of pairs.

    Pairs are drawn whole, and pairs that share a document are drawn together. If the differences of a split have little
    spread, the interval is widened within their range: for scores between a and b, from a - b to b - a. There is no
    interval if a figure is not finite in some resample, and no standard error if all resamples agree.
    """
    found = draw_resamples([pairs.units for pairs in all_pairs], seed, resamples)
    return [_draw(pairs, totals) for pairs, totals in zip(all_pairs, found, strict=True)]


def _draw(pairs: Pairs, resamples: Totals) -> Bootstrapped:
    import numpy as np

    observed = pairs.observed()
    one, other = (made.interval(pairs.metric, pairs.figure, observed[side], resamples.side(side), made.corners())
                  for side in (0, 1) for made in [pairs.side(side)])
    change, spread = observed[1] - observed[0], pairs.changes(resamples)
    sums, counts = (array[:, :, :, 0] for array in pairs.units)
    units = effective_size(counts[:, :, 0].sum(axis=1))
    if pairs.metric == BY_SPLIT and not has_mixed_units(pairs.units.counts):
        units = effective_units(sums[:, :, 1] - sums[:, :, 0], counts[:, :, 0])
    found = bootstrap_interval(change, spread, units)
    if found.low is None or found.high is None or any(np.isinf(figures).any() for figures in pairs.figures(resamples)):
        return Bootstrapped(NO_INTERVAL, None, (one, other))
    low, high = widen(change, found, *_corners(pairs))
    interval = NO_INTERVAL if low is None or high is None or math.isclose(low, high) else Interval(low, high)
    error = standard_error(spread, units)
    return Bootstrapped(interval, error if error > _NOTHING else None, (one, other))


def _corners(pairs: Pairs) -> tuple[Floats, bool]:
    """Compute the difference for the six variants of `Sample.corners`. Also return whether the splits share units."""
    import numpy as np

    low, high = score_ranges(pairs.figure.names)
    sums, counts = pairs.units
    if not np.array_equal(counts[:, :, 0], counts[:, :, 1]):  # a question is answerable in only one cell
        sums, counts = (np.stack([of.sum(axis=1), np.zeros_like(of[:, 0])], axis=1) for of in (sums, counts))
    down, up = room(sums[:, :, 1] - sums[:, :, 0], counts[:, :, 0], low - high, high - low)
    sums, total = np.stack([sums.sum(axis=0)] * 4), counts.sum(axis=0)
    for split, at, by in ((0, 0, -down), (1, 1, -down), (0, 2, up), (1, 3, up)):
        n, before = total[split, 1], sums[at, split, 1].copy()
        sums[at, split, 1] = np.clip(before + by[split] * n, np.maximum(low[split], -_VAST) * n,
                                      np.minimum(high[split], _VAST) * n)
        sums[at, split, 0] -= by[split] * n - (sums[at, split, 1] - before)  # move the rest to the first side
    least, most = (np.multiply(end, total[:, 1], out=np.zeros_like(low), where=total[:, 1] > 0) for end in (low, high))
    sums = np.concatenate([sums, np.stack([[most, least], [least, most]]).transpose(0, 2, 1, 3)])
    return pairs.changes(Totals(sums, np.stack([total] * 6))), has_mixed_units(counts)
