"""Open the resources of a run's cells: models, indexes, and pools of the questions' own chunks."""
from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ragbed.agents.models import open_model
from ragbed.agents.search import Searcher
from ragbed.agents.tools import StoredTools, open_toolbox, search_tool, searches_of, tools_name
from ragbed.documents.errors import IndexFolderError, SettingsError, did_you_mean
from ragbed.documents.types import Chunk, Format, digest
from ragbed.experiments.judges import model_of
from ragbed.experiments.running.fingerprint import content_name
from ragbed.experiments.running.resources import PoolChange, Pooled, Resources, scope_name
from ragbed.retrieval.build import build_index
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.index import Index, content_of_index
from ragbed.retrieval.pool import (
    Pool,
    PoolSettings,
    RetrieverChoice,
    ScopedQuery,
    ScopedSearch,
    WholeSearch,
    pool_content,
)
from ragbed.retrieval.rerankers.reranker import judges_of
from ragbed.retrieval.storage.cache import CachedEmbedder
from ragbed.retrieval.storage.folder import current_folder
from ragbed.retrieval.storage.manifest import read_manifest

if TYPE_CHECKING:
    from ragbed.agents.journal import Mode
    from ragbed.documents.chunkers import ChunkerSettings
    from ragbed.experiments.question import Benchmark
    from ragbed.experiments.running.plan import Plan
    from ragbed.experiments.running.preflight import RunSession
    from ragbed.experiments.settings import RunSettings
    from ragbed.experiments.settings.retrievers import Finder, RetrieverFactor
    from ragbed.retrieval.types import Progress


@contextlib.asynccontextmanager
async def open_resources(plan: Plan, resources: Resources, session: RunSession,
                         mode: Mode | None, progress: Progress) -> AsyncIterator[None]:
    """Open the models, indexes and pools that the cells need, and close them at the end.

    A replay opens no model, and no index or embedder if every search was recorded. If there is no question left to ask,
    `mode` is None, and no model is opened either. Raises SettingsError if an index has another format, and the same
    errors as `open_model` and `Index.open`.
    """
    async with contextlib.AsyncExitStack() as stack:
        if mode is not None:
            await _open_models(plan, mode != "replay", session.manifest["models"], resources, stack)
        resources.cache.pins = session.kept() if mode == "replay" else None
        open_searching(plan, resources, progress)
        await _open_tools(plan, resources, stack)
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
    judging = (*settings.judging_models, *map(model_of, settings.judges))
    others = [*(one.model for one in judges_of([*found, settings.grader])), *filter(None, judging)]
    for name in dict.fromkeys([*plan.models, *others]):
        opened = open_model(name, asking, calls=calls, known=known.get(name)) \
            if name not in plan.pipelines else \
            plan.pipelines[name].open_client(asking, None if calls else known.get(name))
        resources.clients[name] = await stack.enter_async_context(opened)


async def _open_tools(plan: Plan, resources: Resources, stack: contextlib.AsyncExitStack) -> None:
    pins, store = resources.cache.pins, resources.cache.searches
    known = dict.fromkeys(search_tool(cell.retriever) for cell in plan.cells if cell.retriever)
    for tools in filter(None, (plan.tasks(cell).tools for cell in plan.cells)):
        for unknown in searches_of(tools) - {*known}:
            raise SettingsError(f"tools: {unknown} searches no retriever of the run; {did_you_mean(unknown, known)}"
                                f"choose from: {', '.join(['search', *known])}")
        if (name := tools_name(tools)) not in resources.tools:
            toolbox = await stack.enter_async_context(open_toolbox(tools)) if pins is None else None
            recorded = (pins or {}).get(content_name("tools", name), "")
            resources.tools[name] = StoredTools(tools, toolbox, store, recorded)


def open_searching(plan: Plan, resources: Resources, progress: Progress) -> None:
    """Open the indexes and pools that cells search. Raises UserError if an index, model or package is missing."""
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
    """Return the retriever's index folder. An index of the benchmark's corpus is in the run's folder."""
    built = settings.folder / f"index-{format}-{digest(retriever.build.for_index.model_dump_json())[:8]}"
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
    """Return a string that identifies a retriever's method. A replay uses the recorded one."""
    pins = resources.cache.pins
    known = pins is None or how.kind.kind == "dense"  # a dense retriever has no parts
    resources.how[name] = how.identity() if known else (pins or {}).get(content_name("how", name), "")
    return resources.how[name]


def _open_index(retriever: RetrieverFactor, format: Format, settings: RunSettings, resources: Resources,
                progress: Progress) -> Index:
    path, corpus = index_folder(settings, retriever, format), resources.benchmark.corpus
    if retriever.index is None and path not in resources.opened:
        assert corpus is not None
        built = build_index([corpus], path, retriever.build.for_index.model_copy(update={"formats": (format,)}),
                    progress=progress, wait=True)  # another shard of the run may be building it
        if "index" in built.seconds:
            resources.indexing[path] = built.seconds["index"]
    index = resources.index(path)
    if index.manifest.settings.formats != (format,):
        raise SettingsError(f"formats: the index {path} holds {' and '.join(index.manifest.settings.formats)} chunks; "
                            "set formats to match, and use one index per format")
    index.check_embedder()
    _check_gold_chunks(index, resources, f"the index of {retriever.name}")
    return index


def _check_gold_chunks(index: Index, resources: Resources, where: str) -> None:
    """Raise SettingsError if gold names chunks and the index has none of them."""
    named = [item.chunk for question in resources.benchmark.questions for item in question.gold
             if item.chunk is not None and not item.document]
    for name in named:
        with contextlib.suppress(KeyError):
            index.chunks.row(name)
            return
    if named:
        raise SettingsError(f"{where} has none of the {len(named)} chunks that the gold names, such as {named[0]}: its "
                            "documents were cut in another way; name the index that has them with index: FOLDER, or "
                            "give gold by document, page or span")


def _recorded_content(retriever: RetrieverFactor) -> str | None:
    """Return the content hash in an index's manifest, so that a moved index is recognised; None without one."""
    try:
        return content_of_index(read_manifest(current_folder(retriever.index))) if retriever.index else None
    except (OSError, IndexFolderError, KeyError):
        return None


def _open_pool(finder: Finder, changes: Collection[PoolChange | None], resources: Resources) -> None:
    """Open the pool that the retriever searches; two retrievers over the same chunks share one."""
    retriever, cached = finder.retriever, resources.cache
    everything, name = retriever.over == "all", retriever.name
    chunks, how = search_scopes(resources, finder, changes), retriever_choice(retriever, resources)
    settings = PoolSettings(retriever.build.given.get("vectors"), bool(retriever.build.given.get("titled")))
    pool, known = None, (cached.pins or {}).get(content_name("embedder", name), "")  # None if nothing was recorded
    if cached.pins is None:
        embedder = CachedEmbedder(open_embedder(retriever.build.for_index.embedder))
        scopes = {scope_name(one, everything, change) for one in resources.plan.asked.values()
                  for change in (None, *changes)}
        made = Pool({scope: chunks[scope] for scope in chunks if scope in scopes}, embedder,
                    resources.benchmark.documents, settings,
                    [one.pool for one in resources.pools.values() if one.pool is not None])
        same = (one.pool for one in resources.pools.values()
                if one.everything == everything and one.pool is not None and one.pool.content == made.content)
        known, pool = embedder.identity, next(same, made)
    every = {chunk.id for some in chunks.values() for chunk in some}
    same_hits = settings.identity(known)
    content = cache(lambda scope: digest(same_hits, *(chunk.id for chunk in chunks[scope])))
    pins = {content_name("chunks", name): pool_content(same_hits, every), content_name("embedder", name): known} \
        if known else {}
    kept = cached.pool_searches(name, content, _identity(how, name, resources))
    searcher: Searcher[ScopedQuery] = Searcher(None if pool is None else ScopedSearch(pool, how), retriever.k, kept)
    resources.pools[name] = Pooled(pool, searcher, everything, pins, content, retriever.embeds)


def search_scopes(resources: Resources, finder: Finder,
              changes: Collection[PoolChange | None]) -> dict[str, Sequence[Chunk]]:
    """Return the chunks to search, by scope name. `changes` lists sets of negatives that replace a question's chunks.
    """
    benchmark, everything = resources.benchmark, finder.retriever.over == "all"
    scopes: dict[str, Sequence[Chunk]] = {"all": benchmark.searchable} if everything else {
        "shared": benchmark.shared, **{scope_name(one, everything): one.own for one in benchmark.questions if one.own}}
    for one in (one for one in changes if one is not None):
        scopes |= {scope_name(question, everything, one): resources.perturber.searched(
            one.change, question, resources.own(question), one.seed).chunks for question in benchmark.questions}
    if not finder.cut:
        return scopes
    pieces: dict[str, list[Chunk]] = {}  # several questions may search the same document
    chunker = finder.retriever.build.chunker
    return {name: _split_chunks(chunks, benchmark, chunker, pieces) for name, chunks in scopes.items()}


def _split_chunks(chunks: Sequence[Chunk], benchmark: Benchmark, chunker: ChunkerSettings,
                  pieces: dict[str, list[Chunk]]) -> list[Chunk]:
    found: list[Chunk] = []
    for id, format in dict.fromkeys((chunk.document, chunk.format) for chunk in chunks):
        key = f"{format}:{id}"
        if key not in pieces:
            pieces[key] = chunker.chunk(benchmark.documents[id], format)
        found += pieces[key]
    return found
