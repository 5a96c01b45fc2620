"""Measure how often a gate errs, and how many calls it needs, over simulated pull requests.

    python bench/gate.py [--requests 1000]

Answers of the main branch and of a branch are drawn at random and given to the gate's own schedule and verdict
(`experiments/guests/pull_requests`), which decide what is asked next and when to stop. `differ` is the share of
questions whose answers differ between two prompts of equal quality. `asked` is the mean share of the branch's calls
that were made; running both branches without a gate makes twice 100 %.
"""
from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbed.experiments.analysis.replicates import ReplicateGroup, group_replicates, label_groups
from ragbed.experiments.guests.pull_requests.gate_schedule import GateSchedule
from ragbed.experiments.guests.pull_requests.policy import GatePolicy
from ragbed.experiments.guests.pull_requests.sides import Side
from ragbed.experiments.guests.pull_requests.verdict import compare_sides, overall
from ragbed.experiments.metrics import ScoredQuestion
from ragbed.experiments.question import Question
from ragbed.experiments.statistics import Clusters

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], tuple[Floats, Floats]]  # questions, cells -> scores of both sides
LEVELS = {"model": "m", "retrieval": None, "retriever": None, "rules": "grounded", "condition": "full",
          "perturbation": None, "show": "question", "format": None, "benchmark": "b", "repeat": 0, "seed": None}


def prompts(differ: float, loss: float = 0.0) -> Draw:
    """Two prompts of a deterministic model, of which the second is right less often by `loss`."""
    def draw(rng: np.random.Generator, n: int, cells: int) -> tuple[Floats, Floats]:
        base = (rng.random((cells, n)) < 0.7).astype(float)
        lost, won = (differ + loss) / 2 / 0.7, (differ - loss) / 2 / 0.3
        return base, np.where(rng.random((cells, n)) < np.where(base == 1, lost, won), 1 - base, base)
    return draw


def sampled(rng: np.random.Generator, n: int, cells: int) -> tuple[Floats, Floats]:
    """The same prompt, asked twice of a model that samples: each question has a chance to be answered rightly."""
    chance = rng.beta(0.7, 0.3, (cells, n))
    one, other = ((rng.random((cells, n)) < chance).astype(float) for _ in range(2))
    return one, other


def skewed(rng: np.random.Generator, n: int, cells: int) -> tuple[Floats, Floats]:
    """Scores between 0 and 1 of equal mean: few answers lose much, and many win a little."""
    base = rng.uniform(0.4, 0.9, (cells, n))
    change = rng.choice([-0.4, 0.1, 0.0], (cells, n), p=[0.1, 0.4, 0.5])
    return base, base + change


def side(scores: Floats, rows: Sequence[dict[str, Any]], questions: dict[str, Question], metric: str) -> Side:
    answers = {row["id"]: {name: ScoredQuestion(True, "answered", {metric: float(score)})
                           for name, score in zip(questions, own, strict=True)}
               for row, own in zip(rows, scores, strict=True)}
    groups: list[ReplicateGroup] = group_replicates(rows, answers)
    labels = label_groups(groups)
    made: Any = SimpleNamespace(scoring="corrected", judge="lexical")
    none: dict[str, Any] = {label: set() for label in labels}
    return Side(Path("."), "simulated", dict(zip(labels, groups, strict=True)),
                {label: [row["id"]] for label, row in zip(labels, rows, strict=True)}, none,
                {label: Counter() for label in labels}, {}, questions, frozenset(), made, (metric,), (metric,), 0)


def gate(base: Floats, head: Floats, seed: int, race: bool = True, size: int = 1) -> tuple[str, float]:
    """Return the verdict on a pull request whose cells have all changed, and the share of its calls that were made."""
    cells, n = base.shape
    questions = {f"q{place}": Question(f"q{place}", "Why?", ("x",), True) for place in range(n)}
    grouped = Clusters({f"q{place}": f"q{place // size * size}" for place in range(n)})
    rows = [{"id": f"c{cell}", "reasoning": f"r{cell}", **LEVELS} for cell in range(cells)]
    metric = "em" if np.isin([base, head], (0, 1)).all() else "f1"
    one, other = (side(scores, rows, questions, metric) for scores in (base, head))
    matches = [(label, label) for label in one.groups]
    made = GateSchedule(one, matches, rows, questions, grouped, metric, "corrected", seed, 0.03, race)
    made.changed = {row["id"] for row in rows}
    known: dict[str, dict[str, Any]] = {row["id"]: {} for row in rows}
    full = {row["id"]: other.groups[label].answers for row, label in zip(rows, other.groups, strict=True)}
    while wanted := {pair for pair in made.due(known) if pair[1] not in known[pair[0]]}:
        for cell, name in wanted:
            known[cell][name] = full[cell][name]
    asked = side(head, rows, questions, metric)
    for group, row in zip(asked.groups.values(), rows, strict=True):
        object.__setattr__(group, "answers", known[row["id"]])
    found = compare_sides(one, asked, matches, questions, grouped, metric, GatePolicy(), made)
    return overall(found), sum(map(len, known.values())) / (cells * n)


def measure(name: str, draw: Draw, n: int, requests: int, cells: int = 1, size: int = 1, race: bool = True) -> None:
    """Print a row: how often each verdict was given, and the mean share of calls."""
    verdicts, shares = Counter[str](), []
    for seed in range(requests):
        base, head = draw(np.random.default_rng(seed), n, cells)
        if size > 1:  # questions about one document change together
            change = (head - base)[:, ::size].repeat(size, axis=1)[:, :n]
            head = base + change
        verdict, share = gate(base, head, seed, race, size)
        verdicts[verdict] += 1
        shares.append(share)
    figures = " | ".join(f"{verdicts[state] / requests:.1%}" for state in ("worse", "better", "equal", "cannot_tell"))
    print(f"| {name} | {n} | {figures} | {np.mean(shares):.0%} |", flush=True)


def lucky_bases(requests: int, bases: int = 40, n: int = 400) -> None:
    """Print the share of false losses for pull requests that all meet the same recorded answers of a sampling model."""
    shares = []
    for seed in range(bases):
        rng = np.random.default_rng(seed)
        chance = rng.beta(0.7, 0.3, (1, n))
        base = (rng.random((1, n)) < chance).astype(float)
        red = sum(gate(base, (rng.random((1, n)) < chance).astype(float), number)[0] == "worse"
                  for number in range(requests // bases))
        shares.append(red / (requests // bases))
    print(f"\n{bases} main branches, {requests // bases} pull requests each: {np.mean(shares):.1%} worse, "
          f"{max(shares):.0%} against the luckiest of them", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000, help="a third of it for pull requests with a loss")
    many = parser.parse_args().requests
    print("| pull request | questions | worse | better | equal | cannot tell | asked |\n|---|---|---|---|---|---|---|")
    for differ in (0.02, 0.1, 0.25, 0.35):
        measure(f"no change in quality, {differ:.0%} of answers differ", prompts(differ), 400, many)
    measure("25% of answers differ, fewer questions", prompts(0.25), 40, many)
    measure("nothing changed, the model samples", sampled, 400, many)
    measure("no change, five cells", prompts(0.25), 400, many, 5)
    measure("no change, scores from 0 to 1, skewed", skewed, 400, many)
    measure("no change, the same mirrored", lambda *given: skewed(*given)[::-1], 400, many)
    measure("no change, five questions a document", prompts(0.25), 400, many, 1, 5)
    measure("no change, without a race", prompts(0.25), 400, many, race=False)
    for n in (100, 200, 400, 1000):
        for differ in (0.15, 0.25, 0.35):
            measure(f"a loss of 0.10, {differ:.0%} of answers differ", prompts(differ, 0.1), n, many // 3)
    measure("the same, without a race", prompts(0.25, 0.1), 400, many // 3, race=False)
    measure("a loss of 0.10 in all of five cells", prompts(0.25, 0.1), 400, many // 3, 5)
    lucky_bases(many)


if __name__ == "__main__":
    main()
