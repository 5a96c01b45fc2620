"""Record the model whose replies ship: the demo's questions, asked once of a server, and kept as a cassette.

    python bench/record_demo.py http://127.0.0.1:8160/v1#qwen2.5-coder-1.5b-instruct \
        --weights cc324af0... --machine "2 cores of a Xeon" --server "OpenVINO GenAI 2026.4" [--limit 3] [--out FOLDER]

It is a run as any other: stopped, the same command goes on. What is said of the model stands in the cassette. With
--limit nothing is shipped, and the cassette stays in the run's folder.
"""
from __future__ import annotations

import argparse
import asyncio
import datetime
import sys
from pathlib import Path

from agents.cassette import ENDING
from agents.models import resolve
from agents.recorded import SHIPPED
from experiments.running.cassette import export_cassette
from experiments.running.runner import RunWatch, run
from experiments.runs.finished import Finished
from experiments.settings.file import check_settings
from experiments.terminal.demo import QUESTIONS


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--weights", required=True, help="their file and SHA-256")
    parser.add_argument("--machine", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    options = parser.parse_args()
    content = {**QUESTIONS, "name": "recorded", "out": str(options.out), "models": options.model,
               "limits": {**QUESTIONS["limits"], "seconds": 3600}, "concurrency": 80,
               "calls": {"prices": {options.model: {"prompt": 0, "completion": 0}}, "calls": {"seconds": 1800}}}
    if options.limit:
        content |= {"name": f"recorded-{options.limit}", "benchmark": {"kind": "demo", "limit": options.limit}}
    settings = check_settings(content, "record_demo")
    watch = RunWatch(lambda *_: None, lambda _: None, lambda record: print(
        record.result.cell, record.result.question, record.result.outcome, file=sys.stderr), print)
    folder = asyncio.run(run(settings, watch))
    name = resolve(options.model, calls=False).identity
    place = settings.folder if options.limit else SHIPPED
    place.mkdir(exist_ok=True)
    print(export_cassette(Finished.of(folder), place / f"{name}{ENDING}", {
        "model": name, "weights": options.weights, "date": datetime.date.today().isoformat(),
        "machine": options.machine, "server": options.server}))
    folder.close()


if __name__ == "__main__":
    main()
