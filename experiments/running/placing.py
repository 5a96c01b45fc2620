"""Placing: the chunks that a condition shows without a search, out of the question or out of an index."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from agents.search import FoundHits
from documents.types import Chunk, Format
from experiments.cells import Cell
from experiments.question import Benchmark, Gold, Question
from experiments.running.gold import match
from experiments.running.recording import IndexKey, Recording, as_json
from retrieval.index import Index
from strategies.types import Passage

SourceOf = Callable[[str], str]


class Places:
    """Chunks by what a gold item may name of them, so that not every chunk is compared with every item."""

    def __init__(self, chunks: Sequence[Chunk], source_of: SourceOf) -> None:
        self.chunks = chunks
        self._source_of = source_of
        self._rows: dict[str, list[int]] = defaultdict(list)
        for row, chunk in enumerate(chunks):
            for name in {chunk.id, chunk.document, source_of(chunk.document)}:
                self._rows[name].append(row)

    def gold(self, gold: Sequence[Gold]) -> tuple[Chunk, ...]:
        """Return the chunks that are gold at any level, in order."""
        named = {name for item in gold for name in (item.chunk, item.document) if name}
        rows = sorted({row for name in named for row in self._rows.get(name, ())})
        view = match(gold, (Passage(row, self.chunks[row]) for row in rows), self._source_of)
        return tuple(self.chunks[row] for row in rows if view.levels[row] is not None)


class Placing:
    """What the conditions place.

    Args:
        recording: what is taken out of indexes.
        gold: a question's gold as an index can hold it.
    """

    def __init__(self, benchmark: Benchmark, recording: Recording, source_of: SourceOf,
                 gold: Callable[[Question], tuple[Gold, ...]]) -> None:
        self._benchmark, self._recording = benchmark, recording
        self._source_of, self._gold = source_of, gold
        self._places: dict[IndexKey, Places] = {}
        self._documents: dict[tuple[IndexKey, str], Chunk] = {}

    def chunks(self, cell: Cell, question: Question) -> tuple[Chunk, ...]:
        """Return the chunks of the cell's condition, in the benchmark's order; none where it places none."""
        if cell.condition == "given":
            return question.given
        if cell.condition == "gold":
            return self._evidence(cell, question)
        if cell.condition == "full":
            return question.whole if cell.retriever is None else self._whole(cell, question)
        return ()

    def _evidence(self, cell: Cell, question: Question) -> tuple[Chunk, ...]:
        """The gold among the question's own chunks, else among those that all share, else in the cell's index."""
        if question.own:
            return Places(question.own, self._source_of).gold(question.gold)
        key = (cell.finder, cell.format)
        if cell.retriever is None:
            return self._among(key, self._benchmark.shared, question.gold)
        gold = self._gold(question)
        request = {"condition": "gold", "gold": as_json(gold)}
        return self._recording.of_index(
            key, request, lambda index: FoundHits.placed(self._among(key, index.chunks, gold), "gold")).chunks

    def _among(self, key: IndexKey, chunks: Sequence[Chunk], gold: Sequence[Gold]) -> tuple[Chunk, ...]:
        if key not in self._places:
            self._places[key] = Places(chunks, self._source_of)
        return self._places[key].gold(gold)

    def _whole(self, cell: Cell, question: Question) -> tuple[Chunk, ...]:
        """The documents that the gold names, each whole; those that the index does not hold are left out."""
        key, gold = (cell.finder, cell.format), self._gold(question)
        request = {"condition": "full", "gold": as_json(gold)}
        return self._recording.of_index(
            key, request, lambda index: FoundHits.placed(self._documents_of(key, index, gold), "full")).chunks

    def _documents_of(self, key: IndexKey, index: Index, gold: Sequence[Gold]) -> tuple[Chunk, ...]:
        ids = {source: entry.document for source, entry in index.manifest.sources.items()}
        known = ids | {id: id for id in ids.values()}
        wanted = dict.fromkeys(known[item.document] for item in gold if item.document in known)
        return tuple(self._document(key, index, id) for id in wanted)

    def _document(self, key: IndexKey, index: Index, id: str) -> Chunk:
        if (key, id) not in self._documents:
            document = index.document(id)
            format: Format = "html" if key[1] == "html" else "plain"
            self._documents[key, id] = Chunk.of(document, format, 0, len(document.text(format)))
        return self._documents[key, id]
