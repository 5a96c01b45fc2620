"""Paired scores and tests of two cells, Holm's correction, and the smallest detectable difference.

A difference is detectable if a two-sided paired test finds it with probability `POWER`. The test's level is `ALPHA`
divided by the number of comparisons.

The tests are implemented here for two reasons. scipy.stats.permutation_test can neither swap clusters together nor
share draws between comparisons. statsmodels' `mcnemar` and `multipletests` are short formulas behind a slow import. The
test suite checks this module against both libraries.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ragbed.experiments.metrics.aggregation import fill_unjudged, unjudged_share
from ragbed.experiments.metrics.intervals import ALPHA
from ragbed.experiments.metrics.metric import BY_SPLIT, ScoredRow, Scoring, SetFigure, pooled_mean
from ragbed.experiments.metrics.sample import Sample, Totals, mix_tables, sum_units
from ragbed.experiments.metrics.scoring import count_scores, get_score, is_share, score_ranges, set_figures
from ragbed.experiments.statistics.units import DEVIATION, WITHIN, Clusters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragbed.experiments.metrics.metric import Floats

_DIGITS = 10
_HIGH = 0.1  # a note reports intraclass correlations from this value on


@dataclass(frozen=True, slots=True)
class Pairs:
    """The scores of one metric for the questions of two cells."""

    metric: str
    figure: SetFigure  # computes the metric from scores
    questions: tuple[str, ...]  # ids of the pairs, in order
    units: Totals  # units x splits x sides x names; a unit is a question or a cluster
    scores: Floats | None  # pairs x sides; None for a set-level metric
    answerable: tuple[bool, ...]  # whether each pair's question is answerable in the first cell
    unpaired: int = 0  # questions to which the metric applies in only one cell
    bounds: tuple[float, float] | None = None  # of the difference, if answers are unjudged (`metrics.aggregation`)

    @property
    def n(self) -> int:
        return len(self.questions)

    @property
    def share(self) -> bool:
        """Return whether every score is 0 or 1. Means over repeats may lie between."""
        return is_share(self.metric) and self.scores is not None and bool(
            ((self.scores == 0) | (self.scores == 1)).all())

    @property
    def clustered(self) -> bool:
        """Return whether any two questions are one unit."""
        return len(self.units.sums) < self.n

    def flips(self) -> tuple[int, int]:
        """Count the pairs whose score is higher, and lower, in the second cell. Both are 0 for a set-level metric."""
        if self.scores is None:
            return 0, 0
        change = self.scores[:, 1] - self.scores[:, 0]
        return int((change > 0).sum()), int((change < 0).sum())

    @property
    def weights(self) -> Floats:
        """Return the weight of each pair in the metric's mean."""
        import numpy as np

        split = np.array([not answerable and self.metric == BY_SPLIT for answerable in self.answerable], dtype=np.intp)
        sizes = np.bincount(split, minlength=2)
        return np.asarray(1 / (sizes[split] * np.count_nonzero(sizes)))

    def side(self, side: int) -> Sample:
        """Return the scores of one of the cells."""
        return Sample(self.figure.names, self.units.side(side), score_ranges(self.figure.names),
                      frozenset([self.metric] if self.share else []))

    def figures(self, totals: Totals) -> tuple[Floats, Floats]:
        """Compute the metric of both cells for each draw of totals (splits x sides x names); nan if undefined."""
        first, second = (self.side(side).values(self.figure, totals.side(side)) for side in (0, 1))
        return first, second

    def changes(self, totals: Totals) -> Floats:
        """Compute the second cell's metric minus the first's, for each draw; nan if undefined."""
        import numpy as np

        first, second = self.figures(totals)
        with np.errstate(invalid="ignore"):
            return second - first

    def observed(self) -> tuple[float, float]:
        """Compute the metric of both cells over the pairs."""
        first, second = self.figures(self.units.whole())
        return float(first[0]), float(second[0])


def pair_scores(metric: str, first: Mapping[str, ScoredRow], second: Mapping[str, ScoredRow],
             clusters: Mapping[str, str], scoring: Scoring = "corrected", refusing: bool = True) -> Pairs:
    """Pair two cells' questions by id. For `unified`, skip a question whose gold was dropped in only one of the cells,
    since the right answers differ. `refusing`: whether the rules of both cells offer a refusal."""
    import numpy as np

    rows, bounds = [*first.values(), *second.values()], None
    of_set = not any(metric in row.scores for row in rows)
    figures = set_figures(count_scores(rows) if of_set else {metric: (len(rows), 0)}, scoring, refusing)
    figure = figures[metric] if metric in figures else SetFigure((metric,), pooled_mean)
    before, after = ({name: row for name, row in cell.items() if not math.isnan(get_score(row, figure.names[0]))}
                     for cell in (first, second))
    both = sorted(name for name in before.keys() & after.keys()
                  if metric != BY_SPLIT or before[name].answerable == after[name].answerable)
    scores = np.array([[[get_score(cell[question], name) for name in figure.names] for cell in (before, after)]
                       for question in both]).reshape(len(both), 2, len(figure.names))
    unit = np.unique([clusters.get(name, name) for name in both], return_inverse=True)[1].astype(np.intp)
    split = np.array([[not cell[name].answerable for name in both] for cell in (before, after)], dtype=np.intp)
    sides = [sum_units(scores[:, side], unit, split[side]) for side in (0, 1)]
    if both and any(row.scores.get(unjudged_share(metric)) for row in rows):
        worst, best = (pair_scores(
            metric, dict(zip(first, fill_unjudged(first.values(), 1 - value), strict=True)), dict(zip(
                second, fill_unjudged(second.values(), value), strict=True)), clusters, scoring, refusing).observed()
            for value in (0.0, 1.0))
        bounds = round(worst[1] - worst[0], _DIGITS), round(best[1] - best[0], _DIGITS)
    return Pairs(metric, figure, tuple(both), Totals(*(np.stack(of, axis=2) for of in zip(*sides, strict=True))),
                 None if of_set else scores[:, :, 0], tuple(before[name].answerable for name in both),
                 len(before.keys() | after.keys()) - len(both), bounds)


POWER = 0.8
DISCORDANCE = 0.25  # assumed before a run: the share of questions whose outcome differs between two cells
_NEARLY = 1e-9
_STEPS = 25  # bisection steps in the search for the smallest difference
_MANY = 60  # with more units than this, the smallest possible p is never the limit
SWAPS = 9_999
_EXACT = 13  # up to this many differing units, all swaps are tried: they are fewer than SWAPS
_AT_ONCE = 200_000  # largest product of units and swaps that is computed in one step
_CLOSE = 1e-10  # figures that are this close differ only by the order of summation


def mcnemar(gained: int, lost: int) -> float:
    """Compute the two-sided p of McNemar's exact test (1947). Its null hypothesis is that gains and losses are equally
    likely."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(gained, lost), gained + lost, 0.5)))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Correct each p by Holm's method ("A simple sequentially rejective multiple test procedure", 1979). Values keep
    their order. None means that there was no test, and is not counted."""
    tests = sorted((p, place) for place, p in enumerate(values) if p is not None)
    corrected: list[float | None] = [None] * len(values)
    highest = 0.0
    for rank, (p, place) in enumerate(tests):
        highest = max(highest, min(1.0, p * (len(tests) - rank)))
        corrected[place] = highest
    return corrected


def permutation(pairs: Pairs, seed: int = 0, swaps: int = SWAPS) -> float | None:
    """Compute the two-sided p of the paired permutation test. Its null hypothesis is that cells are exchangeable.

    The statistic is the difference of the two figures, even for set-level metrics. Questions that share a document are
    swapped together. If few pairs differ, every swap is tried. Otherwise p is (as extreme + 1) / (drawn + 1), which is
    never 0 (Phipson and Smyth, 2010). Returns None if the difference is not finite.
    """
    return permutations([pairs], seed, swaps)[0]


def permutations(all_pairs: Sequence[Pairs], seed: int = 0, swaps: int = SWAPS) -> list[float | None]:
    """Compute `permutation` for each set of pairs. To save time, sets with equal numbers of units share the swaps."""
    import numpy as np

    values: list[float | None] = [None] * len(all_pairs)
    alike: dict[int, list[int]] = {}
    for place, pairs in enumerate(all_pairs):
        first, second = pairs.observed()
        if not math.isfinite(second - first):
            continue
        changes = _deltas(pairs)
        differing = changes[changes.any(axis=1)]
        units = len(differing)
        if units > _EXACT:
            alike.setdefault(len(changes), []).append(place)
            continue
        ways = ((np.arange(2**units)[:, None] >> np.arange(units)) & 1).astype(np.float64)
        values[place] = _count_extreme(pairs, ways @ differing) / 2**units
    for units, places in alike.items():
        shifts = mix_tables([_deltas(all_pairs[place]) for place in places], partial(_sum_swaps, units, swaps, seed))
        for place, shift in zip(places, shifts, strict=True):
            values[place] = (_count_extreme(all_pairs[place], shift) + 1) / (swaps + 1)
    return values


def _deltas(pairs: Pairs) -> Floats:
    """Return the second cell's sums and counts minus the first's, as an array of units x columns."""
    import numpy as np

    changes = np.stack([of[:, :, 1] - of[:, :, 0] for of in pairs.units], axis=1)
    return changes.reshape(len(changes), -1)


def _sum_swaps(units: int, swaps: int, seed: int, table: Floats) -> Floats:
    """Draw random swaps and sum the table's rows over the units that each swap exchanges. Return swaps x columns."""
    import numpy as np

    rng, columns = np.random.default_rng(seed), table.T.copy()
    size = max(_AT_ONCE // units, 1)  # swaps per step, so that they fit into the processor's cache
    shapes = ((min(size, swaps - start), units) for start in range(0, swaps, size))
    # not a matrix product, whose threads wait for each other on busy cores
    return np.concatenate([np.einsum("wu,cu->wc", rng.integers(0, 2, shape, dtype=np.uint8).astype(np.float64), columns)
                           for shape in shapes])


def _count_extreme(pairs: Pairs, shift: Floats) -> int:
    """Count the swaps whose difference is undefined or at least as large as the observed one."""
    import numpy as np

    whole, (first, second) = pairs.units.whole(), pairs.observed()
    moved = shift.reshape(len(shift), 2, *whole.sums[0, :, 0].shape)
    totals = Totals(*(np.stack([of[:, :, 0] + moved[:, at], of[:, :, 1] - moved[:, at]], axis=2)
                      for at, of in enumerate(whole)))
    return int(np.sum(~(np.abs(pairs.changes(totals)) < abs(second - first) - _CLOSE)))


def planned_difference(metric: str, answerable: int, unanswerable: int = 0, comparisons: int = 1,
            clusters: Sequence[tuple[int, int]] | None = None) -> float | None:
    """Compute the smallest difference between two cells that this many questions can detect. It needs no results.

    Shares of independent questions use McNemar's test and assume `DISCORDANCE`. Everything else uses a test of means
    (for `unified`, of two splits' means) and assumes `DEVIATION`. Differences within a cluster are assumed to have the
    correlation `WITHIN`. For clusters of m questions this gives Kish's design effect 1 + (m - 1) x `WITHIN` ("Survey
    Sampling", 1965). `clusters` has each cluster's numbers of answerable and unanswerable questions; by default every
    question is its own cluster. Returns None if no difference within the metric's range is detectable.
    """
    n, clusters = answerable + unanswerable, clusters or [(1, 0)] * answerable + [(0, 1)] * unanswerable
    if not n:
        return None
    if is_share(metric) and len(clusters) == n:
        return smallest_share_difference(n, comparisons=comparisons)
    by_split = metric == "unified" and answerable > 0 and unanswerable > 0
    error = DEVIATION / math.sqrt(planned_worth(metric, clusters))
    smallest = smallest_difference(error, len(clusters), len(clusters) - 1 - by_split, comparisons)
    return smallest if smallest is not None and smallest <= 1 else None


def planned_worth(metric: str, clusters: Sequence[tuple[int, int]]) -> float:
    """Compute the effective number of independent questions that `planned_difference` assumes. `clusters` has each
    cluster's numbers of answerable and unanswerable questions."""
    answerable, unanswerable = map(sum, zip(*clusters, strict=True))
    by_split = metric == "unified" and answerable > 0 and unanswerable > 0
    one, other = (1 / (2 * answerable), 1 / (2 * unanswerable)) if by_split else (1 / (answerable + unanswerable),) * 2
    alone = answerable * one**2 + unanswerable * other**2
    joined = math.fsum((first * one + second * other) ** 2 for first, second in clusters)
    return 1 / ((1 - WITHIN) * alone + WITHIN * joined)


def describe_assumptions(metric: str, clustered: bool = False) -> str:
    """Describe what `planned_difference` assumes about two cells' answers."""
    within = f", with a correlation of {WITHIN} between questions over the same documents" if clustered else ""
    if is_share(metric):
        return f"two cells differ in {DISCORDANCE:.0%} of the questions{within}"
    return f"the differences of two cells have a standard deviation of {DEVIATION}{within}"


def smallest_share_difference(n: int, discordance: float = DISCORDANCE, comparisons: int = 1) -> float | None:
    """Compute the smallest difference of two paired shares that McNemar's exact test over `n` pairs detects, if the
    share `discordance` of pairs differs. Returns None if n is too small even when all differing pairs agree in
    direction."""
    low, high = 0.0, 1.0
    if mcnemar_power(n, high, discordance, comparisons) < POWER:
        return None
    for _ in range(_STEPS):  # bisection works because power grows with the difference
        middle = (low + high) / 2
        low, high = (low, middle) if mcnemar_power(n, middle, discordance, comparisons) >= POWER else (middle, high)
    return high


def mcnemar_power(n: int, difference: float, discordance: float = DISCORDANCE, comparisons: int = 1) -> float:
    """Compute the exact power of McNemar's exact test, summed over the number of differing pairs."""
    import numpy as np
    from scipy.special import bdtr

    differ = max(discordance, difference)
    if n == 0 or differ == 0:
        return 0.0
    counts, most = _critical_counts(n, ALPHA / comparisons / 2)
    likely = np.diff(bdtr(np.arange(n + 1), n, differ), prepend=0.0)[counts]
    one_way = (differ + difference) / (2 * differ)
    return float(likely @ (bdtr(most, counts, one_way) + bdtr(most, counts, 1 - one_way)))


@lru_cache(maxsize=8)
def _critical_counts(n: int, tail: float) -> tuple[NDArray[np.int64], Floats]:
    """Return the numbers of differing pairs at which the test can be significant and, for each, the largest count of
    the rarer direction that is still significant."""
    import numpy as np
    from scipy.special import bdtr, bdtrik

    counts = np.arange(n + 1)
    most = np.floor(np.nan_to_num(bdtrik(tail * (1 + _NEARLY), counts, 0.5)))  # first guess, at least 0
    most -= bdtr(most, counts, 0.5) > tail
    return counts[most >= 0], most[most >= 0]


def smallest_difference(error: float, units: int, freedom: int, comparisons: int = 1) -> float | None:
    """Compute the smallest difference with this standard error that the permutation test detects.

    It is error x (t(1 - alpha/2) + t(power)) by Student's distribution. If only k swaps on either side are rare enough
    to be significant, it is larger by 1/(4k), the loss of power in simulations of six to twelve units. Return None if
    there is no such swap, since p is at least 2^(1 - units).
    """
    from scipy.special import stdtrit

    rare = math.floor(ALPHA / comparisons * 2.0 ** min(units - 1, _MANY))
    if freedom < 1 or rare < 1:
        return None
    reach = stdtrit(freedom, 1 - ALPHA / comparisons / 2) + stdtrit(freedom, POWER)
    return float(error * reach * (1 + 1 / (4 * rare)))


def note_correlation(scores: Iterable[Mapping[str, float]], clusters: Clusters) -> list[str]:
    """If the unit is the question, note whether scores within documents are correlated. `scores` has a mapping by
    question for each cell, or of differences for each pair; p is corrected for their number."""
    found = [] if clusters.unit != "question" else [
        one for own in scores if (one := correlate_within(own, clusters.documents))]
    high = [icc for (icc, _), p in zip(found, holm([p for _, p in found]), strict=True)
            if p is not None and p < ALPHA and icc >= _HIGH]
    return [f"Scores of questions about the same document are similar (intraclass correlation {max(high):.2f}). "
            "Intervals and tests hold only for new questions about these documents; `unit: document` also covers new "
            "documents."] if high else []


def correlate_within(scores: Mapping[str, float], groups: Mapping[str, str]) -> tuple[float, float] | None:
    """Return the intraclass correlation of scores by one-way analysis of variance (Fisher, 1925), and the p of its F
    test. Return None with fewer than two groups, if every group has one question, or if all scores are equal."""
    import numpy as np
    from scipy.special import fdtrc

    values, place = np.array(list(scores.values())), np.unique(
        [groups.get(question, question) for question in scores], return_inverse=True)[1]
    sizes = np.bincount(place)
    n, k = len(values), len(sizes)
    if k < 2 or n == k or np.ptp(values) == 0:
        return None
    means = np.bincount(place, values) / sizes
    between = float((sizes * (means - values.mean()) ** 2).sum()) / (k - 1)
    inside = float(((values - means[place]) ** 2).sum()) / (n - k)
    whole = between + ((n - float((sizes**2).sum()) / n) / (k - 1) - 1) * inside
    return (between - inside) / whole, float(fdtrc(k - 1, n - k, between / inside)) if inside else 0.0
