"""Write a run's calls and searches into one file, a cassette, and describe what one holds."""
from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbed.agents.cassette import ENDING, CallLine, is_cassette, write_cassette
from ragbed.documents.errors import RunError
from ragbed.experiments.benchmarks.hub import CARD
from ragbed.experiments.running.replay import RecordedBenchmark, RecordedRun, Replay, portable_settings
from ragbed.experiments.runs.store import RunFolder
from ragbed.strategies.types import Usage

if TYPE_CHECKING:
    from ragbed.experiments.runs.finished import Finished


def export_cassette(run: Finished, out: Path | None = None,
                    made_with: Mapping[str, str] | None = None) -> tuple[Path, Mapping[str, int]]:
    """Write the cassette of a finished run, by default to NAME.cassette.jsonl.gz. An older cassette is replaced.

    Returns the file, and the number of texts, calls and searches in it. Raises RunError if the file exists and is not a
    cassette, or cannot be written.
    """
    made = run.made
    benchmark = RecordedBenchmark(**{name: made.benchmark[name] for name in RecordedBenchmark.model_fields})
    about = RecordedRun(name=run.name, settings=portable_settings(run.config), benchmark=benchmark,
                        prompts=made.prompts, judge_prompt=made.judge_prompt, exemplars=made.exemplars,
                        models=made.models, pins=run.folder.pins(), cells=list(run.labels.values()),
                        results=run.summary["results"], made_with=dict(made_with or {}))
    path = out or Path(f"{about.name}{ENDING}")
    if path.exists() and not is_cassette(path):
        raise RunError(f"{path} exists and is not a cassette; name another file with --out")
    return path, write_cassette(path, version("ragbed"), about.model_dump(mode="json"), run.folder.database)


def export_set_cassette(folder: Path, out: Path | None = None) -> tuple[Path, Mapping[str, int]]:
    """Write the cassette of a set that `ragbed construct` built: a folder with a card, and the calls in `build/`.

    Returns the file, and the number of texts, calls and searches in it. Raises RunError if the file exists and is not a
    cassette, or cannot be written.
    """
    path = out or Path(f"{folder.name}{ENDING}")
    if path.exists() and not is_cassette(path):
        raise RunError(f"{path}: exists and is not a cassette; name another file with --out")
    calls = RunFolder.existing(folder / "build")
    try:
        about = {**json.loads((folder / CARD).read_text(encoding="utf-8")), "pins": calls.pins()}
        return path, write_cassette(path, version("ragbed"), about, calls.database)
    finally:
        calls.close()


def describe_cassette(replay: Replay) -> dict[str, Any]:
    """Describe the run of a cassette and count its content. The price is at today's prices."""
    used, failed = Usage(), 0
    for line in replay.cassette.rows():
        if isinstance(line, CallLine):
            failed += line.failure is not None
            used += line.reply.usage if line.reply is not None else Usage()
    about, counts = replay.about, replay.cassette.counts
    return {"file": str(replay.path), "bytes": replay.path.stat().st_size, "ragbed": replay.cassette.ragbed,
            "run": about.name, "benchmark": about.benchmark.name, "questions": about.benchmark.questions,
            "models": about.models, "cells": about.cells, "calls": counts.get("calls", 0), "failed": failed,
            "searches": counts.get("searches", 0), "texts": counts.get("texts", 0),
            "tokens": {"prompt": used.prompt_tokens, "cached": used.cached_tokens,
                       "completion": used.completion_tokens},
            "price": None if used.price is None else round(used.price, 8), "results": about.results}
