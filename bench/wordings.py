"""How often intervals of the wordings' variance component cover, by simulation: why `components` has the one it has.

    python bench/wordings.py [--times 1000] [--deviation 0.03]

Scores are right or wrong, of 5 strategies in 5 wordings over 100 questions. Wordings move a strategy's share of right
answers by this standard deviation: normally, evenly, by strategies unlike each other, with heavy tails, or skewed.
Against `components` stand the interval of Tukey and Williams as they have it, and Satterthwaite's.
"""
from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, fdtri, ndtri

from ragbed.experiments.statistics.components import components

Scores = NDArray[np.float64]
_SHAPE = (5, 5, 100)


def drawn(rng: np.random.Generator, kind: str, deviation: float) -> Scores:
    """Draw scores, strategies by wordings by questions."""
    size = _SHAPE[:2]
    moved = {"normal": rng.normal(size=size), "even": rng.uniform(-1, 1, size) * 3**0.5,
             "unlike": rng.normal(size=size) * np.linspace(0.4, 1.4, 5)[:, None] / 0.967,
             "heavy tails": rng.standard_t(4, size=size) / 2**0.5, "skewed": rng.exponential(size=size) - 1}[kind]
    share = np.clip(np.linspace(0.35, 0.55, 5)[:, None] + deviation * moved, 0.001, 0.999)
    hard = (rng.normal(size=_SHAPE[2]) + 0.7 * rng.normal(size=(5, 1, _SHAPE[2])) + 0.7 * rng.normal(size=_SHAPE))
    return np.asarray((hard / 1.98**0.5 < ndtri(share)[..., None]), dtype=np.float64)


def others(scores: Scores) -> Iterator[tuple[str, float, float]]:
    """Yield the other intervals of the wordings' variance, by name."""
    strategies, wordings, n = scores.shape
    free = strategies * (wordings - 1)
    noise = components(scores)["rest"].variance / n
    square = float(scores.mean(axis=2).var(axis=1, ddof=1).mean())

    def end(p: float) -> float:
        return max(float((square - noise * fdtri(free, free * (n - 1), p)) * free / chdtri(free, 1 - p)), 0.0)

    yield "Tukey and Williams", end(0.975), end(0.025)
    own = max(square - noise, 1e-4)
    worth = own**2 / (square**2 / free + noise**2 / (free * (n - 1)))
    yield "Satterthwaite", own * worth / chdtri(worth, 0.025), own * worth / chdtri(worth, 0.975)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--deviation", type=float, default=0.03)
    given, rng = parser.parse_args(), np.random.default_rng(1)
    times, deviation = given.times, given.deviation
    print(f"{'wordings':12} {'components':>12} {'Tukey and Williams':>20} {'Satterthwaite':>15}")
    for kind in ("normal", "even", "unlike", "heavy tails", "skewed"):
        covered = dict.fromkeys(("components", "Tukey and Williams", "Satterthwaite"), 0)
        for _ in range(times):
            scores = drawn(rng, kind, deviation)
            ours = components(scores)["wording"]
            for name, low, high in (("components", ours.low, ours.high), *others(scores)):
                covered[name] += low <= deviation**2 <= high
        print(f"{kind:12} {covered['components'] / times:12.3f} {covered['Tukey and Williams'] / times:20.3f} "
              f"{covered['Satterthwaite'] / times:15.3f}")


if __name__ == "__main__":
    main()
