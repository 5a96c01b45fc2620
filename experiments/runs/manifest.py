"""The manifest of a run: what it was made of."""
from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from agents.models import resolve
from documents.errors import BenchmarkError, RunError, SettingsError
from documents.types import digest
from experiments.judges.base import prompts_hash as judge_prompts_hash
from experiments.question import Benchmark, Question
from experiments.runs.store import question_json
from experiments.settings import RunSettings
from experiments.settings.file import completed
from experiments.settings.matrix import models_of
from experiments.settings.strategies import sources_of
from experiments.settings.targets import difference
from strategies.prompting import prompts_hash
from strategies.settings.exemplars import exemplars_hash
from strategies.types import Exemplar

_PACKAGES = ("ragbed", "langgraph", "langchain-openai", "faiss-cpu", "sentence-transformers", "torch",
             "beautifulsoup4", "pymupdf", "pydantic", "xllamacpp")


class Made(BaseModel):
    """What a run was made of, by its manifest. All but `settings` has to be the same for the run to go on."""

    settings: str
    benchmark: dict[str, str | int]
    prompts: str
    judge_prompt: str
    exemplars: str | None = None
    sources: dict[str, str] = {}
    models: dict[str, str]


def check_ids(benchmark: Benchmark) -> None:
    """Make sure that no two questions have one id; BenchmarkError where two have."""
    seen: set[str] = set()
    for question in benchmark.questions:
        if question.id in seen:
            raise BenchmarkError(f"{benchmark.name}: two questions have the id {question.id!r}; give each its own")
        seen.add(question.id)


def what_differs(path: Path, known: str, config: str, questions: str) -> str | None:
    """What a folder's run has other than these settings and questions, in words; None where both are the same.

    Args:
        known, config: the resolved settings of the run there, and of the one to be begun.
        questions: the hash of the latter's.
    """
    same_questions = manifest_of(path).benchmark.get("hash") == questions
    if known != config and (apart := difference(completed(known), config, same_questions)):
        return f"other settings: {apart}"
    return None if same_questions else "other questions: the benchmark's files have changed"


def known_models(path: Path) -> dict[str, str]:
    """The identities of the models that a run's manifest names; empty where there is none."""
    try:
        return Made.model_validate_json((path / "manifest.json").read_bytes()).models
    except (OSError, ValidationError):
        return {}


def manifest_for(settings: RunSettings, benchmark: Benchmark, exemplars: tuple[Exemplar, ...],
                 known: Mapping[str, str]) -> dict[str, Any]:
    """What a run would be made of, as its manifest is written.

    Args:
        known: identities of models by name, as an earlier beginning recorded them.

    Raises:
        ModelError, SettingsError: see `identities`.
    """
    return {"settings": digest(settings.resolved()),
            "benchmark": {"name": benchmark.name, "questions": len(benchmark.questions),
                          "hash": questions_hash(benchmark),
                          "stored": digest(*(question_json(one.without_chunks()) for one in benchmark.questions))},
            "prompts": prompts_hash(), "judge_prompt": judge_prompts_hash(),
            "exemplars": exemplars_hash(exemplars), "sources": sources_of(settings),
            "models": identities(settings, known),
            "python": platform.python_version(), "packages": {name: _version(name) for name in _PACKAGES}}


def questions_hash(benchmark: Benchmark) -> str:
    """One hash over the questions and all that they bring."""
    return digest(*map(_content, benchmark.questions))


def _content(question: Question) -> str:
    """The question with the ids of its chunks, which are hashes of their content."""
    return digest(question_json(question.without_chunks()), *(chunk.id for chunk in question.chunks))


def identities(settings: RunSettings, known: Mapping[str, str]) -> dict[str, str]:
    """The identity of every model by name, judges' too. Of two with one identity, one would get no call.

    Args:
        known: of an earlier beginning of the run.

    Raises:
        ModelError: a model is unknown.
        SettingsError: two models are one.
    """
    names: dict[str, str] = {}
    for name in models_of(settings):
        identity = resolve(name, calls=False, known=known.get(name)).identity
        if identity in names:
            raise SettingsError(f"models: {names[identity]} and {name} are one model, {identity}, to the journal, "
                                "which knows neither host nor path; name one of them, or serve them under two names")
        names[identity] = name
    models = {name: identity for identity, name in names.items()}
    for name in settings.judging_models:
        models[name] = resolve(name, calls=False, known=known.get(name)).identity
    return models


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def manifest_of(path: Path) -> Made:
    """What the manifest of a run's folder says; RunError where it is missing or damaged."""
    try:
        return Made.model_validate_json((path / "manifest.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise RunError(f"{path}: manifest.json is missing or damaged; use --fresh to begin anew") from error
