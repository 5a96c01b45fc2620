"""A finished run's calls and searches as a cassette.

What a cassette holds, counted.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agents.cassette import is_cassette, write_cassette
from agents.cassette_lines import Call
from documents.errors import RunError
from experiments.running.cassette import About, Asked, Replay, portable
from experiments.runs.finished import Finished
from experiments.runs.manifest import manifest_of
from strategies.types import Usage

ENDING = ".cassette.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Exported:
    """A cassette that was written. `counts` is of texts, calls and searches; `size` in bytes."""

    path: Path
    counts: Mapping[str, int]
    size: int


def export_cassette(run: Finished, out: Path | None = None) -> Exported:
    """Write the cassette of a finished run.

    Args:
        out: by default the run's name and `.cassette.jsonl.gz`, in the current folder. A cassette there is replaced.

    Raises:
        RunError: the run did not keep what its searches found; or the file is something else, or cannot be written.
    """
    about = _about(run)
    path = out or Path(f"{about.name}{ENDING}")
    if path.exists() and not is_cassette(path):
        raise RunError(f"{path} is there, and no cassette; name another file with --out")
    counts = write_cassette(path, version("ragbed"), about.model_dump(mode="json"), run.folder.database)
    return Exported(path, counts, path.stat().st_size)


def _about(run: Finished) -> About:
    made = manifest_of(run.path)
    if not run.folder.marked("searches") and any(cell.retriever for cell in run.cells):
        raise RunError(f"{run.path}: was made by a ragbed that did not keep what searches find; give its `ragbed run` "
                       "command once with --journal replay, where what it searches is, and export it then")
    return About(name=run.name, settings=portable(run.settings),
                 benchmark=Asked.model_validate({name: made.benchmark[name] for name in Asked.model_fields}),
                 prompts=made.prompts, judge_prompt=made.judge_prompt, exemplars=made.exemplars, models=made.models,
                 pins=run.folder.pins(), cells=list(run.labels.values()), results=run.summary["results"])


def holdings(replay: Replay) -> dict[str, Any]:
    """The run that a cassette is of, and how much it holds; the price is as if its calls were made now."""
    used, failed = Usage(), 0
    for line in replay.cassette.lines():
        if isinstance(line, Call):
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
