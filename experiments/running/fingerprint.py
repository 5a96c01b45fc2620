"""Fingerprints of runs: the manifest, differences between two runs, and hashes of everything that is searched."""
from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from ragbed.agents.models import resolve_model
from ragbed.agents.search import FoundHits, Request, SearchStore, StoredRetriever
from ragbed.documents.errors import SettingsError
from ragbed.documents.types import digest
from ragbed.experiments.judges.base import prompts_hash as judge_prompts_hash
from ragbed.experiments.question import Gold
from ragbed.experiments.runs.manifest import Made, read_manifest
from ragbed.experiments.runs.store import question_json
from ragbed.experiments.settings.pipelines import PipelineSettings
from ragbed.retrieval.index import Index, content_of_index
from ragbed.retrieval.pool import ScopedQuery
from ragbed.strategies.prompting import prompts_hash
from ragbed.strategies.settings.exemplars import exemplars_hash

if TYPE_CHECKING:
    from ragbed.experiments.running.plan import Plan

_PACKAGES = ("ragbed", "langgraph", "langchain-openai", "faiss-cpu", "sentence-transformers", "torch",
             "beautifulsoup4", "pymupdf", "pydantic", "xllamacpp")
_SHOWN, _BEFORE = 60, 20  # characters of a value in a message, in total and before the first difference
# Settings that hold paths. The content there is compared instead.
_PLACES = ("out", "exemplars")
_QUESTIONS = ("benchmark.path", "benchmark.corpus", "benchmark.novels", "benchmark.topics")
_PACE = ("budget.", "concurrency.", "calls.calls.")  # settings for the speed and the end of a run


def manifest_for(plan: Plan, known: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest of a run (`runs.manifest.Made`), with the versions of packages.

    `known` has the models' identities that an earlier session recorded. Raises the errors of `identities`.
    """
    settings, benchmark = plan.settings, plan.benchmark
    return {"settings": digest(settings.to_yaml()),
            "benchmark": {"name": benchmark.name, "questions": len(benchmark.questions), "hash": plan.questions_hash,
                          "stored": digest(*(question_json(one.drop_chunks()) for one in benchmark.questions))},
            "prompts": prompts_hash(), "judge_prompt": judge_prompts_hash(),
            "exemplars": exemplars_hash(plan.exemplars), "sources": plan.sources, "models": identities(plan, known),
            "scheme": asdict(plan.scheme), "scoring": settings.scoring, "judge": settings.judge.name,
            "sweeps": plan.sweeps, "cells": [{"id": cell.id, **cell.levels} for cell in plan.cells],
            "python": platform.python_version(), "packages": {name: _version(name) for name in _PACKAGES},
            **({} if plan.shard is None else {"shard": {
                "part": str(plan.shard), "notes": plan.notes, "exemplars": len(plan.exemplars)}})}


def identities(plan: Plan, known: Mapping[str, str]) -> dict[str, str]:
    """Return the identity of every model, judges included, by name.

    Raises ModelError if a model is unknown, and SettingsError if two names mean the same model, because the journal
    would return the first one's replies for the second.
    """
    names: dict[str, str] = {}
    for name in plan.models:
        identity = (_pipeline_identity(plan.pipelines[name], known.get(name)) if name in plan.pipelines else
                    resolve_model(name, calls=False, known=known.get(name)).identity)
        if identity in names:
            raise SettingsError(f"models: {names[identity]} and {name} have the same identity, {identity}, because "
                                "the journal ignores hosts and paths; name one of them, or serve them under two names")
        names[identity] = name
    models = {name: identity for identity, name in names.items()}
    for name in plan.settings.other_models:
        models[name] = resolve_model(name, calls=False, known=known.get(name)).identity
    return models


def _pipeline_identity(pipeline: PipelineSettings, known: str | None) -> str:
    try:
        return pipeline.identity
    except SettingsError:
        if known is None:  # a replay on another machine does not need the pipeline's files
            raise
        return known


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def describe_changes(path: Path, known: str, config: str, manifest: Mapping[str, Any]) -> str | None:
    """Describe how the run in a folder differs from a new run; return None if they are the same. `known` and `config`
    are the resolved settings of the folder's run and of the new one, and `manifest` is the new one's."""
    made, now = read_manifest(path), Made.model_validate(manifest)
    if difference := describe_settings(path, known, config, manifest["benchmark"]["hash"]):
        return difference
    if (made.prompts, made.judge_prompt) != (now.prompts, now.judge_prompt):
        return "other prompts: ragbed's own have changed since"
    if made.exemplars != now.exemplars:
        return "other worked examples: the file of exemplars has changed"
    for name, content in now.sources.items():
        if made.sources.get(name) != content:
            return f"another strategy under the name {name}: its file or package has changed"
    for name, identity in now.models.items():
        if made.models.get(name) != identity:
            return f"another model under the name {name}: its weights or other files have changed"
    return None


def describe_settings(path: Path, known: str, config: str, questions: str) -> str | None:
    """Describe how a folder's run differs in settings and questions; return None if both are the same. `questions` is
    the hash of the new run's questions."""
    same_questions = read_manifest(path).benchmark.get("hash") == questions
    if known != config and (found := difference(known, config, same_questions)):
        return f"other settings: {found}"
    return None if same_questions else "other questions: the benchmark's files have changed"


def difference(known: str, now: str, same_questions: bool) -> str | None:
    """Describe the first setting that differs between two resolved YAML texts, with both values. Return None if they
    describe the same run.

    Some differences are allowed. A run may be moved, and so may its data if the questions stay the same. Its speed and
    its budget may change, and a finished run may get the setting `probe`.
    """
    try:
        old, new = yaml.safe_load(known), yaml.safe_load(now)
    except (yaml.YAMLError, RecursionError):
        old = None
    if not isinstance(old, dict):
        return "its config.yaml is damaged"
    ignored = {*_PLACES, *(_QUESTIONS if same_questions else ())}
    return next((f"{place} {_show_both(before, after)}" for place, before, after in _differences(old, new)
                 if place not in ignored and not f"{place}.".startswith(_PACE)
                 and not (place == "probe" and before is None)), None)


def _differences(old: Any, new: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
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
        yield from _differences(before, after, f"{place}.{key}" if place else key)


def _show_both(old: Any, new: Any) -> str:
    """Return both values. Long values are cut to the text around their first difference."""
    texts = [json.dumps(value, ensure_ascii=False, default=str) for value in (old, new)]
    first = next((at for at, (ours, theirs) in enumerate(zip(*texts, strict=False)) if ours != theirs),
                 min(map(len, texts)))
    start = max(first - _BEFORE, 0) if max(map(len, texts)) > _SHOWN else 0
    was, now = (("..." if start else "") + text[start:start + _SHOWN] + ("..." if len(text) > start + _SHOWN else "")
                for text in texts)
    return f"was {was}, is {now}"


IndexKey = tuple[str | None, str | None]  # a finder's name and a format
_NAMES = {"index": "the index of {} in {}", "chunks": "the chunks that {} searches", "embedder": "the embedder of {}",
          "how": "how {} finds"}


def content_name(of: Literal["index", "chunks", "embedder", "how"], *names: str | None) -> str:
    """Return the name under which a run stores a content hash: of the index of a retriever and format, of a pool's
    chunks or embedder, or of a retriever's method."""
    return _NAMES[of].format(*names)


class SearchCache:
    """Store the results of searches in indexes and pools, keyed by their content, so that a replay needs neither.

    Attributes:
        pins: in a replay, the recorded content hashes by `content_name`; None if the run searches itself.
    """

    def __init__(self, indexes: Mapping[IndexKey, Index], source_of: Callable[[str], str]) -> None:
        self.searches = SearchStore(source_of)
        self.pins: Mapping[str, str] | None = None
        self._indexes = indexes

    def content(self, key: IndexKey) -> str:
        """Return a hash of the index's content. It is empty if a replay lacks it, and then nothing is stored."""
        index = self._indexes.get(key)
        return ((self.pins or {}).get(content_name("index", *key), "") if index is None
                else content_of_index(index.manifest))

    def take(self, key: IndexKey, request: Request, make: Callable[[Index], FoundHits]) -> FoundHits:
        """Return the stored result of a request to an index, or compute it. Raises ReplayMiss if neither is
        possible."""
        index = self._indexes.get(key)
        return self.searches.find_or_make({"of": self.content(key), **request},
                                   None if index is None else lambda: make(index), content_name("index", *key))

    def index_searches(self, key: IndexKey, how: str) -> StoredRetriever[str]:
        """Return a retriever that stores and reuses the searches of an index, for a retriever with this identity."""
        content = self.content(key)
        return StoredRetriever(self.searches, content_name("index", *key),
                            lambda query, k: {"of": content, "query": query, "k": k, "how": how})

    def pool_searches(self, name: str, content: Callable[[str], str], how: str) -> StoredRetriever[ScopedQuery]:
        """Return a retriever that stores and reuses the searches of a pool. `content` hashes a scope's embedder and its
        chunks in their order, which decides ties. The pool's other chunks do not matter."""
        return StoredRetriever(self.searches, content_name("chunks", name), lambda asked, k: {
            "of": content(asked.scope), "query": asked.query, "k": k, "how": how})


def gold_request(gold: Iterable[Gold]) -> list[list[object]]:
    """Return gold items in the form that identifies a request: only their places."""
    return [[item.document, item.chunk, item.format, item.start, item.end, item.page] for item in gold]
