"""The comparison of two cells by one metric: difference, interval, test, effect size, and what could be found."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, NamedTuple

from experiments.metrics.bounds import NO_INTERVAL, Interval
from experiments.statistics.intervals import Drawn, bootstraps, of_shares, of_sides, with_zero
from experiments.statistics.pairs import Pairs
from experiments.statistics.power import ALPHA, smallest_by_error, smallest_share
from experiments.statistics.testing import holm, mcnemar, permutations

Test = Literal["McNemar", "permutation"]
_DIGITS = 10
_NOTHING = 1e-24


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two cells by one metric, over the questions that both have. Figures are None where there is none.

    Attributes:
        n: pairs; `clusters` of them that are independent: fewer where questions share documents.
        unpaired: questions that the metric applies to in one cell alone.
        before, after: the metric of the first and of the second cell over the pairs, with their 95 % intervals;
            `difference` is the second's less the first's, `low` and `high` its interval, which holds 0 where p is
            not below 0.05.
        gained, lost: pairs whose score is higher in the second cell, and lower; None for a metric of sets.
        p: of the test; `p_holm` after Holm's correction over all that are shown together.
        odds: of gained to lost, for scores of 0 and 1: (gained + 1/2) / (lost + 1/2), finite where none is lost
            (Haldane, Annals of Human Genetics 20, 1956).
        dz: Cohen's d_z, the mean difference over the standard deviation of the differences, for other scores. Pairs
            weigh as in the metric's figure: of `unified`, each split half.
        smallest: the difference that would be detected, by as much as these pairs vary; None where the test can find
            none among so few.
    """

    metric: str
    n: int
    clusters: int
    unpaired: int
    before: float | None
    after: float | None
    difference: float | None
    low: float | None
    high: float | None
    gained: int | None
    lost: int | None
    test: Test
    p: float | None
    p_holm: float | None
    odds: float | None
    dz: float | None
    smallest: float | None
    before_low: float | None = None
    before_high: float | None = None
    after_low: float | None = None
    after_high: float | None = None

    @property
    def real(self) -> bool:
        """Whether the difference is one at the level of 0.05, after the correction."""
        return self.p_holm is not None and self.p_holm < ALPHA

    @classmethod
    def of(cls, metric: str, stored: Mapping[str, Any]) -> Comparison:
        """The comparison that `plain` made of one; figures that an older ragbed did not keep are None."""
        kept: dict[str, Any] = {one.name: stored.get(one.name) for one in fields(cls)}
        return cls(**{**kept, "metric": metric})

    def plain(self) -> dict[str, Any]:
        """As a run's summary and `ragbed compare --json` hold it, the metric said beside it."""
        return {name: value for name, value in asdict(self).items() if name != "metric"}


def compare(all_pairs: Sequence[Pairs], seed: int = 0) -> list[Comparison]:
    """The comparisons that are shown together, in the order of the pairs, p corrected for their number.

    Scores of 0 and 1 have McNemar's test and the interval of Bonett and Price, where no two questions share a
    document; all else has the permutation test and the bootstrap's interval, by documents where questions share them.
    """
    finite = [bool(pairs.n) and all(map(math.isfinite, pairs.observed())) for pairs in all_pairs]
    exact = [pairs.share and not pairs.clustered for pairs in all_pairs]
    many = sum(pairs.n > 0 for pairs in all_pairs)
    drawn = [pairs for pairs, some, one in zip(all_pairs, finite, exact, strict=True) if some and not one]
    found = iter(list(zip(bootstraps(drawn, seed), permutations(drawn, seed), strict=True)))
    made = [_compared(pairs, one, _Found() if not some else _of_shares(pairs, many) if one else
                      _of_figures(pairs, *next(found), many))
            for pairs, some, one in zip(all_pairs, finite, exact, strict=True)]
    return [replace(one, p_holm=_rounded(p)) for one, p in zip(made, holm([one.p for one in made]), strict=True)]


class _Found(NamedTuple):
    interval: Interval = NO_INTERVAL
    p: float | None = None
    smallest: float | None = None
    sides: tuple[Interval, Interval] = (NO_INTERVAL, NO_INTERVAL)


def _compared(pairs: Pairs, exact: bool, found: _Found) -> Comparison:
    first, second = pairs.observed() if pairs.n else (math.nan, math.nan)
    gained, lost = pairs.flips() if pairs.scores is not None else (None, None)
    return Comparison(
        metric=pairs.metric, n=pairs.n, clusters=len(pairs.units.sums), unpaired=pairs.unpaired,
        before=_rounded(first), after=_rounded(second), difference=_rounded(second - first),
        low=_rounded(found.interval.low), high=_rounded(found.interval.high), gained=gained, lost=lost,
        test="McNemar" if exact else "permutation", p=_rounded(found.p), p_holm=None,
        odds=None if gained is None or lost is None or not pairs.share else _rounded((gained + 0.5) / (lost + 0.5)),
        dz=_dz(pairs),
        smallest=_rounded(found.smallest),
        before_low=_rounded(found.sides[0].low), before_high=_rounded(found.sides[0].high),
        after_low=_rounded(found.sides[1].low), after_high=_rounded(found.sides[1].high))


def _of_shares(pairs: Pairs, comparisons: int) -> _Found:
    gained, lost = pairs.flips()
    p = mcnemar(gained, lost)
    return _Found(with_zero(of_shares(gained, lost, pairs.n), p), p,
                  smallest_share(pairs.n, (gained + lost) / pairs.n, comparisons), of_sides(pairs))


def _of_figures(pairs: Pairs, drawn: Drawn, p: float | None, comparisons: int) -> _Found:
    units = len(pairs.units.sums)
    smallest = smallest_by_error(drawn.error, units, units - 1, comparisons) if drawn.error else None
    return _Found(with_zero(drawn.difference, p), p, smallest, (drawn.first, drawn.second))


def _dz(pairs: Pairs) -> float | None:
    if pairs.scores is None or pairs.share or pairs.n < 2:
        return None
    change, weights = pairs.scores[:, 1] - pairs.scores[:, 0], pairs.weights
    mean = float(weights @ change)
    variance = float(weights @ (change - mean) ** 2) / (1 - float(weights @ weights))
    return _rounded(mean / math.sqrt(variance)) if variance > _NOTHING else None


def _rounded(value: float | None) -> float | None:
    return round(value, _DIGITS) if value is not None and math.isfinite(value) else None
