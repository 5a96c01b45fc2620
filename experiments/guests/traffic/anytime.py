"""Test two shares, and compute an interval of their difference. Both stay valid however often you look, and whenever
you stop.

Both use e-values: products over blocks of observations, which do not grow on average if the tested hypothesis is true.
By Ville's inequality, the probability that such a product ever reaches 1/a is at most a. This holds exactly, from the
first observation on. A block ends as soon as it has an observation from each side. Sides are compared only within
blocks, so assignment probabilities, and influences on both sides, may change over time.

The test's hypothesis is that both sides have the same odds. In each block, one side has a single observation. Given s
hits among the block's N observations, that observation is a hit with probability s / N. If the odds of its side are
exp(z) times the other's, the probability is the logistic function of z + log(s / (N - s)) (Fisher's noncentral
hypergeometric distribution). The likelihood ratio is averaged over z, which is normal with a standard deviation of 1:
`eGauss` of R's package `safestats`.

The interval contains the differences d that all blocks together do not reject. It may include again a difference that
it excluded: if the true difference changes, the interval follows its mean. For each d, the shares estimated from
earlier blocks, (hits + PRIOR) / (observations + 2 PRIOR), bet against the pair of shares x and x + d with the smallest
Kullback-Leibler divergence from them: Turner, Ly and Grünwald, "Generic E-variables for exact sequential k-sample tests
that allow for optional stopping" (Journal of Statistical Planning and Inference 230, 2024; arXiv:2106.02693), and for
any d Turner and Grünwald, "Exact anytime-valid confidence intervals for contingency tables and beyond" (Statistics &
Probability Letters 198, 2023; arXiv:2203.09785). The bet does not grow under any pair with that difference: log
E[p(block | bet) / p(block | x)] is concave along these pairs, and flat or falling at the nearest. For d = 0 this is
also a test, but a weaker one: it has to learn two shares, while the other test learns one ratio.

No maintained library on PyPI has both: `confseq` (0.0.11, 2023) has no wheels and needs a C++ compiler and Boost,
`savvi` (0.3.1, 2024) requires cvxpy and has no difference of shares, `earlysign` (0.2.0) calls itself work in progress,
and `ville` (0.1.0) is a month old.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbed.experiments.metrics.intervals import ALPHA

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PRIOR = 0.18  # Beta prior that minimises regret over all shares (Turner, Ly and Grünwald); safestats' default
_RATIOS = 161  # number of odds ratios to try, with logarithms from -_WIDEST to _WIDEST
_WIDEST = 8.0
_STEP = 0.01  # step between the differences to try
_HALVINGS = 50
_AT_ONCE = 4_000  # blocks
_LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class AnytimeTest:
    """The result of a comparison of two shares so far.

    Attributes:
        difference: second share minus first that fits the blocks best; None without a block. It is between `low` and
            `high`, also if the true difference changed over time.
        low, high: ends of its 95 % confidence sequence, which is valid at all times at once.
        p: anytime-valid p-value of no difference: the smallest 1/e so far.
        blocks: number of blocks compared.
    """

    difference: float | None
    low: float
    high: float
    p: float
    blocks: int


def anytime_test(sides: Sequence[bool], hits: Sequence[bool], alpha: float = ALPHA) -> AnytimeTest:
    """Test two shares. `sides` and `hits` are in order of time: whether each observation belongs to the second side,
    and whether it is a hit."""
    import numpy as np

    blocks = blocks_of(sides, hits)
    if not len(blocks):
        return AnytimeTest(None, -1.0, 1.0, 1.0, 0)
    differences = np.round(np.arange(_STEP - 1, 1, _STEP), 6)
    against = np.sum([ratios.sum(axis=0) for ratios in log_ratios(blocks, differences)], axis=0)  # log e of each
    fits = against.argmin()
    kept = differences[(against < -np.log(alpha)) | (against == against[fits])]
    return AnytimeTest(float(differences[fits]), round(max(float(kept.min()) - _STEP, -1.0), 6),
                       round(min(float(kept.max()) + _STEP, 1.0), 6),
                       float(np.exp(-max(log_e_of_test(blocks).max(), 0.0))), len(blocks))


def blocks_of(sides: Sequence[bool], hits: Sequence[bool]) -> NDArray[np.int64]:
    """Return four numbers per complete block: observations and hits of the first side, then of the second."""
    import numpy as np

    found, now = [], [0, 0, 0, 0]
    for side, hit in zip(sides, hits, strict=True):
        now[2 * side] += 1
        now[2 * side + 1] += hit
        if now[0] and now[2]:
            found.append(now)
            now = [0, 0, 0, 0]
    return np.array(found, dtype=np.int64).reshape(-1, 4)


def log_e_of_test(blocks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the logarithm of the test's e-value after each block."""
    import numpy as np

    z = np.linspace(-_WIDEST, _WIDEST, _RATIOS)
    n, ones, m, more = blocks.T[:, :, None]
    hits, size, second = ones + more, n + m, m == 1  # the side that ended the block has one observation
    with np.errstate(divide="ignore"):  # a block with only hits, or without any, is uninformative
        log_odds = np.where(second, z, -z) + np.log(hits) - np.log(size - hits)
    hit = np.where(second, more, ones) == 1
    told = np.cumsum(-np.logaddexp(0.0, np.where(hit, -log_odds, log_odds)), axis=0)
    prior = np.exp(-z**2 / 2)
    most = told.max(axis=1)
    mixed = np.log(np.exp(told - most[:, None]) @ (prior / prior.sum()))
    return np.asarray(most + mixed - told[:, _RATIOS // 2])


def log_ratios(blocks: NDArray[np.int64], differences: NDArray[np.float64],
               prior: float = PRIOR) -> list[NDArray[np.float64]]:
    """Return arrays of shape (blocks, differences): log of the factor by which a block multiplies each e-value."""
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
    """Return the x with the least divergence of the pair x and x + d: the root of the derivative, which falls with x.
    """
    import numpy as np

    low = np.maximum(0.0, -differences) + _LEAST + np.zeros(bet.shape)
    high = np.minimum(1.0, 1.0 - differences) - _LEAST + np.zeros(bet.shape)
    for _ in range(_HALVINGS):
        x = (low + high) / 2
        y = x + differences
        rising = n * (bet - x) * y * (1 - y) + m * (against - y) * x * (1 - x) > 0
        low, high = np.where(rising, x, low), np.where(rising, high, x)
    return np.asarray((low + high) / 2)
