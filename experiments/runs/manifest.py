"""The manifest of a run: settings, benchmark, models, and hashes of all inputs."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from ragbed.documents.errors import RunError
from ragbed.documents.types import digest
from ragbed.experiments.metrics import Scoring
from ragbed.experiments.question import Benchmark, Scheme
from ragbed.experiments.runs.store import question_json, read_run_file


def read_config(run: Path) -> str | None:
    """Return the resolved settings of the run in a folder; None if there is none. Raises RunError if they cannot be
    read."""
    path = run / "config.yaml"
    try:
        return read_run_file(path).decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: cannot be read; start again with --fresh") from error


class MadeShard(BaseModel):
    """The shard in a folder. Besides the records, the summary of the whole run needs these values.

    Attributes:
        part: such as 3/16.
        notes: notes of the plan.
        exemplars: the number of worked examples in every prompt.
    """

    part: str
    notes: tuple[str, ...]
    exemplars: int


class Made(BaseModel):
    """The manifest of a run.

    Attributes:
        settings: a hash of the resolved settings; `prompts`, `judge_prompt` and `exemplars` are hashes too.
        benchmark: its name, number of questions, and hashes of the questions as loaded and as stored.
        sources: hashes of plug-ins and files of worked examples, by their name in the settings.
        models: identities by name.
        judge: who grades the answers.
        sweeps: see `Plan.sweeps`.
        cells: id and factors of each cell, in order.
        shard: None for a whole run.
    """

    settings: str
    benchmark: dict[str, str | int]
    prompts: str
    judge_prompt: str
    exemplars: str | None
    sources: dict[str, str]
    models: dict[str, str]
    scheme: Scheme
    scoring: Scoring
    judge: str
    sweeps: dict[str, tuple[str, float]]
    cells: list[Mapping[str, Any]]
    shard: MadeShard | None = None


def read_manifest(path: Path) -> Made:
    """Read the manifest of a run's folder. Raises RunError if it is missing, damaged or incomplete."""
    try:
        return Made.model_validate_json(read_run_file(path / "manifest.json"))
    except (OSError, ValidationError) as error:
        raise RunError(f"{path}: manifest.json is missing, damaged, or made by another version of ragbed; run it "
                       "again, with --fresh") from error


def known_models(path: Path) -> dict[str, str]:
    """Return the models' identities in a run's manifest; empty if there is none."""
    try:
        return read_manifest(path).models
    except RunError:
        return {}


def questions_hash(benchmark: Benchmark) -> str:
    """Return one hash of the questions with their chunks."""
    return digest(*(digest(question_json(one.drop_chunks()), *(chunk.id for chunk in one.chunks))
                    for one in benchmark.questions))
