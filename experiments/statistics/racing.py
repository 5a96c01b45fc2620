"""Verdicts on pairs of cells while their questions are still being asked, valid whenever one looks.

That a pair differs: of the 5 % one is spent on looking early, four on the whole run's own test, for pairs that go on
to the last question (Haybittle, British Journal of Radiology 44, 1971; Peto et al., British Journal of Cancer 34,
1976). Early it is a bet on what that test assumes: that cells may be swapped within any unit, a question or all that
share documents. Given the size of a change its sign is then a fair coin, so that the product of exp(l x) / cosh(l x)
over the changes x does not grow in the mean, whatever l is made of earlier changes and of the size of this one. The
mean of such products, over both signs and a few l, reaches 1/a with a probability of at most a (Ville). No well-kept
library on PyPI has it (see `anytime.py`).

That no difference is to be expected: the chance that the whole run would find one, by what was asked, is below `DOUBT`.
This can give no false difference, and costs some of the true ones.

The interval, of the mean change of a question of known range, is the hedged capital of Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting" (Journal of the Royal Statistical Society B 86, 2024;
arXiv:2010.09686).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.metrics.intervals import ALPHA, Interval
from experiments.statistics.testing import holm

if TYPE_CHECKING:
    from experiments.metrics.metric import Floats

EARLY = 0.01  # of ALPHA
DOUBT = 0.2
_FIRST = 0.1  # of the units: before, nothing is said to be no difference
_LOOKS, _LEAST = 40, 8  # of a race, at most; units from one to the next
_TARGETS = (0.15, 0.5)  # shares of the units after which bets are to be won: one l for each
_GRID = 401  # means that the interval tries
_BOLDEST = 0.5  # share of the capital that is bet at most


@dataclass(frozen=True, slots=True)
class RaceVerdict:
    """What a race says of a pair of cells.

    Attributes:
        units: after how many the pair was closed; the whole run's number where it went on to the end.
        p: valid whenever one looks, before the correction for all pairs; `p_holm`, after it, when the pair was closed.
        higher: which has the higher score, 0 or 1, where the pair differs; else None.
        beaten: whether the pair was closed because one of both was worse than a third.
        chance: that the whole run would find a difference, where the pair was closed as one without.
    """

    units: int
    p: float
    p_holm: float
    higher: int | None = None
    beaten: bool = False
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class Race:
    """A race as far as it has come: verdicts on the pairs that have one, by their place; who is `out`, worse than
    another; and the cells that are asked the units from `asked` to `until`, none where it has ended."""

    verdicts: dict[int, RaceVerdict]
    out: dict[int, int]  # by cell, the pair by which it is
    running: tuple[int, ...]
    asked: int
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
    values, asked = [1.0] * len(pairs), 0
    running = tuple(sorted({cell for pair in pairs for cell in pair}))
    for look in looks(units):
        open_pairs = [place for place in range(len(pairs)) if place not in verdicts]
        found = changes(look, open_pairs) if open_pairs else None
        if found is None:
            return Race(verdicts, out, running if open_pairs else (), asked, look if open_pairs else asked)
        early = early_p(found, units, len(pairs))
        for place, p in zip(open_pairs, early, strict=True):
            last = whole(place) if look == units else None
            values[place] = min(values[place], p * ALPHA / EARLY,
                                1.0 if last is None else last * ALPHA / (ALPHA - EARLY))
        corrected = [p if p is not None else 1.0 for p in holm(values)]
        columns = dict(zip(open_pairs, found.T, strict=True))
        for place in open_pairs:
            if corrected[place] < ALPHA:
                higher = int(columns[place].sum() > 0)
                verdicts[place] = RaceVerdict(look, values[place], corrected[place], higher)
                out.setdefault(pairs[place][1 - higher], place)
        differing = sum(one.higher is not None for one in verdicts.values())
        for place in (place for place in open_pairs if place not in verdicts):
            beaten = bool(out.keys() & set(pairs[place]))
            chance = chance_of_difference(columns[place], units, max(len(pairs) - differing, 1))
            if beaten or look == units or (look >= _FIRST * units and chance < DOUBT):
                verdicts[place] = RaceVerdict(look, values[place], corrected[place], None, beaten,
                                              None if beaten or look == units else chance)
        asked = look
        running = tuple(sorted({cell for place, pair in enumerate(pairs) if place not in verdicts for cell in pair}))
    return Race(verdicts, out, (), asked, asked)


def early_p(changes: Floats, units: int, pairs: int) -> list[float]:
    """Compute the p of each column of changes, units by pairs, valid whenever one looks: the least that 1/e was so far.
    `units` is how many there will be; of so many pairs the bets are laid out for the correction."""
    import numpy as np

    seen = np.arange(1, len(changes) + 1)[:, None]
    total = np.cumsum(changes**2, axis=0) * units / seen  # of all squares, as far as is known with this change's size
    paths = []
    for target in _TARGETS:
        bold = math.sqrt(2 * math.log(2 * len(_TARGETS) * pairs / EARLY) / target)
        bet = np.divide(bold, np.sqrt(total), out=np.zeros_like(total), where=total > 0) * changes
        fair = np.logaddexp(bet, -bet) - math.log(2)
        paths += [np.cumsum(bet - fair, axis=0), np.cumsum(-bet - fair, axis=0)]
    log_e = np.logaddexp.reduce(paths) - math.log(len(paths))
    return [float(p) for p in np.exp(-np.maximum(log_e.max(axis=0), 0.0))]


def chance_of_difference(changes: Floats, units: int, pairs: int) -> float:
    """Compute how likely the whole run finds a difference, by the changes so far alone and the normal approximation of
    its test, corrected for so many pairs. Two changes more of the usual size, as in the interval of Bonett and Price,
    keep a few equal answers from being certain."""
    import numpy as np
    from scipy.special import ndtr, ndtri

    n, squares, differ = len(changes), float(changes @ changes), int(np.count_nonzero(changes))
    spread = (squares + 2 * (squares / differ if differ else 1.0)) / (n + 2)
    mean = float(changes.sum()) * units / n
    error = math.sqrt(max(spread - (mean / units) ** 2, spread * 1e-9) * units * (units - n) / n)
    needed = -ndtri((ALPHA - EARLY) / pairs / 2) * math.sqrt(spread * units)
    if error == 0:
        return float(abs(mean) >= needed)
    return float(ndtr((mean - needed) / error) + ndtr((-mean - needed) / error))


def anytime_interval(changes: Floats, low: float, high: float, alpha: float = ALPHA) -> Interval:
    """Compute the interval of the mean of the questions' changes, in the order in which they were asked, each between
    `low` and `high`: the last of a confidence sequence, which holds it at all times at once."""
    import numpy as np

    if not len(changes) or not math.isfinite(high - low):
        return Interval(None, None)
    x = (np.asarray(changes, dtype=np.float64) - low) / (high - low)
    n = np.arange(1, len(x) + 1)
    means = (0.5 + np.cumsum(x)) / (n + 1)
    spread = (0.25 + np.cumsum((x - means) ** 2)) / (n + 1)
    before = np.concatenate([[0.25], spread[:-1]])
    bets = np.sqrt(2 * math.log(2 / alpha) / (before * n * np.log(n + 1)))[:, None]
    tried = np.linspace(0, 1, _GRID)
    off = x[:, None] - tried
    with np.errstate(divide="ignore"):
        up = np.cumsum(np.log1p(np.minimum(bets, _BOLDEST / tried) * off), axis=0)
        down = np.cumsum(np.log1p(-np.minimum(bets, _BOLDEST / (1 - tried)) * off), axis=0)
    kept = tried[np.maximum(up, down).max(axis=0) < math.log(2 / alpha)]
    step = 1 / (_GRID - 1)
    if not len(kept):
        return Interval(None, None)
    ends = max(float(kept[0]) - step, 0.0), min(float(kept[-1]) + step, 1.0)
    return Interval(*(low + (high - low) * end for end in ends))
