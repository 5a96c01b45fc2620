"""What the cells of a run share: model clients, the judge's client, indexes and their searches."""
from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from agents.client import ModelClient
from agents.journal import Mode
from agents.models import open_model
from agents.search import Searcher, SearchFunction, instant
from documents.errors import SettingsError
from documents.types import Chunk, digest
from experiments.cells import Cell, cells_of
from experiments.gold import match
from experiments.judges import ModelJudge
from experiments.manifest import known_models
from experiments.question import Benchmark, Gold, Question
from experiments.settings import Dense, RunSettings
from retrieval.build import Progress, build_index
from retrieval.conditions import Placed
from retrieval.index import CHUNKS, Index
from strategies.types import Passage

IndexKey = tuple[str | None, str | None]


@dataclass(slots=True)
class Resources:
    """Shared by all cells.

    Attributes:
        indexes: by retriever name and format.
    """

    benchmark: Benchmark
    clients: dict[str, ModelClient] = field(default_factory=dict)
    judge: ModelClient | None = None
    indexes: dict[IndexKey, Index] = field(default_factory=dict)
    searchers: dict[IndexKey, Searcher] = field(default_factory=dict)

    def source_of(self, document: str) -> str:
        """The source path of a document id; the id itself where no source is known."""
        if document in self.benchmark.documents:
            return self.benchmark.documents[document].source
        for index in self.indexes.values():
            with contextlib.suppress(KeyError):
                return index.source_of(document)
        return document

    def indexed_documents(self) -> set[str]:
        """Ids and source paths of the documents that can be searched."""
        return {name for index in self.indexes.values() for source, entry in index.manifest.sources.items()
                for name in (source, entry.document)}

    def indexed_gold(self, question: Question) -> tuple[Gold, ...]:
        """The gold as an index can hold it: of one of the benchmark's own chunks, its source is all that both know."""
        own = self.benchmark.documents
        return tuple(Gold(own[item.document].source) if item.document in own else item for item in question.gold)

    def gold(self, cell: Cell, question: Question) -> tuple[Gold, ...]:
        """The gold that the cell's evidence is matched with."""
        return self.indexed_gold(question) if cell.condition == "retrieved" else question.gold

    def answerable(self, cell: Cell, question: Question) -> bool:
        """Whether the question can be answered under the cell's condition: not where its gold was dropped."""
        return question.answerable and not (cell.change.drop_gold and question.gold)

    def index_contents(self) -> dict[str, str]:
        """A hash of each index's chunks and embedder, by retriever and format."""
        return {f"{name} in {format}": digest(index.manifest.files[CHUNKS], index.manifest.embedder.identity)
                for (name, format), index in self.indexes.items()}

    def search(self, cell: Cell, question: Question) -> SearchFunction:
        """What a search returns under the cell's condition."""
        if cell.condition == "evidence":
            return instant(Placed(self._gold_chunks(cell, question), "evidence"))
        if cell.retriever is not None:
            return self.searchers[cell.retriever, cell.format]
        return instant(Placed(question.given if cell.condition == "given" else (), cell.condition))

    def _gold_chunks(self, cell: Cell, question: Question) -> tuple[Chunk, ...]:
        """The gold among the question's own chunks, else among those of the cell's index, in order."""
        chunks: Sequence[Chunk] = question.given
        if cell.retriever is not None and not chunks:
            chunks = self.indexes[cell.retriever, cell.format].chunks
        view = match(question.gold, (Passage(place, chunk) for place, chunk in enumerate(chunks)), self.source_of)
        return tuple(chunk for place, chunk in enumerate(chunks) if view.levels[place] is not None)


@contextlib.asynccontextmanager
async def open_resources(settings: RunSettings, benchmark: Benchmark, mode: Mode | None,
                         progress: Progress) -> AsyncIterator[Resources]:
    """Open what the cells need; closed at the end.

    Args:
        mode: None where no question is left, and only the indexes are looked at.

    Raises:
        SettingsError: an index is of another format.
        ModelError, IndexFolderError: see `open_model`, `Index.open`.
    """
    resources = Resources(benchmark)
    async with contextlib.AsyncExitStack() as stack:
        if mode is not None:
            await _open_models(settings, mode != "replay", resources, stack)
        for cell in cells_of(settings, benchmark.gives_chunks):
            if cell.retriever is not None:
                _open_index(cell, settings, benchmark, resources, progress)
        for key, index in resources.indexes.items():
            resources.searchers[key] = Searcher(index, _retriever(settings, key[0]).k)
            stack.callback(resources.searchers[key].close)
        yield resources


async def _open_models(settings: RunSettings, calls: bool, resources: Resources,
                       stack: contextlib.AsyncExitStack) -> None:
    known = known_models(settings.folder)
    for name in settings.models:
        resources.clients[name] = await stack.enter_async_context(
            open_model(name, settings.calls, calls=calls, known=known.get(name)))
    if isinstance(settings.judge, ModelJudge):
        name = settings.judge.model
        resources.judge = resources.clients.get(name) or await stack.enter_async_context(
            open_model(name, settings.calls, calls=calls, known=known.get(name)))


def check_conditions(settings: RunSettings, benchmark: Benchmark) -> None:
    """Make sure that the benchmark has what the conditions show.

    Raises:
        SettingsError: it gives no chunks, or has no corpus to search; or the documents that the rules are about
            are never gathered.
    """
    if "given" in settings.conditions and not benchmark.gives_chunks:
        raise SettingsError(f"conditions: {benchmark.name} gives no chunks with its questions; use retrieved")
    cells = cells_of(settings, benchmark.gives_chunks)
    if any(cell.retrieval == "none" and cell.rules == "grounded" for cell in cells):
        raise SettingsError("retrieval: none gathers no documents under retrieved, and the rules grounded allow for "
                            "nothing else; use conditions: closed-book, or rules: open")
    searched = {cell.retriever for cell in cells}
    if benchmark.corpus is None and any(one.index is None and one.name in searched for one in settings.retriever):
        raise SettingsError(f"retriever: {benchmark.name} has no corpus to index; name an index folder, as in "
                            "retriever: {kind: dense, index: FOLDER}")


def _retriever(settings: RunSettings, name: str | None) -> Dense:
    return next(one for one in settings.retriever if one.name == name)


def _open_index(cell: Cell, settings: RunSettings, benchmark: Benchmark, resources: Resources,
                progress: Progress) -> None:
    """Open, or build over the benchmark's corpus, the index that the cell searches."""
    key = (cell.retriever, cell.format)
    if key in resources.indexes or cell.format is None:
        return
    retriever = _retriever(settings, cell.retriever)
    path = retriever.index
    if path is None:
        assert benchmark.corpus is not None
        path = settings.folder / f"index-{cell.format}-{digest(retriever.build.model_dump_json())[:8]}"
        build = retriever.build.model_copy(update={"formats": (cell.format,)})
        build_index([benchmark.corpus], path, build, progress=progress)
    index = Index.open(path)
    if index.manifest.settings.formats != (cell.format,):
        raise SettingsError(f"formats: the index {path} holds {' and '.join(index.manifest.settings.formats)} chunks; "
                            "set formats to match, one format to an index")
    index.check_embedder()
    resources.indexes[key] = index
