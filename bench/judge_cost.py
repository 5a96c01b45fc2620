"""Measure how long runs with a model judge and with citation ablation take, next to their calls alone.

    python bench/judge_cost.py --data FOLDER [--questions 100] [--seconds 0.5] [--at-once 16]

FOLDER holds `hotpotqa/hotpot_distractor_100.jsonl`. A server answers every call after SECONDS, give or take 20 %. The
calls alone take calls x SECONDS / AT-ONCE. The judge is on the same server. A first run of two questions is not
measured, because it imports what a run needs. Setting up a run is not included, the summary is.
"""
from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from overhead import server

from ragbed.experiments import check_settings
from ragbed.experiments.running.runner import RunCallbacks, run
from ragbed.experiments.runs.finished import open_finished

RUNS: dict[str, dict[str, Any]] = {
    "answers": {}, "answers and a judge": {"judge": "#judge"}, "answers and probes": {"probe": "citations"},
    "answers, a judge and probes": {"judge": "#judge", "probe": "citations"}}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--at-once", type=int, default=16)
    options = parser.parse_args()
    with server(options.seconds, 0.2) as url:
        _measure(RUNS["answers, a judge and probes"], url, argparse.Namespace(**{**vars(options), "questions": 2}))
        for name, settings in RUNS.items():
            calls, taken = _measure(settings, url, options)
            ideal = calls * options.seconds / options.at_once
            print(f"{name:28} {calls:6,} calls {taken:6.1f} s, alone {ideal:6.1f} s, ratio {taken / ideal:.2f}",
                  flush=True)


def _measure(settings: dict[str, Any], url: str, options: argparse.Namespace) -> tuple[int, float]:
    """The number of calls of a run, and its seconds."""
    judge = {"judge": url + settings["judge"]} if "judge" in settings else {}
    with tempfile.TemporaryDirectory() as folder:
        checked = check_settings({
            "name": "judged", "out": folder, "models": f"{url}#m", "reasoning": "direct", "conditions": "provided",
            "benchmark": {"kind": "hotpotqa", "path": str(Path(options.data) / "hotpotqa/hotpot_distractor_100.jsonl"),
                          "sample": options.questions}, "concurrency": options.at_once, "cache": "off",
            **settings, **judge}, "judged")
        begun: list[float] = []
        callbacks = RunCallbacks(lambda *_: None, lambda _: begun.append(time.monotonic()), lambda _: None)
        asyncio.run(run(checked, callbacks)).close()
        taken = time.monotonic() - begun[0]
        with open_finished(checked.folder) as finished:
            return sum(one.usage.calls + one.judge_usage.calls + one.probe_usage.calls
                       for one in finished.folder.results()), taken


if __name__ == "__main__":
    main()
