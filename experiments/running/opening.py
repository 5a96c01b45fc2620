"""Opening what the cells of a run need: models, indexes, and pools of the chunks that questions bring."""
from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from agents.journal import Mode
from agents.models import open_model
from agents.search import Searcher
from documents.errors import IndexFolderError, SettingsError
from documents.types import Chunk, Format, digest
from experiments.cells import Cell
from experiments.evidence.recording import Scopes, embedder_pin, how_pin, index_pin
from experiments.evidence.resources import Pooled, Resources, scope_of
from experiments.judges import ModelJudge
from experiments.question import Benchmark
from experiments.running.beginning import Beginning
from experiments.settings import RunSettings
from experiments.settings.matrix import retrievers_of
from experiments.settings.retrievers import RetrieverFactor
from retrieval.build import Progress, build_index
from retrieval.cache import CachedEmbedder
from retrieval.folder import settled
from retrieval.index import Index, content_of_index
from retrieval.manifest import read_manifest
from retrieval.pool import Pool, Within
from retrieval.scoped import Scoped
from retrieval.sentence import SentenceEmbedder


@contextlib.asynccontextmanager
async def open_resources(settings: RunSettings, cells: Sequence[Cell], resources: Resources, beginning: Beginning,
                         mode: Mode | None, progress: Progress) -> AsyncIterator[None]:
    """Open what the cells need into the resources; closed at the end.

    A replay opens no model, and neither index nor embedder where every search was kept.

    Args:
        mode: None where no question is left, and only what is searched is looked at.

    Raises:
        SettingsError: an index is of another format.
        ModelError, IndexFolderError: see `open_model`, `Index.open`.
    """
    async with contextlib.AsyncExitStack() as stack:
        if mode is not None:
            await _open_models(settings, cells, mode != "replay", beginning.manifest["models"], resources, stack)
        resources.recording.pins = beginning.kept() if mode == "replay" else None
        for cell in cells:
            if cell.retriever is not None and cell.format is not None:
                _open_searcher(cell, settings, resources, progress)
            elif cell.retriever is not None:
                _open_pool(retriever_named(settings, cell.retriever), resources)
        for searcher in resources.searchers.values():
            stack.callback(searcher.close)
        for pooled in resources.pools.values():
            stack.callback(pooled.searcher.close)
            if mode is not None and pooled.pool is not None and pooled.embeds:
                pooled.pool.embed(progress)
        yield
        if mode in ("replay", "live"):  # every question was asked again, so by now every search was kept
            beginning.keeps_searches()


async def _open_models(settings: RunSettings, cells: Sequence[Cell], calls: bool, known: Mapping[str, str],
                       resources: Resources, stack: contextlib.AsyncExitStack) -> None:
    for name in dict.fromkeys(cell.model for cell in cells):
        resources.clients[name] = await stack.enter_async_context(
            open_model(name, settings.asking, calls=calls, known=known.get(name)))
    if isinstance(settings.judge, ModelJudge):
        name = settings.judge.model
        resources.judge = resources.clients.get(name) or await stack.enter_async_context(
            open_model(name, settings.asking, calls=calls, known=known.get(name)))


def index_folder(settings: RunSettings, retriever: RetrieverFactor, format: Format) -> Path:
    """The folder of the index that the retriever searches; one over the benchmark's corpus stands in the run's."""
    built = settings.folder / f"index-{format}-{digest(retriever.build.model_dump_json())[:8]}"
    return retriever.index or built


def retriever_named(settings: RunSettings, name: str | None) -> RetrieverFactor:
    """The retriever that settings call so."""
    return next(one for one in retrievers_of(settings) if one.name == name)


def _open_searcher(cell: Cell, settings: RunSettings, resources: Resources, progress: Progress) -> None:
    """Open what searches the cell's index, and the index itself unless a replay knows what it found."""
    key = (cell.retriever, cell.format)
    if key in resources.searchers or cell.format is None:
        return
    retriever, recording = retriever_named(settings, cell.retriever), resources.recording
    if recording.pins is None:
        resources.indexes[key] = _open_index(retriever, cell.format, settings, resources.benchmark, progress)
    elif index_pin(key) not in recording.pins and (there := _content_there(retriever)):
        recording.pins = {**recording.pins, index_pin(key): there}
    index, how = resources.indexes.get(key), _how(retriever, resources)
    opened = retriever.open(index, resources.aids) if index is not None else None
    resources.searchers[key] = Searcher(opened, retriever.k, recording.searched(key, how))


def _how(retriever: RetrieverFactor, resources: Resources) -> str:
    """The retriever's identity; in a replay, which may not have what it is made of, the recorded one."""
    pins = resources.recording.pins
    how = retriever.identity() if pins is None else pins.get(how_pin(retriever.name), "dense")
    resources.how[retriever.name] = how
    return how


def _open_index(retriever: RetrieverFactor, format: Format, settings: RunSettings, benchmark: Benchmark,
                progress: Progress) -> Index:
    """Open the retriever's index, or build it over the benchmark's corpus."""
    path = index_folder(settings, retriever, format)
    if retriever.index is None:
        assert benchmark.corpus is not None
        build = retriever.build.model_copy(update={"formats": (format,)})
        build_index([benchmark.corpus], path, build, progress=progress)
    index = Index.open(path)
    if index.manifest.settings.formats != (format,):
        raise SettingsError(f"formats: the index {path} holds {' and '.join(index.manifest.settings.formats)} chunks; "
                            "set formats to match, one format to an index")
    index.check_embedder()
    return index


def _content_there(retriever: RetrieverFactor) -> str | None:
    """What an index holds by its manifest: one that stands elsewhere may be the recorded one. None where none is."""
    try:
        return content_of_index(read_manifest(settled(retriever.index))) if retriever.index else None
    except (OSError, IndexFolderError, KeyError):
        return None


def _open_pool(retriever: RetrieverFactor, resources: Resources) -> None:
    """The pool that the retriever searches; two retrievers over the same chunks share one."""
    name, everything, recording = retriever.name, retriever.over == "all", resources.recording
    if name in resources.pools:
        return
    brought, how = _scopes(resources.benchmark, everything), _how(retriever, resources)
    if recording.pins is not None:
        pool, scopes = None, Scopes(recording.pins.get(embedder_pin(name), ""), brought)
    else:
        embedder = CachedEmbedder(SentenceEmbedder.named(retriever.build.embedder))
        scopes, made = Scopes(embedder.identity, brought), Pool(brought, embedder, resources.benchmark.documents)
        same = (one.pool for one in resources.pools.values()
                if one.everything == everything and one.pool is not None and one.pool.content == made.content)
        pool = next(same, made)
    opened = None if pool is None else Scoped(pool, retriever, resources.aids)
    searcher: Searcher[Within] = Searcher(opened, retriever.k, recording.pooled(name, scopes, how))
    resources.pools[name] = Pooled(pool, searcher, everything, scopes, retriever.embeds)


def _scopes(benchmark: Benchmark, everything: bool) -> dict[str, Sequence[Chunk]]:
    if everything:
        own = [chunk for question in benchmark.questions for chunk in question.own]
        return {"all": [*own, *benchmark.shared]}
    scopes: dict[str, Sequence[Chunk]] = {"shared": benchmark.shared}
    return scopes | {scope_of(one, everything): one.own for one in benchmark.questions if one.own}
