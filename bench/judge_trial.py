"""Measure the coverage of a trial's error rates and of the corrected scores, over judges of known error rates.

    python bench/judge_trial.py [--runs 2000]

In each run a judge grades made answers to the trial's questions, four wrong and three right ones to each, and the run's
own answers. With a spread, some questions are harder for the judge than others in the trial.
"""
from __future__ import annotations

import argparse
from collections import defaultdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragbed.experiments.guests.label_correction.judge_trial import ErrorRate, correct_share
from ragbed.experiments.metrics.intervals import Interval
from ragbed.experiments.record import Verdict

_GRADES = {True: Verdict(judge="", grade="Correct"), False: Verdict(judge="", grade="Wrong")}


class Scenario(NamedTuple):
    right: float  # share of the run's answers that are right
    accepts: float  # share of wrong answers that the judge accepts
    rejects: float  # share of right answers that it rejects
    tried: int  # questions of the trial
    questions: int  # questions of the run
    spread: float = 0.0  # standard deviation of the judge's error rates between the trial's questions, as a share


SCENARIOS = [Scenario(*judge, *sizes) for sizes in ((40, 60), (40, 200), (100, 500), (40, 200, 0.5))
             for judge in ((0.5, 0.05, 0.05), (0.7, 0.2, 0.1), (0.3, 0.3, 0.02), (0.6, 0.63, 0.05))]


def simulate(one: Scenario, runs: int, seed: int = 1) -> dict[str, tuple[float, float]]:
    """Return the share of runs in which each interval holds the truth, and its mean width."""
    rng, found = np.random.default_rng(seed), defaultdict[str, list[tuple[bool, float]]](list)
    for _ in range(runs):
        wrong = _try(rng, one.accepts, 4, one, right=False)
        right = _try(rng, one.rejects, 3, one, right=True)
        is_right = rng.random(one.questions) < one.right
        passed = rng.random(one.questions) < np.where(is_right, 1 - one.rejects, one.accepts)
        share = float(passed.mean())
        for name, rate, truth in (("false accepts", wrong, one.accepts), ("false rejects", right, one.rejects)):
            found[name].append(_held(Interval(rate.rate["low"], rate.rate["high"]), truth))
        made = correct_share(share, one.questions, wrong, right)
        found["corrected"].append(_held(made[1], one.right) if made else (False, 0.0))
        raw = ErrorRate.of("", False, [(str(at), _GRADES[bool(value)]) for at, value in enumerate(passed)]).rate
        found["as judged"].append(_held(Interval(raw["low"], raw["high"]), one.right))
    return {name: (float(np.mean([held for held, _ in own])), float(np.mean([width for _, width in own])))
            for name, own in found.items()}


def _try(rng: np.random.Generator, rate: float, kinds: int, one: Scenario, right: bool) -> ErrorRate:
    """Grade made answers. Each question has its own error rate, drawn from a beta distribution with the mean `rate`."""
    rates: NDArray[np.float64] = np.full(one.tried, rate)
    if one.spread:
        many = rate * (1 - rate) / (one.spread * rate) ** 2 - 1
        rates = rng.beta(rate * many, (1 - rate) * many, one.tried) if many > 0 else rates
    errs = rng.random((one.tried, kinds)) < rates[:, None]
    return ErrorRate.of("", right, [(str(question), _GRADES[bool(err) != right]) for question in range(one.tried)
                                    for err in errs[question]])


def _held(interval: Interval, truth: float) -> tuple[bool, float]:
    if interval.low is None or interval.high is None:
        return False, 0.0
    return interval.low <= truth <= interval.high, interval.high - interval.low


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    runs, names = parser.parse_args().runs, ("false accepts", "false rejects", "as judged", "corrected")
    print(f"{runs} runs each: coverage of the 95 % intervals, and their mean width\n")
    print(f"| right | accepts | rejects | tried | of | spread | {' | '.join(names)} |\n|{'---|' * (6 + len(names))}")
    for one in SCENARIOS:
        found = simulate(one, runs)
        shown = (f"{held:.1%}, {width:.2f}" for held, width in map(found.__getitem__, names))
        print(f"| {' | '.join([*map(str, one), *shown])} |", flush=True)


if __name__ == "__main__":
    main()
