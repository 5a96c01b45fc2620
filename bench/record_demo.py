"""Record the replies that ship with the demo: ask a server the demo's questions once, and keep the calls as a cassette.

    python bench/record_demo.py http://127.0.0.1:8160/v1#qwen2.5-coder-1.5b-instruct --questions 96 \
        --weights cc324af0... --machine "2 cores of a Xeon" --server "OpenVINO GenAI 2026.4" [--trial] [--out FOLDER]

This is an ordinary run: the same command continues it, also with another number of questions. A second run then asks
the recorded model everything again, and its cassette ships. That cassette has the calls that the demo makes, under the
recorded model's name, with the description of the model given here. The demo asks as many questions as it has. With
--trial nothing ships, and the cassette stays in the run's folder.
"""
from __future__ import annotations

import argparse
import asyncio
import datetime
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from ragbed.agents.cassette import ENDING, RECORDED, SHIPPED
from ragbed.agents.models import resolve_model
from ragbed.experiments.benchmarks import load_demo
from ragbed.experiments.guests.demo.demo import QUESTIONS
from ragbed.experiments.guests.exports.cassettes import export_cassette
from ragbed.experiments.running.runner import RunCallbacks, run
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.file import check_settings


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--weights", required=True, help="file of the weights and its SHA-256")
    parser.add_argument("--machine", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--questions", type=int, default=len(load_demo().questions))
    parser.add_argument("--trial", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    options = parser.parse_args()
    asked = {**QUESTIONS, "benchmark": {"kind": "demo", "limit": options.questions}, "name": "recorded"}
    settings = check_settings({
        **asked, "out": str(options.out), "models": options.model, "limits": {**QUESTIONS["limits"], "seconds": 3600},
        "concurrency": 80, "calls": {"prices": {options.model: {"prompt": 0, "completion": 0}},
                                     "calls": {"seconds": 1800}}}, "record_demo")
    (settings.folder / "config.yaml").unlink(missing_ok=True)  # records are made anew, from the calls in the journal
    name = resolve_model(options.model, calls=False).identity
    cassette = (settings.folder if options.trial else SHIPPED) / f"{name}{ENDING}"
    about = {"model": name, "weights": options.weights, "date": datetime.date.today().isoformat(),
             "machine": options.machine, "server": options.server}
    record(settings, cassette, about)
    recorded = f"{RECORDED}{cassette if options.trial else name}"
    with TemporaryDirectory() as out:
        print(record(check_settings({**asked, "out": out, "models": recorded}, "record_demo"), cassette, about))


def record(settings: RunSettings, cassette: Path, about: Mapping[str, str]) -> object:
    """Carry out the run and write its cassette; return what that holds."""
    watch = RunCallbacks(lambda *_: None, lambda _: None, lambda record: print(
        record.result.cell, record.result.question, record.result.outcome, file=sys.stderr), print)
    folder = asyncio.run(run(settings, watch))
    try:
        return export_cassette(Finished.of(folder), cassette, about)
    finally:
        folder.close()


if __name__ == "__main__":
    main()
