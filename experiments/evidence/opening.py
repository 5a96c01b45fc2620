"""Opening what the cells of a run need: models, indexes, and pools of the chunks that questions bring."""
from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

from agents.journal import Mode
from agents.models import open_model
from agents.search import Searcher
from documents.errors import SettingsError
from documents.types import Chunk, Format, digest
from experiments.cells import Cell
from experiments.evidence.resources import Pooled, Resources, scope_of
from experiments.factors import Dense
from experiments.judges import ModelJudge
from experiments.manifest import known_models
from experiments.matrix import retrievers_of
from experiments.question import Benchmark
from experiments.settings import RunSettings
from retrieval.build import Progress, build_index
from retrieval.cache import CachedEmbedder
from retrieval.index import Index
from retrieval.pool import Pool
from retrieval.sentence import SentenceEmbedder


@contextlib.asynccontextmanager
async def open_resources(settings: RunSettings, cells: Sequence[Cell], resources: Resources, mode: Mode | None,
                         progress: Progress) -> AsyncIterator[None]:
    """Open what the cells need into the resources; closed at the end.

    Args:
        mode: None where no question is left, and only what is searched is looked at.

    Raises:
        SettingsError: an index is of another format.
        ModelError, IndexFolderError: see `open_model`, `Index.open`.
    """
    benchmark = resources.benchmark
    async with contextlib.AsyncExitStack() as stack:
        if mode is not None:
            await _open_models(settings, cells, mode != "replay", resources, stack)
        for cell in cells:
            if cell.retriever is not None and cell.format is not None:
                _open_index(cell, settings, benchmark, resources, progress)
            elif cell.retriever is not None:
                _open_pool(retriever_named(settings, cell.retriever), benchmark, resources)
        for key, index in resources.indexes.items():
            resources.searchers[key] = Searcher(index, retriever_named(settings, key[0]).k)
            stack.callback(resources.searchers[key].close)
        for pooled in resources.pools.values():
            stack.callback(pooled.searcher.close)
        if mode is not None:
            for pool in {id(pooled.pool): pooled.pool for pooled in resources.pools.values()}.values():
                pool.embed(progress)
        yield


async def _open_models(settings: RunSettings, cells: Sequence[Cell], calls: bool, resources: Resources,
                       stack: contextlib.AsyncExitStack) -> None:
    known = known_models(settings.folder)
    for name in dict.fromkeys(cell.model for cell in cells):
        resources.clients[name] = await stack.enter_async_context(
            open_model(name, settings.calls, calls=calls, known=known.get(name)))
    if isinstance(settings.judge, ModelJudge):
        name = settings.judge.model
        resources.judge = resources.clients.get(name) or await stack.enter_async_context(
            open_model(name, settings.calls, calls=calls, known=known.get(name)))


def index_folder(settings: RunSettings, retriever: Dense, format: Format) -> Path:
    """The folder of the index that the retriever searches; one over the benchmark's corpus stands in the run's."""
    built = settings.folder / f"index-{format}-{digest(retriever.build.model_dump_json())[:8]}"
    return retriever.index or built


def retriever_named(settings: RunSettings, name: str | None) -> Dense:
    """The retriever that settings call so."""
    return next(one for one in retrievers_of(settings) if one.name == name)


def _open_index(cell: Cell, settings: RunSettings, benchmark: Benchmark, resources: Resources,
                progress: Progress) -> None:
    """Open, or build over the benchmark's corpus, the index that the cell searches."""
    key = (cell.retriever, cell.format)
    if key in resources.indexes or cell.format is None:
        return
    retriever = retriever_named(settings, cell.retriever)
    path = index_folder(settings, retriever, cell.format)
    if retriever.index is None:
        assert benchmark.corpus is not None
        build = retriever.build.model_copy(update={"formats": (cell.format,)})
        build_index([benchmark.corpus], path, build, progress=progress)
    index = Index.open(path)
    if index.manifest.settings.formats != (cell.format,):
        raise SettingsError(f"formats: the index {path} holds {' and '.join(index.manifest.settings.formats)} chunks; "
                            "set formats to match, one format to an index")
    index.check_embedder()
    resources.indexes[key] = index


def _open_pool(retriever: Dense, benchmark: Benchmark, resources: Resources) -> None:
    """The pool that the retriever searches; two retrievers over the same chunks share one."""
    if retriever.name in resources.pools:
        return
    embedder = CachedEmbedder(SentenceEmbedder.named(retriever.build.embedder))
    everything = retriever.over == "all"
    made = Pool(_scopes(benchmark, everything), embedder)
    same = (one.pool for one in resources.pools.values()
            if one.everything == everything and one.pool.content == made.content)
    pool = next(same, made)
    resources.pools[retriever.name] = Pooled(pool, Searcher(pool, retriever.k), everything)


def _scopes(benchmark: Benchmark, everything: bool) -> dict[str, Iterable[Chunk]]:
    if everything:
        own: Sequence[Chunk] = [chunk for question in benchmark.questions for chunk in question.own]
        return {"all": [*own, *benchmark.shared]}
    scopes: dict[str, Iterable[Chunk]] = {"shared": benchmark.shared}
    return scopes | {scope_of(one, everything): one.own for one in benchmark.questions if one.own}
