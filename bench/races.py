"""Measure how much of a run's result a race finds, and with how many of its answers, over random question orders.

    python bench/races.py [RUN...] [--orders 1000]

Finished runs are raced with `experiments/guests/early_stopping`, as `ragbed run --race` does. The result is compared
with the tests of the whole run, which tell the cells that are significantly worse than another. A control has no
difference: for every race, chance swaps the cells' answers to each question, or to all questions that share documents.
Without a RUN, runs are simulated: their cells have known skills, and their questions differ in difficulty, so that
cells tend to be right on the same ones.
"""
from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from ragbed.experiments.analysis.replicates import group_replicates
from ragbed.experiments.guests.early_stopping.schedule import RaceSchedule
from ragbed.experiments.guests.early_stopping.sequential_test import follow_race
from ragbed.experiments.guests.run_comparison.compared_run import read_compared_run
from ragbed.experiments.metrics.intervals import ALPHA
from ragbed.experiments.metrics.scoring import get_score
from ragbed.experiments.statistics import cluster_questions, holm, mcnemar

Floats = NDArray[np.float64]
SKILLS = (((0.0,) * 3, 200), ((0.0,) * 5, 500), ((0.0, 1.0), 200), ((0.0, 0.0, 1.0), 200), ((0.0, 0.3, 0.6), 500),
          ((0.0, 0.5, 1.0, 1.0, 1.0), 500), ((0.0, 0.2, 0.5, 0.6, 0.6), 1000))


@dataclass
class Tally:
    """Of races."""

    shares: list[float] = field(default_factory=list)  # of all answers that were asked for
    same: list[bool] = field(default_factory=list)  # whether just those cells were worse that are so in the whole run
    cells: list[float] = field(default_factory=list)  # the share of cells of which it says the same
    false: list[bool] = field(default_factory=list)  # whether any cell was worse that is not so in the whole run

    def add(self, share: float, out: set[int], worse: set[int], cells: int) -> None:
        self.shares.append(share)
        self.same.append(out == worse)
        self.cells.append(1 - len(out ^ worse) / cells)
        self.false.append(bool(out - worse))

    def join(self, other: Tally) -> None:
        for name in ("shares", "same", "cells", "false"):
            getattr(self, name).extend(getattr(other, name))

    @property
    def row(self) -> str:
        return (f"{np.mean(self.same):.1%} | {np.mean(self.cells):.1%} | {np.mean(self.false):.1%} "
                f"| {median(self.shares):.0%}")


def raced(scores: Floats, sizes: Floats, pairs: Sequence[tuple[int, int]],
          values: Sequence[float]) -> tuple[float, set[int]]:
    """Race the scores of units by cells, in this order; the p of pairs at the end are known. Return the share of all
    answers that were asked for, and the cells that are worse than another."""
    firsts, seconds = np.array(pairs).T
    changes = scores[:, seconds] - scores[:, firsts]
    found = follow_race(pairs, len(scores), lambda look, places: changes[:look, places], values.__getitem__)
    ends = [max(one.units for place, one in found.verdicts.items() if cell in pairs[place])
            for cell in range(scores.shape[1])]
    return sum(sizes[:end].sum() for end in ends) / sizes.sum() / len(ends), set(found.out)


def p_of(scores: Floats, pairs: Sequence[tuple[int, int]], exact: bool, swaps: int = 999) -> list[float]:
    """Return the p of each pair, of McNemar's test or of the permutation test."""
    firsts, seconds = np.array(pairs).T
    changes = scores[:, seconds] - scores[:, firsts]
    if exact:
        return [mcnemar(int((one > 0).sum()), int((one < 0).sum())) for one in changes.T]
    signs = np.random.default_rng(0).integers(0, 2, (swaps, len(scores))) * 2.0 - 1
    extreme = np.abs(signs @ changes) >= np.abs(changes.sum(axis=0)) - 1e-9
    return list((extreme.sum(axis=0) + 1) / (swaps + 1))


def worse_by(values: Sequence[float], scores: Floats, pairs: Sequence[tuple[int, int]]) -> set[int]:
    """Return the cells that are really worse than another by the tests of the whole run."""
    sums = scores.sum(axis=0)
    return {min(pairs[place], key=sums.__getitem__) for place, p in enumerate(holm(values))
            if p is not None and p < ALPHA}


def table_of(path: Path) -> tuple[str, RaceSchedule, Floats, Floats, list[float]]:
    """Return a run's name and race, its scores of units by cells, how many questions each unit has, and the p of the
    tests of the whole run."""
    run = read_compared_run(path)
    metric = run.columns[0].split(" / ")[0]
    one = RaceSchedule(run.rows, run.questions, cluster_questions(run.questions.values()), metric, run.scoring,
                       run.seed)
    scores = np.nan_to_num(np.array([[get_score(run.answers[cell][name], metric) for cell, in one.members]
                                     for name in one.order])) * one.weights[:, None]
    units = np.stack([np.bincount(one.unit, column) for column in scores.T], axis=1)
    values = [one.final_p(group_replicates(run.rows, run.answers), place) or 0.0 for place in range(len(one.pairs))]
    return f"{run.name}, {metric}", one, units, np.bincount(one.unit).astype(float), values


def replay(path: Path, orders: int) -> Tally:
    """Race a run in random orders, and then without a difference; print the figures of both."""
    name, one, scores, sizes, values = table_of(path)
    worse, exact = worse_by(values, scores, one.pairs), bool(np.isin(scores, (0, 1)).all())
    tally, null = Tally(), Tally()
    for seed in range(1, orders + 1):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(scores))
        tally.add(*raced(scores[order], sizes[order], one.pairs, values), worse, scores.shape[1])
        alike = rng.permuted(scores[order], axis=1)
        null.add(*raced(alike, sizes[order], one.pairs, p_of(alike, one.pairs, exact)), set(), scores.shape[1])
    print(f"| {name} | {scores.shape[1]} | {len(one.order)} | {tally.row} | {np.mean(null.false):.1%} "
          f"| {median(null.shares):.0%} |", flush=True)
    return tally


def made_up(skills: Sequence[float], questions: int, runs: int) -> None:
    """Race runs whose cells have these skills; a question is right where skill, difficulty and chance exceed 0."""
    pairs, tally, wrong = list(combinations(range(len(skills)), 2)), Tally(), 0
    for seed in range(1, runs + 1):
        rng = np.random.default_rng(seed)
        luck = rng.normal(0, 1.5, (questions, 1)) + rng.normal(0, 1, (questions, len(skills)))
        scores = (np.array(skills) + luck > 0).astype(float)
        values = p_of(scores, pairs, exact=True)
        share, out = raced(scores, np.ones(questions), pairs, values)
        tally.add(share, out, worse_by(values, scores, pairs), len(skills))
        wrong += any(skills[cell] == max(skills) for cell in out)
    print(f"| {' '.join(map(str, skills))} | {questions} | {tally.row} | {wrong / runs:.1%} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--orders", type=int, default=1_000)
    given = parser.parse_args()
    held = "all cells as in the whole run | of each cell | worse only in the race | answers asked"
    if given.runs:
        print(f"| run | cells | questions | {held} | no difference: one found | answers asked |\n"
              "|---|---|---|---|---|---|---|---|---|")
        every = Tally()
        for path in given.runs:
            every.join(replay(path, given.orders))
        print(f"| all | | | {every.row} | | |")
        return
    print(f"| skills | questions | {held} | a best cell worse |\n|---|---|---|---|---|---|---|")
    for skills, questions in SKILLS:
        made_up(skills, questions, given.orders)


if __name__ == "__main__":
    main()
