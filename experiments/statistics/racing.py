"""Verdicts on pairs of cells while their questions are still being asked, valid whenever one looks.

That a pair differs: of the 5 % three are spent on looking early, two on the whole run's own test, for pairs that go on
to the last question (Haybittle, British Journal of Radiology 44, 1971; Peto et al., British Journal of Cancer 34,
1976). Early it is a bet on what that test assumes: that cells may be swapped within any unit, a question or all that
share documents. Given the size of a change its sign is then a fair coin, so that the product of exp(l x) / cosh(l x)
over the changes x does not grow in the mean, whatever l is made of earlier changes and of the size of this one. The
mean of those for l and -l reaches 1/a with a probability of at most a (Ville). No well-kept library on PyPI has it (see
`anytime.py`).

That no difference is to be expected: the chance that the whole run would find one, by what was asked, is small. This
can give no false difference, and costs some of the true ones.

The interval, of the mean change of a question of known range, is the hedged capital of Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting" (Journal of the Royal Statistical Society B 86, 2024;
arXiv:2010.09686).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbed.experiments.metrics.intervals import ALPHA, NO_INTERVAL, Interval
from ragbed.experiments.statistics.testing import holm

if TYPE_CHECKING:
    from ragbed.experiments.metrics.metric import Floats

EARLY = 0.03  # of ALPHA
DOUBT = 1 / 3  # of the units that are left: the chance below which no difference is expected
_FIRST = 0.1  # of the units: before, nothing is said to be no difference
_LOOKS, _LEAST = 40, 8  # of a race, at most; units from one to the next
_TARGET = 0.25  # share of the units after which bets are to be won
_GRID = 401  # means that the interval tries
_BOLDEST = 0.5  # share of the capital that is bet at most


@dataclass(frozen=True, slots=True)
class RaceVerdict:
    """What a race says of a pair of cells.

    Attributes:
        units: after how many it was given; that of the whole run where the pair went on to the end.
        p: valid whenever one looks, before the correction for all pairs; `p_holm`, after it.
        higher: which has the higher score, 0 or 1, where the pair differs; else None.
        beaten: whether there is none, because one of both is worse than a third.
        chance: that the whole run would find a difference, where none is expected.
    """

    units: int
    p: float
    p_holm: float
    higher: int | None = None
    beaten: bool = False
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class Race:
    """A race as far as it has come: verdicts on pairs, by their place; the cells that are `out`, each with the pair by
    which it is worse; and those still `running`, none where it has ended, which are asked the units up to `until`."""

    verdicts: dict[int, RaceVerdict]
    out: dict[int, int]
    running: set[int]
    until: int


def looks(units: int) -> list[int]:
    """Return after how many units a race looks at its pairs."""
    step = max(math.ceil(units / _LOOKS), _LEAST)
    return [*range(step, units, step), units]


def race(pairs: Sequence[tuple[int, int]], units: int, changes: Callable[[int, list[int]], Floats | None],
         whole: Callable[[int], float | None]) -> Race:
    """Follow a race as far as its answers are there.

    Args:
        pairs: of cells, by their numbers.
        units: of the whole run.
        changes: given a number of units and places of pairs, the score of the second cell of each less the first's
            over that many units, in the order in which they are asked: units by pairs. None where not all is there.
        whole: the p of the whole run's test of a pair, which went on to the end; None where it has none.
    """
    verdicts: dict[int, RaceVerdict] = {}
    out: dict[int, int] = {}
    values = [1.0] * len(pairs)
    for look in looks(units):
        open_pairs = [place for place in range(len(pairs)) if place not in verdicts]
        found = changes(look, open_pairs) if open_pairs else None
        if found is None:
            return Race(verdicts, out, {cell for place in open_pairs for cell in pairs[place]}, look)
        for place, p in zip(open_pairs, early_p(found, units, len(pairs)), strict=True):
            last = whole(place) if look == units else None
            values[place] = min(1.0, p * ALPHA / EARLY, 1.0 if last is None else last * ALPHA / (ALPHA - EARLY))
        corrected = [p or 0.0 for p in holm(values)]
        columns = dict(zip(open_pairs, found.T, strict=True))
        for place in open_pairs:
            if corrected[place] < ALPHA:
                higher = int(columns[place].sum() > 0)
                verdicts[place] = RaceVerdict(look, values[place], corrected[place], higher)
                out.setdefault(pairs[place][1 - higher], place)
        others = len(pairs) - sum(one.higher is not None for one in verdicts.values())
        for place in (place for place in open_pairs if place not in verdicts):
            beaten, last_look = bool(out.keys() & set(pairs[place])), look == units
            chance = None if beaten or last_look else chance_of_difference(columns[place], units, others)
            if chance is None or (look >= _FIRST * units and chance < DOUBT * (1 - look / units)):
                verdicts[place] = RaceVerdict(look, values[place], corrected[place], None, beaten, chance)
    return Race(verdicts, out, set(), units)


def early_p(changes: Floats, units: int, pairs: int) -> list[float]:
    """Compute the p of each column of changes, units by pairs, valid whenever one looks: the least that 1/e was so far.
    `units` is how many there will be; of so many pairs the bets are laid out for the correction."""
    import numpy as np

    seen = np.arange(1, len(changes) + 1)[:, None]
    total = np.cumsum(changes**2, axis=0) * units / seen  # of all squares, as far as is known with this change's size
    bold = math.sqrt(2 * math.log(2 * pairs / EARLY) / _TARGET)
    bet = np.divide(bold, np.sqrt(total), out=np.zeros_like(total), where=total > 0) * changes
    fair = np.logaddexp(bet, -bet) - math.log(2)
    log_e = np.logaddexp(np.cumsum(bet - fair, axis=0), np.cumsum(-bet - fair, axis=0)) - math.log(2)
    return [float(p) for p in np.exp(-np.maximum(log_e.max(axis=0), 0.0))]


def chance_of_difference(changes: Floats, units: int, pairs: int) -> float:
    """Compute how likely the whole run finds a difference, by the changes so far alone and the normal approximation of
    its test, corrected for so many pairs. Two changes more of the usual size, as in the interval of Bonett and Price,
    keep a few equal answers from being certain."""
    import numpy as np
    from scipy.special import ndtr, ndtri

    n, squares, differ = len(changes), float(changes @ changes), int(np.count_nonzero(changes))
    spread = (squares + 2 * (squares / differ if differ else 1.0)) / (n + 2)
    total = float(changes.sum()) * units / n
    error = math.sqrt(max(spread - (total / units) ** 2, spread * 1e-9) * units * (units - n) / n)
    needed = -ndtri((ALPHA - EARLY) / pairs / 2) * math.sqrt(spread * units)
    return float(ndtr((total - needed) / error) + ndtr((-total - needed) / error))


def anytime_interval(changes: Floats, low: float, high: float, alpha: float = ALPHA) -> Interval:
    """Compute the last interval of a confidence sequence, which holds the mean of questions' changes at all times at
    once; they are between `low` and `high`, in the order in which they were asked."""
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
        up = np.cumsum(np.log1p(np.minimum(bets, _BOLDEST / tried) * off), axis=0)
        down = np.cumsum(np.log1p(-np.minimum(bets, _BOLDEST / (1 - tried)) * off), axis=0)
    kept = tried[np.maximum(up, down).max(axis=0) < math.log(2 / alpha)]
    if not len(kept):
        return NO_INTERVAL
    ends = max(float(kept[0]) - step, 0.0), min(float(kept[-1]) + step, 1.0)
    return Interval(*(low + (high - low) * end for end in ends))
