"""Measure the coverage and width of the intervals of scores corrected by people's grades, over simulated runs.

    python bench/corrected.py [--runs 2000]

In each run a judge grades two systems' answers to all questions, and people grade those to a random part of them. The
judge passes a share of the right answers and fails a share of the wrong ones. It passes more of the second system's
wrong answers, as judges do with longer answers. The table also shows the intervals of the judge's grades taken as true,
of people's grades alone, and of plain PPI++: its normal interval, without the added pairs of half-weight grades.
"""
from __future__ import annotations

import argparse
from collections import defaultdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragbed.experiments.guests.label_correction.inference import correct_mean
from ragbed.experiments.metrics.intervals import Interval, Z, wilson

_LENIENT = 0.1  # share of its wrong answers that the judge passes besides, of the second way


class Scenario(NamedTuple):
    right: float  # share of right answers, of either way
    passes: float  # share of the right ones that the judge passes
    fails: float  # share of the wrong ones that it fails
    graded: int
    questions: int
    alike: int = 1  # questions about one document, which are easy or hard together


SCENARIOS = [Scenario(*judge, *sizes) for sizes in ((20, 200), (50, 200), (50, 1000), (200, 1000), (50, 200, 4))
             for judge in ((0.5, 0.9, 0.8), (0.8, 0.95, 0.95), (0.8, 0.7, 0.5), (0.95, 1.0, 0.9))]


def simulate(one: Scenario, runs: int, seed: int = 1) -> dict[str, tuple[float, float]]:
    """Return by kind of interval the share of runs in which it holds the truth, and its mean width."""
    rng, found = np.random.default_rng(seed), defaultdict[str, list[tuple[bool, float]]](list)
    clusters, none = np.repeat(np.arange(one.questions // one.alike), one.alike), np.zeros(one.questions, dtype=np.intp)
    weights, due = np.full(one.questions, 1 / one.questions), np.ones(one.questions, dtype=np.bool_)
    for _ in range(runs):
        chosen, sides = rng.permutation(one.questions)[:one.graded], []
        for lenient in (0.0, _LENIENT):
            right = rng.random(one.questions) < _chances(rng, one)
            passed = rng.random(one.questions) < np.where(right, one.passes, 1 - one.fails + lenient)
            people = np.full(one.questions, np.nan)
            people[chosen] = right[chosen]
            sides.append([correct_mean(passed.astype(float), people, due, weights, none, clusters, tuning)
                          for tuning in (None, 0.0)])
            if not lenient:
                (made, alone), share = sides[0], float(passed.mean())
                half = Z * float((made.influence**2).sum()) ** 0.5
                for name, interval in (
                        ("judge taken as true", wilson(share, one.questions)), ("people alone", alone.interval),
                        ("corrected", made.interval), ("plain PPI++", Interval(made.mean - half, made.mean + half))):
                    found[name].append(_held(interval, one.right))
        for place, name in enumerate(("difference, corrected", "difference, people alone")):
            found[name].append(_held(sides[1][place].minus(sides[0][place]).interval, 0.0))
    return {name: (float(np.mean([held for held, _ in own])), float(np.mean([width for _, width in own])))
            for name, own in found.items()}


def _chances(rng: np.random.Generator, one: Scenario) -> NDArray[np.float64]:
    """Each question's chance of a right answer: the same, or by document."""
    if one.alike == 1:
        return np.full(one.questions, one.right)
    return np.repeat(rng.beta(3 * one.right, 3 * (1 - one.right), one.questions // one.alike), one.alike)


def _held(interval: Interval, truth: float) -> tuple[bool, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low <= truth <= interval.high, interval.high - interval.low


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    names = ("judge taken as true", "plain PPI++", "people alone", "corrected", "difference, people alone",
             "difference, corrected")
    print(f"{runs} runs each: coverage of the 95 % intervals, and their mean width\n")
    print(f"| right | passes | fails | graded | of | alike | {' | '.join(names)} |\n|{'---|' * (6 + len(names))}")
    for one in SCENARIOS:
        found = simulate(one, runs)
        shown = (f"{held:.1%}, {width:.2f}" for held, width in map(found.__getitem__, names))
        print(f"| {' | '.join([*map(str, one), *shown])} |", flush=True)


if __name__ == "__main__":
    main()
