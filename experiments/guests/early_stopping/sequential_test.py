"""Sequential tests of pairs of cells. Verdicts stay valid however often you look while the run continues.

**Pairs that differ.** Of the 5 % error, 3 % is spent on looking early and 2 % on the whole run's own test, for pairs
that are still open at the last question (Haybittle, British Journal of Radiology 44, 1971; Peto et al., British Journal
of Cancer 34, 1976). The early test bets against the final test's null hypothesis: two cells may be swapped within any
unit (a question, or all questions that share documents). Given the size of a change, its sign is then a fair coin, so
the product of exp(l x) / cosh(l x) over the changes x does not grow on average. Each l may depend on earlier changes
and on the size of this one. The mean of the products for l and -l reaches 1/a with probability at most a (Ville). No
maintained library on PyPI has this test: `confseq` (0.0.11, 2023) needs a C++ compiler and Boost, `savvi` (0.3.1, 2024)
brings cvxpy, and `earlysign` (0.2.0) calls itself work in progress.

**Pairs without an expected difference.** A pair is closed if, given the answers so far, the whole run is unlikely to
find a difference. This cannot cause a false positive, but it misses some true differences.

**The interval** of the mean change of questions with a known range is the hedged capital of Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting" (Journal of the Royal Statistical Society B 86, 2024;
arXiv:2010.09686).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbed.experiments.metrics.intervals import ALPHA, NO_INTERVAL, Interval
from ragbed.experiments.statistics import holm

if TYPE_CHECKING:
    from ragbed.experiments.metrics.metric import Floats

EARLY = 0.03  # the part of ALPHA that early looks may spend
FUTILITY = 1 / 3  # a pair is closed if the chance of a difference is below this, times the share of units left
_MIN_SHARE = 0.1  # share of the units to ask before a pair may be closed as futile
_MAX_LOOKS, _MIN_STEP = 40, 8  # maximum looks of a race; minimum units between two looks
_TARGET = 0.25  # bets are sized to win after this share of the units
_GRID = 401  # number of means that the interval tries
_MAX_BET = 0.5  # maximum share of the capital to bet


@dataclass(frozen=True, slots=True)
class RaceVerdict:
    """The verdict on a pair of cells.

    Attributes:
        units: number of units before the verdict; all of them if the pair stayed open to the end.
        p: p-value valid at any look, before correction over all pairs; `p_holm` is corrected.
        higher: the cell with the higher score, 0 or 1, if the pair differs; otherwise None.
        beaten: whether the pair was closed because one of its cells is worse than a third one.
        chance: probability that the whole run would find a difference, if the pair was closed because that is unlikely.
    """

    units: int
    p: float
    p_holm: float
    higher: int | None = None
    beaten: bool = False
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class RaceState:
    """The state of a race after its last look at the available answers.

    Attributes:
        verdicts: by index of the pair.
        out: the cells that are worse than another, each with the index of the deciding pair.
        running: the cells that are still in the race; empty when it has ended.
        until: number of units at which the running cells are next compared.
    """

    verdicts: dict[int, RaceVerdict]
    out: dict[int, int]
    running: set[int]
    until: int


def plan_looks(units: int) -> list[int]:
    """Return the numbers of units after which a race looks at its pairs."""
    step = max(math.ceil(units / _MAX_LOOKS), _MIN_STEP)
    return [*range(step, units, step), units]


def follow_race(pairs: Sequence[tuple[int, int]], units: int, changes: Callable[[int, list[int]], Floats | None],
                final_p: Callable[[int], float | None], alpha: float = ALPHA, early: float = EARLY,
                stays_open: Callable[[Floats], bool] = lambda changes: False,
                early_test: Callable[[Floats, int, int, float], list[float]] | None = None) -> RaceState:
    """Follow a race as far as its answers go.

    Args:
        pairs: pairs of cells, by their numbers.
        units: number of units of the whole run.
        changes: given a number of units and places of pairs, returns the score of each pair's second cell minus the
            first's, as an array of units by pairs in the order of asking; None if an answer is missing.
        final_p: returns the p-value of a pair over the whole run, or None.
        alpha: the error that all pairs together may have, and `early` the part of it that early looks may spend.
        stays_open: given a pair's changes so far, returns whether to keep it open though a difference is unlikely.
        early_test: computes p at early looks, with the arguments of `early_p`, which is the default.
    """
    verdicts: dict[int, RaceVerdict] = {}
    out: dict[int, int] = {}
    values = [1.0] * len(pairs)
    for look in plan_looks(units):
        open_pairs = [place for place in range(len(pairs)) if place not in verdicts]
        found = changes(look, open_pairs) if open_pairs else None
        if found is None:
            return RaceState(verdicts, out, {cell for place in open_pairs for cell in pairs[place]}, look)
        for place, p in zip(open_pairs, (early_test or early_p)(found, units, len(pairs), early), strict=True):
            last = final_p(place) if look == units else None
            values[place] = min(1.0, p * alpha / early, 1.0 if last is None else last * alpha / (alpha - early))
        corrected = [p or 0.0 for p in holm(values)]
        columns = dict(zip(open_pairs, found.T, strict=True))
        for place in open_pairs:
            if corrected[place] < alpha:
                higher = int(columns[place].sum() > 0)
                verdicts[place] = RaceVerdict(look, values[place], corrected[place], higher)
                out.setdefault(pairs[place][1 - higher], place)
        undecided = len(pairs) - sum(one.higher is not None for one in verdicts.values())
        for place in (place for place in open_pairs if place not in verdicts):
            beaten, is_last = bool(out.keys() & set(pairs[place])), look == units
            chance = None if beaten or is_last else chance_of_difference(columns[place], units, undecided,
                                                                         alpha - early)
            if chance is None or (look >= _MIN_SHARE * units and chance < FUTILITY * (1 - look / units)
                                  and not stays_open(columns[place])):
                verdicts[place] = RaceVerdict(look, values[place], corrected[place], None, beaten, chance)
    return RaceState(verdicts, out, set(), units)


def early_p(changes: Floats, units: int, pairs: int, early: float = EARLY) -> list[float]:
    """Compute the anytime-valid p of each column of changes (units by pairs): the smallest 1/e so far. Bets are sized
    for the number of units of the whole run, for the error of early looks and for the correction over all pairs."""
    import numpy as np

    seen = np.arange(1, len(changes) + 1)[:, None]
    total = np.cumsum(changes**2, axis=0) * units / seen  # expected sum of squares, given earlier changes
    bold = math.sqrt(2 * math.log(2 * pairs / early) / _TARGET)
    bet = np.divide(bold, np.sqrt(total), out=np.zeros_like(total), where=total > 0) * changes
    fair = np.logaddexp(bet, -bet) - math.log(2)
    log_e = np.logaddexp(np.cumsum(bet - fair, axis=0), np.cumsum(-bet - fair, axis=0)) - math.log(2)
    return [float(p) for p in np.exp(-np.maximum(log_e.max(axis=0), 0.0))]


def chance_of_difference(changes: Floats, units: int, pairs: int, level: float = ALPHA - EARLY) -> float:
    """Compute the probability that the whole run finds a difference, given the changes so far. It uses the normal
    approximation of the run's test at this level, corrected for the number of pairs. Two more changes of the usual size
    are added, as in the interval of Bonett and Price, so that a few equal answers do not seem certain."""
    import numpy as np
    from scipy.special import ndtr, ndtri

    n, squares, differ = len(changes), float(changes @ changes), int(np.count_nonzero(changes))
    spread = (squares + 2 * (squares / differ if differ else 1.0)) / (n + 2)
    total = float(changes.sum()) * units / n
    error = math.sqrt(max(spread - (total / units) ** 2, spread * 1e-9) * units * (units - n) / n)
    needed = -ndtri(level / pairs / 2) * math.sqrt(spread * units)
    return float(ndtr((total - needed) / error) + ndtr((-total - needed) / error))


def anytime_interval(changes: Floats, low: float, high: float, alpha: float = ALPHA) -> Interval:
    """Compute the last interval of a confidence sequence, which holds the mean change at all looks at once. The changes
    lie between `low` and `high` and are in the order of asking."""
    import numpy as np

    if not len(changes) or not math.isfinite(high - low):
        return NO_INTERVAL
    x, n = (np.asarray(changes) - low) / (high - low), np.arange(1, len(changes) + 1)
    spread = (0.25 + np.cumsum((x - (0.5 + np.cumsum(x)) / (n + 1)) ** 2)) / (n + 1)
    before = np.concatenate([[0.25], spread[:-1]])
    bets = np.sqrt(2 * math.log(2 / alpha) / (before * n * np.log(n + 1)))[:, None]
    tried, step = np.linspace(0, 1, _GRID, retstep=True)
    off = x[:, None] - tried
    with np.errstate(divide="ignore"):
        up = np.cumsum(np.log1p(np.minimum(bets, _MAX_BET / tried) * off), axis=0)
        down = np.cumsum(np.log1p(-np.minimum(bets, _MAX_BET / (1 - tried)) * off), axis=0)
    kept = tried[np.maximum(up, down).max(axis=0) < math.log(2 / alpha)]
    if not len(kept):
        return NO_INTERVAL
    ends = max(float(kept[0]) - step, 0.0), min(float(kept[-1]) + step, 1.0)
    return Interval(*(low + (high - low) * end for end in ends))
