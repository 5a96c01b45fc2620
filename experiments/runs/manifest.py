"""The manifest of a run: what it was made of, as whatever reads a run has it."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from documents.errors import RunError
from documents.types import digest
from experiments.metrics import Scoring
from experiments.question import Benchmark, Scheme
from experiments.runs.store import content_of, question_json


class Made(BaseModel):
    """What a run was made of, by its manifest.

    Attributes:
        settings: a hash of the resolved settings.
        benchmark: its name, the number of its questions, and hashes of these as they were loaded and as they are kept.
        prompts, judge_prompt, exemplars: hashes.
        sources: hashes of plug-ins and of files of worked examples, by how settings name them.
        models: identities by name.
        scheme, scoring: how answers are scored.
        judge: who grades them.
        sweeps: strategies that differ from others in their threshold alone, by what tables call them: what they share
            with the others, and the threshold.
        cells: the id and the factors of each, in order.
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
