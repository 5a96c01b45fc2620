"""Fingerprints of runs: the manifest, differences between two runs, and hashes of the searched content."""
from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragbed.agents.models import resolve_model
from ragbed.agents.search import FoundHits, Request, SearchStore, StoredRetriever
from ragbed.documents.errors import SettingsError
from ragbed.documents.types import Chunk, digest
from ragbed.experiments.judges.judge import prompts_hash as judge_prompts_hash
from ragbed.experiments.question import Gold
from ragbed.experiments.runs.run_manifest import Made, changed_inputs, difference, list_differences, read_manifest
from ragbed.experiments.runs.store import RunFolder, question_json
from ragbed.experiments.settings.pipelines import PipelineSettings
from ragbed.retrieval.index import Index, content_of_index
from ragbed.retrieval.pool import ScopedQuery
from ragbed.strategies.prompting import prompts_hash
from ragbed.strategies.settings.exemplars import exemplars_hash

if TYPE_CHECKING:
    from ragbed.experiments.running.plan import Plan

_PACKAGES = ("ragbed", "langgraph", "langchain-openai", "faiss-cpu", "sentence-transformers", "torch",
             "beautifulsoup4", "pymupdf", "pydantic", "xllamacpp")


def manifest_for(plan: Plan, known: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest of a run (`runs.run_manifest.Made`), with the versions of packages.

    `known` has the identities of models that an earlier session recorded. Raises the same errors as `identities`.
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
    calls = plan.settings.calls
    for name in plan.models:
        identity = (_pipeline_identity(plan.pipelines[name], known.get(name)) if name in plan.pipelines else
                    resolve_model(name, calls, calls=False, known=known.get(name)).recorded_as)
        if identity in names:
            raise SettingsError(f"models: {names[identity]} and {name} have the same identity, {identity}, because "
                                "the journal ignores hosts and paths; keep one of them, or give one its own name, "
                                f"as in {{name: second, model: {name}}}")
        names[identity] = name
    models = {name: identity for identity, name in names.items()}
    for name in plan.settings.other_models:
        models[name] = resolve_model(name, calls, calls=False, known=known.get(name)).recorded_as
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


_RESCORED = ("metrics", "headline")  # settings that act on finished records without a call


def list_changes(plan: Plan, folder: RunFolder, known: str, config: str, manifest: Mapping[str, Any]) -> list[str]:
    """Describe each change since the run in a folder that calls or records depend on; empty if there is none. `known`
    and `config` are the resolved settings of the old and the new run, and `manifest` is the manifest of the new run."""
    made, now = read_manifest(folder.path), Made.model_validate(manifest)
    same = made.benchmark.get("hash") == now.benchmark["hash"]
    found = [] if known == config else list(list_differences(known, config, same, free=_RESCORED))
    return [*found, *([] if same else [_count_changed(plan, folder)]), *changed_inputs(made, now)]


def _count_changed(plan: Plan, folder: RunFolder) -> str:
    before, now = folder.questions(), {one.id: one.drop_chunks() for one in plan.asked.values()}
    # The id of a question may follow from its text, so an edited one may have another id at the same place.
    moved = sum(old not in now and new not in before for old, new in zip(before, now, strict=False))
    counts = {"edited": moved + sum(question_json(now[id]) != question_json(before[id]) for id in now.keys() & before),
              "added": len(now.keys() - before) - moved, "removed": len(before.keys() - now) - moved}
    return f"questions: {', '.join(f'{count} {what}' for what, count in counts.items() if count) or 'other documents'}"


def describe_settings(path: Path, known: str, config: str, questions: str) -> str | None:
    """Describe how a folder's run differs in settings or questions; return None if both are the same. `questions` is
    the hash of the new run's questions."""
    same_questions = read_manifest(path).benchmark.get("hash") == questions
    if known != config and (found := difference(known, config, same_questions)):
        return f"different settings: {found}"
    return None if same_questions else "different questions: the benchmark's files have changed"


IndexKey = tuple[str | None, str | None]  # a finder's name and a format
_NAMES = {"index": "the index of {} in {}", "chunks": "the chunks that {} searches", "embedder": "the embedder of {}",
          "tools": "the tools {}", "how": "how {} finds"}


def content_name(of: Literal["index", "chunks", "embedder", "how", "tools"], *names: str | None) -> str:
    """Return the name under which a run stores a content hash: of the index of a retriever and format, of a pool's
    chunks or embedder, of a retriever's method, or of tools."""
    return _NAMES[of].format(*names)


class SearchCache:
    """Stores search results by the content of the index or pool, so that a replay needs neither.

    Attributes:
        pins: the recorded content hashes in a replay, keyed by `content_name`; None if the run really searches.
    """

    def __init__(self, indexes: Mapping[IndexKey, Index], source_of: Callable[[str], str],
                 header_of: Callable[[Chunk], str] | None = None) -> None:
        self.searches = SearchStore(source_of, header_of)
        self.pins: Mapping[str, str] | None = None
        self._indexes = indexes

    def content(self, key: IndexKey) -> str:
        """Return a hash of the index's content. If a replay lacks it, the hash is empty, and nothing is stored."""
        index = self._indexes.get(key)
        return ((self.pins or {}).get(content_name("index", *key), "") if index is None
                else content_of_index(index.manifest))

    def take(self, key: IndexKey, request: Request, make: Callable[[Index], FoundHits]) -> FoundHits:
        """Return the stored result of a request, or compute it. Raises ReplayMiss if neither is possible."""
        index = self._indexes.get(key)
        return self.searches.find_or_make({"of": self.content(key), **request},
                                   None if index is None else lambda: make(index), content_name("index", *key))

    def index_searches(self, key: IndexKey, how: str) -> StoredRetriever[str]:
        """Return a retriever that stores and reuses searches of an index. `how` identifies its method."""
        content = self.content(key)
        return StoredRetriever(self.searches, content_name("index", *key),
                            lambda query, k: {"of": content, "query": query, "k": k, "how": how})

    def pool_searches(self, name: str, content: Callable[[str], str], how: str) -> StoredRetriever[ScopedQuery]:
        """Return a retriever that stores and reuses the searches of a pool. `content` returns a hash of a scope's
        embedder and of its chunks in order, because the order decides ties. Other chunks of the pool do not matter."""
        return StoredRetriever(self.searches, content_name("chunks", name), lambda asked, k: {
            "of": content(asked.scope), "query": asked.query, "k": k, "how": how})


def gold_request(gold: Iterable[Gold]) -> list[list[object]]:
    """Return the part of gold items that identifies a request: only their positions."""
    return [[item.document, item.chunk, item.format, item.start, item.end, item.page] for item in gold]
