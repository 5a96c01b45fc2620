"""What the cells of a run share: models, what is searched, and what each question is shown."""
from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragbed.agents.search import FoundHits, Searcher, SearchFunction, fixed_chunks
from ragbed.documents.errors import ReplayMiss
from ragbed.documents.types import Chunk, Document, Format, digest
from ragbed.experiments.cells import PIPELINE
from ragbed.experiments.running.gold import Changed, Level, Perturber, Places, by_source
from ragbed.experiments.running.locating import Locator
from ragbed.experiments.running.recording import IndexKey, Recording, as_json, pin
from ragbed.retrieval.conditions import Perturbation
from ragbed.retrieval.index import Index
from ragbed.retrieval.rerankers.reranker import Aids

if TYPE_CHECKING:
    from ragbed.agents.client import ModelClient
    from ragbed.agents.types import Answer
    from ragbed.experiments.cells import Cell
    from ragbed.experiments.question import Gold, Question
    from ragbed.experiments.running.plan import Plan
    from ragbed.retrieval.pool import Pool, Within
    from ragbed.strategies.types import Search


@dataclass(frozen=True, slots=True)
class Pooled:
    """A retriever over chunks that questions bring."""

    pool: Pool | None  # None in a replay, which gives what was found
    searcher: Searcher[Within]
    everything: bool  # whether each question searches those of all; else its own, or, having none, the shared ones
    pins: Mapping[str, str]  # hashes of its content and of its embedder, by what they are called
    embeds: bool = True  # whether the retriever needs the vectors of the pool

    def within(self, question: Question, among: Among | None) -> SearchFunction:
        """Return the searches of a question."""
        return self.searcher.within(scope_of(question, self.everything, among))


class Among(NamedTuple):
    """Negatives that replace what a question is searched over, beside its gold; `seed` is of those that are drawn."""

    change: Perturbation
    seed: int


def scope_of(question: Question, everything: bool, among: Among | None = None) -> str:
    """Return the name of the chunks that a question searches."""
    if among is not None:
        return f"{among.change}:{among.seed}:{question.id}"
    if everything:
        return "all"
    return f"own:{question.id}" if question.own else "shared"


@dataclass(frozen=True, slots=True)
class ShownSearch:
    """What a question's searches return, and what its record has to say of it once they were made."""

    search: SearchFunction
    notes: list[str] = field(default_factory=list)


class Resources:
    """Shared by all cells."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.benchmark = benchmark = plan.benchmark
        self.clients: dict[str, ModelClient] = {}
        self.opened: dict[Path, Index] = {}  # by their folder
        self.indexes: dict[IndexKey, Index] = {}  # those, by finder's name and format
        self.searchers: dict[IndexKey, Searcher[str]] = {}
        self.pools: dict[str, Pooled] = {}  # by finder's name
        self.how: dict[str, str] = {}  # the identity of each retriever, by name
        self.aids = Aids()
        self.recording = Recording(self.indexes, self.source_of)
        self._places: dict[IndexKey, Places] = {}
        self._documents: dict[tuple[IndexKey, str], Chunk] = {}
        self._seed = plan.settings.seeds[0]
        self.perturber = Perturber(benchmark, self.source_of)
        self._placed: dict[tuple[str | int | None, ...], Changed] = {}

    def index(self, folder: Path) -> Index:
        """Return the index in a folder, opened once, as it then was. Raises what `Index.open` raises."""
        if folder not in self.opened:
            self.opened[folder] = Index.open(folder)
        return self.opened[folder]

    def source_of(self, document: str) -> str:
        """Return the source path of a document id; the id itself where no source is known."""
        if document in self.benchmark.documents:
            return self.benchmark.documents[document].source
        for index in self.opened.values():
            with contextlib.suppress(KeyError):
                return index.source_of(document)
        return self.recording.searches.sources.get(document, document)

    def indexed_documents(self) -> set[str]:
        """Ids and source paths of the documents that can be searched."""
        return {name for index in self.opened.values() for source, entry in index.manifest.sources.items()
                for name in (source, entry.document)}

    def indexed_gold(self, question: Question) -> tuple[Gold, ...]:
        """Return the gold as an index can hold it."""
        return by_source(question.gold, self.benchmark.documents)

    def gold(self, cell: Cell, question: Question) -> tuple[Gold, ...]:
        """Return the gold that the cell's evidence is matched with."""
        return question.gold if cell.format is None else self.indexed_gold(question)

    def located(self, cell: Cell, question: Question, answer: Answer) -> tuple[Answer, Mapping[int, Level | None]]:
        """Return the answer with what a pipeline read in its place in the documents, and the levels of `Located`; that
        of a strategy as it is."""
        if cell.reasoning != PIPELINE:
            return answer, {}
        gold = self._among((None, None), self.benchmark.shared, question.gold) if self.benchmark.shared else ()
        found = Locator(question, self._named, gold).located(answer.evidence)
        return replace(answer, evidence=found.evidence), found.levels

    @cached_property
    def _named(self) -> Mapping[str, Document]:
        """The benchmark's documents by source path and id."""
        documents = self.benchmark.documents
        return {**{one.source: one for one in documents.values() if one.source}, **documents}

    def answerable(self, cell: Cell, question: Question) -> bool:
        """Return whether the question can be answered under the cell's condition: not where its gold was dropped."""
        return question.answerable and not (cell.change.drop_gold and question.gold)

    def contents(self) -> dict[str, str]:
        """Return a hash of the content of each index, and of each pool and its embedder, by what it is called."""
        named = {pin("index", *key): self.recording.content(key) for key in self.searchers}
        for pooled in self.pools.values():
            named |= pooled.pins
        named |= {pin("how", name): how for name, how in self.how.items()}
        return {name: content for name, content in named.items() if content}

    def placed(self, cell: Cell, question: Question) -> Changed:
        """Return what the cell places before the question is asked, perturbed; nothing under `retrieved`."""
        key = (cell.condition, cell.finder, cell.format, cell.perturbation, cell.seed, question.id)
        if key not in self._placed:
            self._placed[key] = self._changed(cell, question, self._chunks(cell, question))
        return self._placed[key]

    def _chunks(self, cell: Cell, question: Question) -> tuple[Chunk, ...]:
        """The chunks of the cell's condition, in the benchmark's order; none where it places none."""
        key, condition = (cell.finder, cell.format), cell.condition
        if condition == "provided":
            return question.provided
        if condition == "full" and cell.retriever is None:
            return question.whole
        if condition == "gold" and question.own:
            return Places(question.own, self.source_of).gold(question.gold)
        if condition == "gold" and cell.retriever is None:
            return self._among(key, self.benchmark.shared, question.gold)
        if condition not in ("gold", "full"):
            return ()
        gold = self.indexed_gold(question)

        def found(index: Index) -> FoundHits:
            return FoundHits.placed(self._among(key, index.chunks, gold) if condition == "gold" else
                                    self._whole(key, index, gold), condition)

        return self.recording.of_index(key, {"condition": condition, "gold": as_json(gold)}, found).chunks

    def _among(self, key: IndexKey, chunks: Sequence[Chunk], gold: Sequence[Gold]) -> tuple[Chunk, ...]:
        if key not in self._places:
            self._places[key] = Places(chunks, self.source_of)
        return self._places[key].gold(gold)

    def _whole(self, key: IndexKey, index: Index, gold: Sequence[Gold]) -> tuple[Chunk, ...]:
        """The documents that the gold names, each whole; those that the index does not hold are left out."""
        ids = {source: entry.document for source, entry in index.manifest.sources.items()}
        known = ids | {id: id for id in ids.values()}
        wanted = dict.fromkeys(known[item.document] for item in gold if item.document in known)
        format: Format = "html" if key[1] == "html" else "plain"
        for id in wanted:
            if (key, id) not in self._documents:
                document = index.document(id)
                self._documents[key, id] = Chunk.of(document, format, 0, len(document.text(format)))
        return tuple(self._documents[key, id] for id in wanted)

    def placed_if_known(self, cell: Cell, question: Question) -> Sequence[Chunk]:
        """Return the chunks that are placed; none where a replay does not know them, which the record will say."""
        try:
            return self.placed(cell, question).chunks
        except ReplayMiss:
            return ()

    def shown(self, cell: Cell, question: Question) -> ShownSearch:
        """Return what a search returns under the cell's condition."""
        if not cell.searched:
            try:
                placed = self.placed(cell, question)
            except ReplayMiss as error:
                missed = error  # which ends the question, as it does of any search

                async def search(action: Search) -> Sequence[Chunk]:
                    raise missed

                return ShownSearch(search)
            return ShownSearch(fixed_chunks(placed.chunks), list(placed.notes))
        found: SearchFunction | None = self.searchers.get((cell.finder, cell.format))
        notes: list[str] = []
        if found is None:
            among = self.among(cell)
            found = self.pools[str(cell.finder)].within(question, among)
            if among:
                notes += self.perturber.searched(among.change, question, self.own(question), among.seed).notes
        return self._perturbed(cell, question, found, notes) if cell.change.moves else ShownSearch(found)

    def own(self, question: Question) -> Sequence[Chunk]:
        """Return the chunks that a question is searched over, unless it is among those of all."""
        return question.own or self.benchmark.shared

    def among(self, cell: Cell) -> Among | None:
        """Return which negatives the cell searches; None where it searches what the questions bring."""
        change = Perturbation(pool=cell.change.pool, sort=cell.change.sort, drop_gold=cell.change.drop_gold)
        return Among(change, self._seed if cell.seed is None else cell.seed) if change.pool else None

    def _perturbed(self, cell: Cell, question: Question, found: SearchFunction, notes: list[str]) -> ShownSearch:

        async def search(action: Search) -> Sequence[Chunk]:
            changed = self._changed(cell, question, await found(action))
            notes.extend(note for note in changed.notes if note not in notes)
            return changed.chunks

        return ShownSearch(search, notes)

    def _changed(self, cell: Cell, question: Question, chunks: Sequence[Chunk]) -> Changed:
        seed = self._seed if cell.seed is None else cell.seed

        def changed(more: Sequence[Chunk]) -> Changed:
            return self.perturber.changed(cell.change, question, chunks, self.gold(cell, question), seed, more)

        if cell.format is None or not cell.change.negatives:
            return changed(())
        request = {"perturbation": str(cell.change), "seed": seed, "question": question.id,
                   "questions": self._questions, "shown": [chunk.id for chunk in chunks]}

        def found(index: Index) -> FoundHits:
            made = changed(index.chunks)
            return FoundHits.placed(made.chunks, "perturbation", made.notes)

        taken = self.recording.of_index((cell.finder, cell.format), request, found)
        return Changed(taken.chunks, taken.notes)

    @cached_property
    def _questions(self) -> str:
        """A hash of all that negatives are drawn from beside an index."""
        return digest(self.plan.questions_hash, *(chunk.id for chunk in self.benchmark.shared))
