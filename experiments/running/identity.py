"""What identifies a run: its manifest, and what tells two runs apart, in one line."""
from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ragbed.agents.models import resolve_model
from ragbed.documents.errors import SettingsError
from ragbed.documents.types import digest
from ragbed.experiments.judges.base import prompts_hash as judge_prompts_hash
from ragbed.experiments.runs.manifest import Made, manifest_of
from ragbed.experiments.runs.store import question_json
from ragbed.experiments.settings.pipelines import PipelineSettings
from ragbed.strategies.prompting import prompts_hash
from ragbed.strategies.settings.exemplars import exemplars_hash

if TYPE_CHECKING:
    from ragbed.experiments.running.plan import Plan

_PACKAGES = ("ragbed", "langgraph", "langchain-openai", "faiss-cpu", "sentence-transformers", "torch",
             "beautifulsoup4", "pymupdf", "pydantic", "xllamacpp")
_SHOWN, _BEFORE = 60, 20  # characters of a value, and those before where two values part
# Where something stands; what stands there is compared by its content.
_PLACES = ("out", "exemplars")
_QUESTIONS = ("benchmark.path", "benchmark.corpus", "benchmark.novels", "benchmark.topics")
_PACE = ("budget.", "concurrency.", "calls.calls.")  # how fast and how far a run goes, not what it is


def what_changed(path: Path, known: str, config: str, manifest: Mapping[str, Any]) -> str | None:
    """Return what the run of a folder, of the settings `known`, has other than one of these resolved settings and this
    manifest, in words; None where they are one run."""
    made, now = manifest_of(path), Made.model_validate(manifest)
    if apart := what_differs(path, known, config, manifest["benchmark"]["hash"]):
        return apart
    if (made.prompts, made.judge_prompt) != (now.prompts, now.judge_prompt):
        return "other prompts: those of ragbed have changed since"
    if made.exemplars != now.exemplars:
        return "other worked examples: the file of exemplars has changed"
    for name, content in now.sources.items():
        if made.sources.get(name) != content:
            return f"another strategy under the name {name}: what that file or package holds has changed"
    for name, identity in now.models.items():
        if made.models.get(name) != identity:
            return f"another model under the name {name}: its weights or other files have changed"
    return None


def what_differs(path: Path, known: str, config: str, questions: str) -> str | None:
    """Return what a folder's run has other than these settings and questions, in words; None where both are the same.
    `known` and `config` are resolved settings, of the run there and of the one to be begun; `questions` is the latter's
    hash."""
    same_questions = manifest_of(path).benchmark.get("hash") == questions
    if known != config and (apart := difference(known, config, same_questions)):
        return f"other settings: {apart}"
    return None if same_questions else "other questions: the benchmark's files have changed"


def manifest_for(plan: Plan, known: Mapping[str, str]) -> dict[str, Any]:
    """Return what a run would be made of, as its manifest is written (`runs.manifest.Made`), with the packages used;
    identities of models that an earlier session recorded are `known`. Raises as `identities`."""
    settings, benchmark = plan.settings, plan.benchmark
    return {"settings": digest(settings.resolved()),
            "benchmark": {"name": benchmark.name, "questions": len(benchmark.questions), "hash": plan.questions_hash,
                          "stored": digest(*(question_json(one.without_chunks()) for one in benchmark.questions))},
            "prompts": prompts_hash(), "judge_prompt": judge_prompts_hash(),
            "exemplars": exemplars_hash(plan.exemplars), "sources": plan.sources, "models": identities(plan, known),
            "scheme": asdict(plan.scheme), "scoring": settings.scoring, "judge": settings.judge.name,
            "sweeps": plan.sweeps, "cells": [{"id": cell.id, **cell.levels} for cell in plan.cells],
            "python": platform.python_version(), "packages": {name: _version(name) for name in _PACKAGES},
            **({} if plan.shard is None else {"shard": {
                "part": str(plan.shard), "notes": plan.notes, "exemplars": len(plan.exemplars)}})}


def identities(plan: Plan, known: Mapping[str, str]) -> dict[str, str]:
    """Return the identity of every model by name, judges' too; those of an earlier session of the run are `known`. Of
    two with one identity, one would get no call. Raises ModelError where a model is unknown, and SettingsError where
    two are one."""
    names: dict[str, str] = {}
    for name in plan.models:
        identity = (_of_pipeline(plan.pipelines[name], known.get(name)) if name in plan.pipelines else
                    resolve_model(name, calls=False, known=known.get(name)).identity)
        if identity in names:
            raise SettingsError(f"models: {names[identity]} and {name} are one model, {identity}, to the journal, "
                                "which knows neither host nor path; name one of them, or serve them under two names")
        names[identity] = name
    models = {name: identity for identity, name in names.items()}
    for name in plan.settings.other_models:
        models[name] = resolve_model(name, calls=False, known=known.get(name)).identity
    return models


def _of_pipeline(pipeline: PipelineSettings, known: str | None) -> str:
    """The identity; the `known` one where its files are not here, as for a replay elsewhere."""
    try:
        return pipeline.identity
    except SettingsError:
        if known is None:
            raise
        return known


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def difference(known: str, now: str, same_questions: bool) -> str | None:
    """Return the first setting that differs between two resolved ones, as YAML, with both values; None where it is one
    run all the same. A run may be moved, and so may its data where both ask the same questions; and it may go on
    faster, slower or with another budget, and be probed once it is finished."""
    try:
        old, new = yaml.safe_load(known), yaml.safe_load(now)
    except (yaml.YAMLError, RecursionError):
        old = None
    if not isinstance(old, dict):
        return "its config.yaml is damaged"
    passed_over = {*_PLACES, *(_QUESTIONS if same_questions else ())}
    return next((f"{place} {_apart(before, after)}" for place, before, after in _differing(old, new)
                 if place not in passed_over and not f"{place}.".startswith(_PACE)
                 and not (place == "probe" and before is None)), None)


def _differing(old: Any, new: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        inside = [(str(key), old.get(key), new.get(key)) for key in dict.fromkeys([*old, *new])]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and all(
            isinstance(item, Mapping) for item in (*old, *new)):
        inside = [(str(at), *pair) for at, pair in enumerate(zip(old, new, strict=True))]
    else:
        if old != new:
            yield place, old, new
        return
    for key, before, after in inside:
        yield from _differing(before, after, f"{place}.{key}" if place else key)


def _apart(old: Any, new: Any) -> str:
    """Both values; of long ones, what stands around where they part."""
    texts = [json.dumps(value, ensure_ascii=False, default=str) for value in (old, new)]
    parts = next((at for at, (ours, theirs) in enumerate(zip(*texts, strict=False)) if ours != theirs),
                 min(map(len, texts)))
    start = max(parts - _BEFORE, 0) if max(map(len, texts)) > _SHOWN else 0
    was, now = (("..." if start else "") + text[start:start + _SHOWN] + ("..." if len(text) > start + _SHOWN else "")
                for text in texts)
    return f"was {was}, is {now}"
