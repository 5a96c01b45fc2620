"""Open the resources of a run's cells: models, indexes, and pools of the questions' own chunks."""
from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ragbed.agents.models import open_model
from ragbed.agents.search import Searcher
from ragbed.documents.errors import IndexFolderError, SettingsError
from ragbed.documents.types import Chunk, Format, digest
from ragbed.experiments.judges import ModelJudge, ModelSupport
from ragbed.experiments.running.fingerprint import content_name
from ragbed.experiments.running.resources import PoolChange, Pooled, Resources, scope_name
from ragbed.retrieval.build import build_index
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.index import Index, content_of_index
from ragbed.retrieval.pool import Pool, RetrieverChoice, ScopedQuery, ScopedSearch, WholeSearch, pool_content
from ragbed.retrieval.rerankers.reranker import judges_of
from ragbed.retrieval.storage.cache import CachedEmbedder
from ragbed.retrieval.storage.folder import current_folder
from ragbed.retrieval.storage.manifest import read_manifest

if TYPE_CHECKING:
    from ragbed.agents.journal import Mode
    from ragbed.experiments.question import Benchmark
    from ragbed.experiments.running.plan import Plan
    from ragbed.experiments.running.preflight import RunSession
    from ragbed.experiments.settings import RunSettings
    from ragbed.experiments.settings.retrievers import Finder, RetrieverFactor
    from ragbed.retrieval.settings import IndexSettings
    from ragbed.retrieval.types import Progress


@contextlib.asynccontextmanager
async def open_resources(plan: Plan, resources: Resources, session: RunSession,
                         mode: Mode | None, progress: Progress) -> AsyncIterator[None]:
    """Open the models, indexes and pools that the cells need, and close them at the end.

    A replay opens no model, and no index or embedder if every search was recorded. If no question is left, `mode` is
    None, and no model is opened either. Raises SettingsError if an index has another format, and the errors of
    `open_model` and `Index.open`.
    """
    async with contextlib.AsyncExitStack() as stack:
        if mode is not None:
            await _open_models(plan, mode != "replay", session.manifest["models"], resources, stack)
        resources.cache.pins = session.kept() if mode == "replay" else None
        open_searching(plan, resources, progress)
        for searcher in resources.searchers.values():
            stack.callback(searcher.close)
        for pooled in resources.pools.values():
            stack.callback(pooled.searcher.close)
            if mode is not None and pooled.pool is not None and pooled.embeds:
                pooled.pool.embed(progress)
        yield


async def _open_models(plan: Plan, calls: bool, known: Mapping[str, str], resources: Resources,
                       stack: contextlib.AsyncExitStack) -> None:
    settings, asking = plan.settings, plan.asking
    found = [plan.finders[cell.finder].retriever for cell in plan.cells if cell.finder is not None]
    judging = [*judges_of([*found, settings.grader]),
               *(one for one in (settings.judge, settings.support) if isinstance(one, ModelJudge | ModelSupport))]
    paraphraser = [settings.paraphrasing_model] if settings.paraphrasing_model else []
    for name in dict.fromkeys([*plan.models, *(one.model for one in judging), *paraphraser]):
        opened = open_model(name, asking, calls=calls, known=known.get(name)) \
            if name not in plan.pipelines else \
            plan.pipelines[name].open_client(asking, None if calls else known.get(name))
        resources.clients[name] = await stack.enter_async_context(opened)


def open_searching(plan: Plan, resources: Resources, progress: Progress) -> None:
    """Open the indexes and pools that the cells search. Raises UserError if an index, a model or a package is
    missing."""
    for cell in plan.cells:
        if cell.finder is None:
            continue
        finder = plan.finders[cell.finder]
        if cell.format is not None:
            _open_searcher((cell.finder, cell.format), finder.retriever, plan.settings, resources, progress)
        elif cell.finder not in resources.pools:
            changes = {resources.pool_change(one) for one in plan.cells if one.finder == cell.finder and one.searched}
            _open_pool(finder, changes, resources)


def index_folder(settings: RunSettings, retriever: RetrieverFactor, format: Format) -> Path:
    """Return the folder of the index that the retriever searches; an index of the benchmark's corpus is in the run's
    folder."""
    built = settings.folder / f"index-{format}-{digest(retriever.build.model_dump_json())[:8]}"
    return retriever.index or built


def _open_searcher(key: tuple[str, Format], retriever: RetrieverFactor, settings: RunSettings, resources: Resources,
                   progress: Progress) -> None:
    if key in resources.searchers:
        return
    cached, name = resources.cache, content_name("index", *key)
    if cached.pins is None:
        resources.indexes[key] = _open_index(retriever, key[1], settings, resources, progress)
    elif name not in cached.pins and (there := _recorded_content(retriever)):
        cached.pins = {**cached.pins, name: there}
    index, how = resources.indexes.get(key), retriever_choice(retriever, resources)
    finder = WholeSearch(index, how) if index is not None else None
    resources.searchers[key] = Searcher(finder, retriever.k,
                                        cached.index_searches(key, _identity(how, key[0], resources)))


def retriever_choice(retriever: RetrieverFactor, resources: Resources) -> RetrieverChoice:
    """Return how the retriever searches."""
    return RetrieverChoice(retriever, retriever.where, lambda: resources.deps)


def _identity(how: RetrieverChoice, name: str, resources: Resources) -> str:
    """Return the identity of a retriever's search. A replay may lack the retriever's parts, so it takes the recorded
    identity."""
    pins = resources.cache.pins
    known = pins is None or how.kind.kind == "dense"  # a dense retriever has no parts
    resources.how[name] = how.identity() if known else (pins or {}).get(content_name("how", name), "")
    return resources.how[name]


def _open_index(retriever: RetrieverFactor, format: Format, settings: RunSettings, resources: Resources,
                progress: Progress) -> Index:
    path, corpus = index_folder(settings, retriever, format), resources.benchmark.corpus
    if retriever.index is None and path not in resources.opened:
        assert corpus is not None
        build_index([corpus], path, retriever.build.model_copy(update={"formats": (format,)}), progress=progress,
                    wait=True)  # another process of the run may be building it
    index = resources.index(path)
    if index.manifest.settings.formats != (format,):
        raise SettingsError(f"formats: the index {path} holds {' and '.join(index.manifest.settings.formats)} chunks; "
                            "set formats to match, and use one index per format")
    index.check_embedder()
    return index


def _recorded_content(retriever: RetrieverFactor) -> str | None:
    """Return the content hash in an index's manifest, so that a moved index is recognised. Return None without an
    index."""
    try:
        return content_of_index(read_manifest(current_folder(retriever.index))) if retriever.index else None
    except (OSError, IndexFolderError, KeyError):
        return None


def _open_pool(finder: Finder, changes: Collection[PoolChange | None], resources: Resources) -> None:
    """Open the pool that the retriever searches; two retrievers over the same chunks share one."""
    retriever, cached = finder.retriever, resources.cache
    everything, name = retriever.over == "all", retriever.name
    chunks, how = search_scopes(resources, finder, changes), retriever_choice(retriever, resources)
    pool, known = None, (cached.pins or {}).get(content_name("embedder", name), "")  # empty if nothing was recorded
    if cached.pins is None:
        embedder = CachedEmbedder(open_embedder(retriever.build.embedder))
        scopes = {scope_name(one, everything, change) for one in resources.plan.asked.values()
                  for change in (None, *changes)}
        made = Pool({scope: chunks[scope] for scope in chunks if scope in scopes}, embedder,
                    resources.benchmark.documents)
        same = (one.pool for one in resources.pools.values()
                if one.everything == everything and one.pool is not None and one.pool.content == made.content)
        known, pool = embedder.identity, next(same, made)
    every = {chunk.id for some in chunks.values() for chunk in some}
    pins = {content_name("chunks", name): pool_content(known, every), content_name("embedder", name): known} \
        if known else {}
    content = cache(lambda scope: digest(known, *(chunk.id for chunk in chunks[scope])))
    kept = cached.pool_searches(name, content, _identity(how, name, resources))
    searcher: Searcher[ScopedQuery] = Searcher(None if pool is None else ScopedSearch(pool, how), retriever.k, kept)
    resources.pools[name] = Pooled(pool, searcher, everything, pins, retriever.embeds)


def search_scopes(resources: Resources, finder: Finder,
              changes: Collection[PoolChange | None]) -> dict[str, Sequence[Chunk]]:
    """Return the chunks to search, by scope name. `changes` are the sets of negatives that some cells search instead of
    a question's own chunks."""
    benchmark, everything = resources.benchmark, finder.retriever.over == "all"
    scopes: dict[str, Sequence[Chunk]] = {"all": benchmark.searchable} if everything else {
        "shared": benchmark.shared, **{scope_name(one, everything): one.own for one in benchmark.questions if one.own}}
    for one in (one for one in changes if one is not None):
        scopes |= {scope_name(question, everything, one): resources.perturber.searched(
            one.change, question, resources.own(question), one.seed).chunks for question in benchmark.questions}
    if not finder.cut:
        return scopes
    pieces: dict[str, list[Chunk]] = {}  # a document may be in the scopes of several questions
    return {name: _cut(chunks, benchmark, finder.retriever.build, pieces) for name, chunks in scopes.items()}


def _cut(chunks: Sequence[Chunk], benchmark: Benchmark, build: IndexSettings,
         pieces: dict[str, list[Chunk]]) -> list[Chunk]:
    found: list[Chunk] = []
    for id, format in dict.fromkeys((chunk.document, chunk.format) for chunk in chunks):
        key = f"{format}:{id}"
        if key not in pieces:
            pieces[key] = build.chunker.chunk(benchmark.documents[id], format)
        found += pieces[key]
    return found
