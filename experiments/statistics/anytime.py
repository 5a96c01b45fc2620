"""A test of two shares that stays valid however often one looks, and stops when one likes.

Its e-value is that of Turner, Ly and Grünwald, "Generic E-variables for exact sequential k-sample tests that allow for
optional stopping" (Journal of Statistical Planning and Inference 230, 2024; arXiv:2106.02693), and of Turner and
Grünwald, "Exact anytime-valid confidence intervals for contingency tables and beyond" (Statistics & Probability Letters
198, 2023; arXiv:2203.09785), for any difference d of the shares; R's package `safestats` has both.

Observations are put into blocks as they come, and a block ends as soon as it has some of both sides. What the blocks
before say of the shares, (ones + PRIOR) / (observations + 2 PRIOR), is bet on against the nearest pair of shares x and
x + d, by the divergence of Kullback and Leibler:

    e = product over the blocks of p(block | bet) / p(block | x, x + d)

Where x and x + d are the shares that are true, e is expected to stay at most 1: log E[p(block | bet) / p(block | x)] is
concave along the line of such pairs, and flat or falling at the nearest. So by Ville's inequality it ever reaches 1/a
with a probability of at most a, whichever x is true, however long it goes on: without an approximation, from the first
observation on. It needs no weights: sides are compared within blocks, so the probability of each may change meanwhile.

Written out, since no well-kept library on PyPI has it: `confseq` (0.0.11, 2023) has no wheels and is built by a C++
compiler with Boost, `savvi` (0.3.1, 2024) brings cvxpy and has no difference of shares, `earlysign` (0.2.0) calls
itself work in progress, and `ville` (0.1.0) is a month old.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.metrics.intervals import ALPHA

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PRIOR = 0.18  # of a Beta distribution: the least regret over all shares (Turner, Ly and Grünwald), and safestats' own
_STEP = 0.01  # between the differences that are tried
_HALVINGS = 50
_AT_ONCE = 4_000  # blocks
_LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class AnytimeTest:
    """What can be said of two shares by now.

    Attributes:
        low, high: of the difference, second less first: the ends of a 95 % confidence sequence, which holds it at all
            times at once.
        p: an anytime-valid p: the least that 1/e was so far.
        blocks: how many were compared.
    """

    low: float
    high: float
    p: float
    blocks: int


def anytime_test(sides: Sequence[bool], hits: Sequence[bool], alpha: float = ALPHA) -> AnytimeTest:
    """Test two shares. Of every observation, in the order in which they were made: whether it is of the second side,
    and whether it is a hit."""
    import numpy as np

    blocks = blocks_of(sides, hits)
    if not len(blocks):
        return AnytimeTest(-1.0, 1.0, 1.0, 0)
    differences = np.round(np.arange(_STEP - 1, 1, _STEP), 6)
    most = np.zeros(len(differences))  # log e of each difference, the largest so far; 0 before the first block
    last = np.zeros(len(differences))
    for ratios in log_ratios(blocks, differences):
        paths = last + np.cumsum(ratios, axis=0)
        most, last = np.maximum(most, paths.max(axis=0)), paths[-1]
    kept = differences[most < max(-np.log(alpha), most.min() + _LEAST)]  # one at least, wherever the data lead
    equal = int(np.argmin(np.abs(differences)))
    return AnytimeTest(float(max(kept.min() - _STEP, -1.0)), float(min(kept.max() + _STEP, 1.0)),
                       float(np.exp(-most[equal])), len(blocks))


def blocks_of(sides: Sequence[bool], hits: Sequence[bool]) -> NDArray[np.int64]:
    """Return the whole blocks: observations and hits of the first side, and of the second, of each."""
    import numpy as np

    found, now = [], [0, 0, 0, 0]
    for side, hit in zip(sides, hits, strict=True):
        now[2 * side] += 1
        now[2 * side + 1] += hit
        if now[0] and now[2]:
            found.append(now)
            now = [0, 0, 0, 0]
    return np.array(found, dtype=np.int64).reshape(-1, 4)


def log_ratios(blocks: NDArray[np.int64], differences: NDArray[np.float64],
               prior: float = PRIOR) -> list[NDArray[np.float64]]:
    """Return the logarithm of each block's factor of e, blocks by differences, some blocks at a time."""
    import numpy as np

    before = np.cumsum(blocks, axis=0) - blocks
    first, second = ((before[:, at + 1] + prior) / (before[:, at] + 2 * prior) for at in (0, 2))
    found = []
    for start in range(0, len(blocks), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        n, ones, m, more = (blocks[part, at, None] for at in range(4))
        bet, against = first[part, None], second[part, None]
        x = _nearest(bet, against, n, m, differences)
        y = np.clip(x + differences, _LEAST, 1 - _LEAST)
        found.append(ones * np.log(bet / x) + (n - ones) * np.log((1 - bet) / (1 - x))
                     + more * np.log(against / y) + (m - more) * np.log((1 - against) / (1 - y)))
    return found


def _nearest(bet: NDArray[np.float64], against: NDArray[np.float64], n: NDArray[np.int64], m: NDArray[np.int64],
             differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """The x whose pair with x + d is nearest: the root of the divergence's derivative, which falls as x grows."""
    import numpy as np

    low = np.maximum(0.0, -differences) + _LEAST + np.zeros(bet.shape)
    high = np.minimum(1.0, 1.0 - differences) - _LEAST + np.zeros(bet.shape)
    for _ in range(_HALVINGS):
        x = (low + high) / 2
        y = x + differences
        rising = n * (bet - x) * y * (1 - y) + m * (against - y) * x * (1 - x) > 0
        low, high = np.where(rising, x, low), np.where(rising, high, x)
    return np.asarray((low + high) / 2)
