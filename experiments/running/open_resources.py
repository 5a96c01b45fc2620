"""Opening what the cells of a run need: models, indexes, and pools of the chunks that questions bring."""
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
from ragbed.experiments.running.recording import pin
from ragbed.experiments.running.resources import Among, Pooled, Resources, scope_of
from ragbed.retrieval.build import build_index
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.index import Index, content_of_index
from ragbed.retrieval.pool import Pool, RetrieverChoice, ScopedSearch, WholeSearch, Within, content_of
from ragbed.retrieval.rerankers.reranker import judges_of
from ragbed.retrieval.storage.cache import CachedEmbedder
from ragbed.retrieval.storage.folder import settled
from ragbed.retrieval.storage.manifest import read_manifest

if TYPE_CHECKING:
    from ragbed.agents.journal import Mode
    from ragbed.experiments.question import Benchmark
    from ragbed.experiments.running.plan import Plan
    from ragbed.experiments.running.prepare import Session
    from ragbed.experiments.settings import RunSettings
    from ragbed.experiments.settings.retrievers import Finder, RetrieverFactor
    from ragbed.retrieval.settings import IndexSettings
    from ragbed.retrieval.types import Progress


def index_folder(settings: RunSettings, retriever: RetrieverFactor, format: Format) -> Path:
    """Return the folder of the index that the retriever searches; one over the benchmark's corpus stands in the
    run's."""
    built = settings.folder / f"index-{format}-{digest(retriever.build.model_dump_json())[:8]}"
    return retriever.index or built


def open_searching(plan: Plan, resources: Resources, progress: Progress) -> None:
    """Open what the cells search, unless it is open; UserError where an index, a model or a package is missing."""
    for cell in plan.cells:
        if cell.finder is None:
            continue
        finder = plan.finders[cell.finder]
        if cell.format is not None:
            _open_searcher((cell.finder, cell.format), finder.retriever, plan.settings, resources, progress)
        elif cell.finder not in resources.pools:
            among = {resources.among(one) for one in plan.cells if one.finder == cell.finder and one.searched}
            _open_pool(finder, among, resources)


def _open_searcher(key: tuple[str, Format], retriever: RetrieverFactor, settings: RunSettings, resources: Resources,
                   progress: Progress) -> None:
    """What searches an index, and the index itself unless a replay knows what it found."""
    if key in resources.searchers:
        return
    recording = resources.recording
    if recording.pins is None:
        resources.indexes[key] = _open_index(retriever, key[1], settings, resources, progress)
    elif pin("index", *key) not in recording.pins and (there := _content_there(retriever)):
        recording.pins = {**recording.pins, pin("index", *key): there}
    index, how = resources.indexes.get(key), how_of(retriever, resources)
    finder = WholeSearch(index, how) if index is not None else None
    resources.searchers[key] = Searcher(finder, retriever.k, recording.searched(key, _identity(how, key[0], resources)))


def how_of(retriever: RetrieverFactor, resources: Resources) -> RetrieverChoice:
    """Return how the retriever finds."""
    return RetrieverChoice(retriever, retriever.where, lambda: resources.aids)


def _identity(how: RetrieverChoice, name: str, resources: Resources) -> str:
    """The identity of how a retriever finds; in a replay, which may not have what it is made of, the recorded one."""
    pins = resources.recording.pins
    known = pins is None or how.kind.kind == "dense"  # which is made of nothing
    resources.how[name] = how.identity() if known else (pins or {}).get(pin("how", name), "")
    return resources.how[name]


def _open_index(retriever: RetrieverFactor, format: Format, settings: RunSettings, resources: Resources,
                progress: Progress) -> Index:
    path, corpus = index_folder(settings, retriever, format), resources.benchmark.corpus
    if retriever.index is None and path not in resources.opened:
        assert corpus is not None
        build_index([corpus], path, retriever.build.model_copy(update={"formats": (format,)}), progress=progress,
                    wait=True)  # another shard of the run may be at it
    index = resources.index(path)
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


def _open_pool(finder: Finder, among: Collection[Among | None], resources: Resources) -> None:
    """The pool that the retriever searches; two retrievers over the same chunks share one."""
    retriever, recording = finder.retriever, resources.recording
    everything = retriever.over == "all"
    brought, how = scopes_of(resources, finder, among), how_of(retriever, resources)
    pool, known = None, (recording.pins or {}).get(pin("embedder", retriever.name), "")  # else nothing was kept
    if recording.pins is None:
        embedder = CachedEmbedder(open_embedder(retriever.build.embedder))
        scopes = {scope_of(one, everything, change) for one in resources.plan.asked.values()
                  for change in (None, *among)}
        searched = {name: chunks for name, chunks in brought.items() if name in scopes}
        known, made = embedder.identity, Pool(searched, embedder, resources.benchmark.documents)
        same = (one.pool for one in resources.pools.values()
                if one.everything == everything and one.pool is not None and one.pool.content == made.content)
        pool = next(same, made)
    every = {chunk.id for chunks in brought.values() for chunk in chunks}
    pins = {pin("chunks", retriever.name): content_of(known, every), pin("embedder", retriever.name): known} \
        if known else {}
    content = cache(lambda scope: digest(known, *(chunk.id for chunk in brought[scope])))
    kept = recording.pooled(retriever.name, content, _identity(how, retriever.name, resources))
    searcher: Searcher[Within] = Searcher(None if pool is None else ScopedSearch(pool, how), retriever.k, kept)
    resources.pools[retriever.name] = Pooled(pool, searcher, everything, pins, retriever.embeds)


def scopes_of(resources: Resources, finder: Finder, among: Collection[Among | None]) -> dict[str, Sequence[Chunk]]:
    """Return the chunks that questions bring, by the scope that they are searched in; `among` are the negatives that
    any cell searches in the place of what questions bring."""
    benchmark, everything = resources.benchmark, finder.retriever.over == "all"
    if everything:
        scopes = {"all": benchmark.searchable}
    else:
        own = {scope_of(one, everything): list(one.own) for one in benchmark.questions if one.own}
        scopes = {"shared": list(benchmark.shared), **own}
    for one in (one for one in among if one is not None):
        scopes |= {scope_of(question, everything, one): list(resources.perturber.searched(
            one.change, question, resources.own(question), one.seed).chunks) for question in benchmark.questions}
    if not finder.cut:
        return dict(scopes)
    pieces: dict[str, list[Chunk]] = {}  # a document may stand in the scopes of several questions
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


@contextlib.asynccontextmanager
async def open_resources(plan: Plan, resources: Resources, session: Session,
                         mode: Mode | None, progress: Progress) -> AsyncIterator[None]:
    """Open what the cells need into the resources; closed at the end. A replay opens no model, and neither index nor
    embedder where every search was kept. Without a mode no question is left, and only what is searched is looked at.
    Raises SettingsError where an index is of another format, and ModelError or IndexFolderError as `open_model` and
    `Index.open`."""
    async with contextlib.AsyncExitStack() as stack:
        if mode is not None:
            await _open_models(plan, mode != "replay", session.manifest["models"], resources, stack)
        resources.recording.pins = session.kept() if mode == "replay" else None
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
    judging = [one.model for one in (settings.judge, settings.support) if isinstance(one, ModelJudge | ModelSupport)]
    paraphraser = [settings.paraphrasing_model] if settings.paraphrasing_model else []
    for name in dict.fromkeys([*plan.models, *(judge.model for judge in judges_of([*found, settings.grader])), *judging,
                               *paraphraser]):
        opened = open_model(name, asking, calls=calls, known=known.get(name)) \
            if name not in plan.pipelines else \
            plan.pipelines[name].open_client(asking, None if calls else known.get(name))
        resources.clients[name] = await stack.enter_async_context(opened)
