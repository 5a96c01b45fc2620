"""Measure how often a test of two shares errs, and how soon it finds a difference, if one looks after every thread.

    python bench/peeking.py

The test and the interval are those of A/B tests of served configurations (`experiments/guests/traffic/anytime.py`).
They are compared with a z-test of two shares: once looked at after every thread from the 50th on, and once only at the
end.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragbed.experiments.guests.traffic.anytime import blocks_of, log_e_of_test, log_ratios

REPLICATIONS = 2_000
SHARE = 0.7  # thumbs up of the baseline
FIRST = 50


def simulate(explored: float, difference: float, threads: int) -> tuple[float, float, float, float]:
    """Return the shares of the simulated experiments in which our test finds a difference, in which our interval ever
    misses the true one, and in which a z-test finds one at any look or at the last."""
    rng = np.random.default_rng(1)
    found, wrong, peeked, once = 0, 0, 0, 0
    for _ in range(REPLICATIONS):
        sides = rng.random(threads) < explored
        hits = rng.random(threads) < np.where(sides, SHARE + difference, SHARE)
        blocks = blocks_of(sides, hits)
        equal = log_e_of_test(blocks).max() >= np.log(20)
        true = np.cumsum(np.concatenate(log_ratios(blocks, np.array([difference])))).max() >= np.log(20)
        rejected = z_rejects(sides, hits)
        found, wrong, peeked, once = (
            found + bool(equal), wrong + bool(true), peeked + bool(rejected.any()), once + bool(rejected[-1]))
    return found / REPLICATIONS, wrong / REPLICATIONS, peeked / REPLICATIONS, once / REPLICATIONS


def z_rejects(sides: NDArray[np.bool_], hits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return at which looks, from the FIRST thread on, a two-sided z-test of two shares has p < 0.05."""
    n, m = np.cumsum(~sides), np.cumsum(sides)
    a, b = np.cumsum(hits & ~sides), np.cumsum(hits & sides)
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = (a + b) / (n + m)
        z = (b / m - a / n) / np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return np.abs(z[FIRST:]) > 1.959964


def main() -> None:
    print(f"{REPLICATIONS} experiments each; {SHARE:.0%} thumbs up for the baseline; 5 % tests\n")
    print("| explored | difference | rated threads | the test finds it | the interval misses the true one "
          "| z-test at any look | z-test once |\n|---|---|---|---|---|---|---|")
    for explored, difference, threads in ((0.5, 0.0, 1000), (0.1, 0.0, 1000), (0.5, 0.1, 500), (0.5, 0.1, 1000),
                                          (0.5, 0.1, 2000), (0.1, 0.1, 1000), (0.1, 0.1, 4000), (0.5, 0.2, 200),
                                          (0.5, 0.2, 500), (0.1, 0.2, 1000)):
        shares = " | ".join(f"{one:.1%}" for one in simulate(explored, difference, threads))
        print(f"| {explored:.0%} | {difference:+.2f} | {threads} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
