"""Simulate level and power with questions or documents as the unit of inference.

    python bench/units.py --times 1000

Two cells answer `--each` questions about each of 2 to 50 documents, and differ in 40 % of the answers. With dependence,
the share of these differences that are gains is 0.35 higher in some documents and 0.35 lower in the others, which is an
intraclass correlation of 0.2. The cells are equal over these documents (then both kinds are equally frequent), equal
over all documents from which these were drawn, or the second is better. The last columns show how often the note on
alike questions appears.
"""
from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from ragbed.experiments.metrics import ScoredQuestion
from ragbed.experiments.metrics.intervals import ALPHA
from ragbed.experiments.statistics import Clusters, mcnemar, note_correlation, pair_scores, permutation

DOCUMENTS = (2, 3, 4, 5, 6, 8, 10, 20, 50)
DIFFER, SPREAD, BETTER = 0.4, 0.35, 0.12  # share of answers that differ; spread of gains; a true difference of means
SWAPS = 999


def draw(rng: np.random.Generator, documents: int, each: int, better: float, spread: float, fixed: bool) -> np.ndarray:
    """Return the change of each question, documents by questions: 1 for a gain, -1 for a loss, 0 for neither.

    `fixed`: `better` is the mean over these documents, not over all documents.
    """
    signs = rng.permutation(np.resize([-1.0, 1.0], documents)) if fixed else rng.choice([-1.0, 1.0], documents)
    gains = 0.5 + better / DIFFER / 2 + spread * (signs - fixed * signs.mean())
    differ = rng.random((documents, each)) < DIFFER
    return differ * np.where(rng.random((documents, each)) < gains[:, None], 1, -1)


def rejects(change: np.ndarray, seed: int) -> tuple[bool, bool, bool]:
    """Return whether the tests with questions, and with documents, as the unit find a difference, and whether the note
    on alike questions appears."""
    flat, each = change.ravel(), change.shape[1]
    rows = [{f"q{at:04}": ScoredQuestion(True, "answered", {"right": float(side == (one > 0))})
             if one else ScoredQuestion(True, "answered", {"right": 1.0})
             for at, one in enumerate(flat)} for side in (False, True)]
    of = {f"q{at:04}": str(at // each) for at in range(len(flat))}
    pairs = pair_scores("right", rows[0], rows[1], of)
    alone = mcnemar(int((flat > 0).sum()), int((flat < 0).sum()))
    by_document = permutation(pairs, seed, SWAPS)
    noted = note_correlation([{id: float(one) for id, one in zip(of, flat, strict=True)}], Clusters({}, documents=of))
    return alone < ALPHA, by_document is not None and by_document < ALPHA, bool(noted)


def table(times: int, each: int) -> Iterator[str]:
    """Yield the lines of the table."""
    cases = (("equal", 0.0, 0.0, True), ("better", BETTER, 0.0, True), ("equal, these", 0.0, SPREAD, True),
             ("equal, all", 0.0, SPREAD, False), ("better, all", BETTER, SPREAD, False))
    yield f"{'':9}  {'without dependence':>28}  {'with dependence':>43}  {'note':>13}"
    yield f"{'documents':9}  " + "  ".join(f"{name:>13}" for name, *_ in cases) + f"  {'without / with':>14}"
    for documents in DOCUMENTS:
        found = []
        for at, (_, better, spread, fixed) in enumerate(cases):
            rng = np.random.default_rng([documents, at])
            made = np.mean([rejects(draw(rng, documents, each, better, spread, fixed), one)
                            for one in range(times)], axis=0)
            found.append(made)
        yield f"{documents:9}  " + "  ".join(f"{one[0]:.3f} / {one[1]:.3f}" for one in found) + (
            f"  {found[0][2]:.3f} / {found[3][2]:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--each", type=int, default=8)
    options = parser.parse_args()
    print(f"Share of {options.times} simulations with p < {ALPHA}: questions / documents as the unit")
    for line in table(options.times, options.each):
        print(line, flush=True)


if __name__ == "__main__":
    main()
