"""The manifest of a run: what it was made of, as whatever reads a run has it."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from ragbed.documents.errors import RunError
from ragbed.documents.types import digest
from ragbed.experiments.metrics import Scoring
from ragbed.experiments.question import Benchmark, Scheme
from ragbed.experiments.runs.store import content_of, question_json


def config_of(run: Path) -> str | None:
    """Return the resolved settings of the run begun in the folder, or None; RunError where they cannot be read."""
    path = run / "config.yaml"
    try:
        return content_of(path).decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: cannot be read; use --fresh to begin anew") from error


class MadeShard(BaseModel):
    """Which part of a run was made, and what the summary of the whole needs beside all records."""

    part: str  # such as 3/16
    notes: tuple[str, ...]  # of the plan
    exemplars: int  # how many every prompt shows


class Made(BaseModel):
    """What a run was made of, by its manifest."""

    settings: str  # a hash of the resolved settings
    benchmark: dict[str, str | int]  # its name, its number of questions, and their hashes as loaded and as kept
    prompts: str  # a hash, as of `judge_prompt` and `exemplars`
    judge_prompt: str
    exemplars: str | None
    sources: dict[str, str]  # hashes of plug-ins and of files of worked examples, by how settings name them
    models: dict[str, str]  # identities by name
    scheme: Scheme
    scoring: Scoring
    judge: str  # who grades them
    sweeps: dict[str, tuple[str, float]]  # by label: what strategies of other thresholds share, and the threshold
    cells: list[Mapping[str, Any]]  # the id and the factors of each, in order
    shard: MadeShard | None = None  # None where it is a whole run


def manifest_of(path: Path) -> Made:
    """Read the manifest of a run's folder; RunError where it is missing or damaged, or lacks what it should hold."""
    try:
        return Made.model_validate_json(content_of(path / "manifest.json"))
    except (OSError, ValidationError) as error:
        raise RunError(f"{path}: manifest.json is missing, damaged, or made by another version of ragbed; run it "
                       "again, with --fresh") from error


def known_models(path: Path) -> dict[str, str]:
    """Return the identities of the models that a run's manifest names; empty where there is none."""
    try:
        return manifest_of(path).models
    except RunError:
        return {}


def questions_hash(benchmark: Benchmark) -> str:
    """Return one hash over the questions and all that they bring."""
    return digest(*(digest(question_json(one.without_chunks()), *(chunk.id for chunk in one.chunks))  # of their content
                    for one in benchmark.questions))
