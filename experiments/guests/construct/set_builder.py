"""Build a set: read the sources, open the models, and play instances until enough items are kept."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ragbed.agents.cassette import Cassette
from ragbed.agents.journal import Journal, Mode, Model
from ragbed.agents.models import open_model
from ragbed.agents.search import Searcher, SearchStore, StoredRetriever
from ragbed.documents.errors import BudgetSpent, DocumentError, RunError
from ragbed.documents.shards import Shard
from ragbed.documents.sources import find_sources, unknown_type, unread_files
from ragbed.documents.types import Chunk, Document, digest
from ragbed.documents.workers import read_documents
from ragbed.experiments.guests.construct.construct_settings import ConstructSettings
from ragbed.experiments.guests.construct.filters import duplicate_check
from ragbed.experiments.guests.construct.stage_runner import Construction, StageRunner
from ragbed.experiments.guests.construct.stages import Library, Outcome
from ragbed.experiments.running.budget import Metered, Spending
from ragbed.experiments.runs.store import RunFolder, lock_run
from ragbed.experiments.settings.spending import format_amount
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.pool import Pool, RetrieverChoice, WholeSearch
from ragbed.retrieval.storage.cache import CachedEmbedder
from ragbed.retrieval.types import Embedder

_DEFAULT_K = 10  # chunks that a search finds if a stage gives no number


@dataclass(frozen=True)
class Built:
    """A finished construction, with each role's model identity, and the reasons why sources could not be read."""

    settings: ConstructSettings
    construction: Construction
    models: Mapping[str, str]
    unread: tuple[str, ...]

    @property
    def library(self) -> Library:
        return self.construction.library


async def construct(settings: ConstructSettings,
                    on_outcomes: Callable[[Sequence[Outcome]], None] = lambda outcomes: None,
                    fresh: bool = False, replay: Path | None = None, shard: Shard | None = None,
                    parts: Sequence[Path] = ()) -> Built:
    """Build a set, or continue one.

    Args:
        on_outcomes: called with the outcomes of each instance.
        fresh: discard the calls that were made before.
        replay: cassette to take calls and searches from, instead of models.
        shard: build only the instances of this shard.
        parts: folders of finished shards whose calls are reused. The set is the same as without shards.

    Raises UserError if a source, a setting or a model is invalid. Raises BudgetSpent if the budget ran out before
    enough items were kept.
    """
    library, unread = read_library(settings)
    place = shard.folder(settings.work_folder) if shard else settings.work_folder
    with _open_work_folder(settings, library, place, fresh) as folder:
        if replay is not None:
            _take_cassette(Cassette.open(replay), folder)
        for part in parts:
            _take_shard(part, folder)
        mode: Mode = "replay" if replay else "record"
        spending = Spending(settings.budget, mode)
        spending.recall(folder.database)
        journal = Journal(folder.database, mode)
        async with AsyncExitStack() as stack:
            clients = {name: await stack.enter_async_context(open_model(
                name, settings.calls, calls=replay is None, known=folder.pins().get(f"model {name}")))
                       for name in settings.all_models}
            for name, client in clients.items():
                folder.pin(f"model {name}", client.identity)
            models = {role: Model(Metered(clients[name], spending), journal, settings.limits.max_tokens)
                      for role, name in settings.roles.items()}
            searcher = _open_searcher(settings, library, folder, mode)
            stack.callback(searcher.close)
            window = max((client.limits.concurrency for client in clients.values()), default=1)
            runner = StageRunner(models, searcher, settings.limits)
            construction = Construction(settings.definition, library, runner, settings.n, settings.max_tries, window,
                                        duplicate_check(library), spending, on_outcomes, shard)
            async with spending.in_time():
                await construction.run()
        if spending.stopped:
            name = next((name for name, left in spending.left().items() if left == 0), "seconds")
            limit = format_amount(name, getattr(settings.budget, name))
            share = f", the share of shard {shard}," if shard else ""
            raise BudgetSpent(f"{settings.out}: the budget of {limit}{share} is spent after {len(construction.kept)} "
                              f"of {settings.n} items; rerun the command with a larger --budget to continue")
        return Built(settings, construction, {role: models[role].client.identity for role in models}, unread)


def read_library(settings: ConstructSettings) -> tuple[Library, tuple[str, ...]]:
    """Read the documents or the benchmark to build from. Also return each source that could not be read, with the
    reason. Raises RunError if no source contains text. Raises SettingsError if the kind's settings are invalid.
    """
    own = settings.kind_options
    unread = [f"{name}: {unknown_type(name)}" for name in unread_files(settings.sources)]
    documents: dict[str, Document] = {}
    chunks: list[Chunk] = []
    benchmark = settings.benchmark.load() if settings.benchmark else None
    if benchmark is not None:
        documents, chunks = dict(benchmark.documents), benchmark.all_chunks
    else:
        for document in read_documents(find_sources(settings.sources)):
            if isinstance(document, DocumentError):
                unread.append(str(document))
            else:
                documents[document.id] = document
        chunker = settings.chunker or settings.definition.chunker
        chunks += [chunk for document in documents.values() for format in settings.definition.formats
                   for chunk in chunker.chunk(document, format)]
    if not chunks:
        raise RunError(f"nothing to build from: {unread[0] if unread else 'the sources hold no text'}")

    @cache
    def embedder() -> Embedder:
        return CachedEmbedder(open_embedder(settings.embedder))

    roles = settings.roles
    counts = {role: sum(name.startswith(role) for name in roles) for role in ("solver", "judge")}
    return Library(documents, chunks, counts["solver"], counts["judge"], settings.seed, own, embedder,
                   benchmark, settings.writer is not None), tuple(unread)


def _open_searcher(settings: ConstructSettings, library: Library, folder: RunFolder, mode: Mode) -> Searcher[str]:
    embedder = CachedEmbedder(open_embedder(settings.embedder))
    pool = Pool({"all": library.chunks}, embedder, library.documents)
    how = RetrieverChoice(settings.retriever)
    searches = SearchStore()
    searches.begin(folder.database, mode)
    content = digest(*(chunk.id for chunk in library.chunks))
    kept: StoredRetriever[str] = StoredRetriever(searches, "the index", lambda query, k: {
        "query": query, "k": k, "how": how.identity(), "content": content,
        **({"embedder": embedder.identity} if settings.retriever.embeds else {})})
    return Searcher(None if mode == "replay" else WholeSearch(pool.scope("all"), how), _DEFAULT_K, kept)


def _take_cassette(cassette: Cassette, folder: RunFolder) -> None:
    """Copy the calls and searches of a cassette. Raises RunError if it belongs to a run, or to another set."""
    if "pins" not in cassette.about or "kind" not in cassette.about:
        raise RunError(f"{cassette.path}: this is the cassette of a run, not of a set; use `ragbed run --replay`")
    recorded: dict[str, str] = cassette.about["pins"]
    for name, value in folder.pins().items():
        if recorded.get(name) != value:
            raise RunError(f"{cassette.path}: recorded with different {name}; use those of the recording")
    with folder.database.transaction():
        cassette.read_into(folder.database)
    for name, value in recorded.items():
        folder.pin(name, value)


def _take_shard(path: Path, folder: RunFolder) -> None:
    """Copy the calls and searches of a shard. Raises RunError if it is in use, or belongs to another set."""
    with ExitStack() as opened:
        part = RunFolder.existing(path)
        opened.callback(part.close)
        opened.callback(lock_run(path).release)
        known = folder.pins()
        if other := [name for name, value in part.pins().items() if known.get(name, value) != value]:
            raise RunError(f"{path}: built with different {other[0]}; use the same, delete the folder, or give "
                           "--fresh")
        folder.database.copy_from(part.database.path, "IGNORE")


@contextmanager
def _open_work_folder(settings: ConstructSettings, library: Library, place: Path, fresh: bool) -> Iterator[RunFolder]:
    """Open and lock the folder of the journal. Raises RunError if it was built from other sources or settings."""
    with ExitStack() as held:
        lock = lock_run(place)
        held.callback(lock.release)
        for file in place.glob("records.sqlite*") if fresh else ():
            file.unlink()
        folder = RunFolder(place, lock)
        held.callback(folder.close)
        folder.pin("sources", digest(*(text for one in library.documents.values()
                                       for text in (one.source, one.html, one.plain))))
        folder.pin("settings", digest(json.dumps(settings.content_settings, sort_keys=True)))
        yield folder
