"""What questions are shown, as far as it is known before anything is searched."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from random import Random

from documents.chunkers import Crest, Sections
from documents.types import Chunk, Format
from experiments.cells import Cell, has_index
from experiments.evidence.gold import distinct
from experiments.evidence.resources import Resources
from experiments.question import Question
from experiments.running.searching import index_folder
from experiments.settings import RunSettings
from experiments.settings.finders import finders_of
from experiments.settings.retrievers import RetrieverFactor

_FILLER = "The records of the town say who built the bridge, and when it was opened to the public. "
_OF_INDEX = 200  # chunks of an index that stand for all
_WHOLE = 10  # typical chunks that a document has, where nothing is known of it


class Foreseen:
    """The chunks that searches will return, or chunks of their size.

    Placed chunks are those that the run will place. In the place of what a search will find stand as many chunks of
    those that are searched, and in the place of an index that is not built, chunks of the size that its chunker makes.
    """

    def __init__(self, settings: RunSettings, resources: Resources) -> None:
        self._settings, self._resources = settings, resources
        self._finders = finders_of(settings)
        self._some: dict[tuple[str | None, str | None], list[Chunk]] = {}
        self.guessed = False

    def chunks(self, cell: Cell, question: Question, k: int | None = None, turn: int = 0) -> Sequence[Chunk]:
        """What a search for `k` chunks returns under the cell's condition.

        Args:
            turn: of several draws, where what will be found is not known; each has other chunks while there are any.
        """
        if cell.retriever is None:
            return self._resources.placed(cell, question).chunks
        retriever = self._finders[cell.finder or ""].retriever
        opened = cell.format is None or self._open(retriever, cell.format)
        if cell.searched:
            count = (k or retriever.k) + cell.change.negatives
            return self._found(cell, question, retriever, count, turn) if opened else \
                [_filled(_size(retriever), f"{question.id}:{count * turn + place}") for place in range(count)]
        if opened:
            return self._resources.placed(cell, question).chunks
        sizes = self._sizes(cell, question, retriever)
        return [_filled(size, f"{question.id}:{place}") for place, size in enumerate(sizes)]

    def _found(self, cell: Cell, question: Question, retriever: RetrieverFactor, count: int,
               turn: int) -> list[Chunk]:
        """As many chunks of what is searched, drawn by the question."""
        chunks = self._searched(cell, question, retriever)
        return Random(question.id).sample(chunks, min(len(chunks), count * (turn + 1)))[-count:]

    def _searched(self, cell: Cell, question: Question, retriever: RetrieverFactor) -> Sequence[Chunk]:
        benchmark = self._resources.benchmark
        if has_index(retriever, benchmark):
            return self._some.get((cell.finder, cell.format), ())
        if retriever.over == "all":
            return self._everything
        return question.own or benchmark.shared

    @cached_property
    def _everything(self) -> Sequence[Chunk]:
        return self._resources.benchmark.searchable

    def _open(self, retriever: RetrieverFactor, format: Format) -> bool:
        """Whether there is an index, which is opened for its chunks alone."""
        key, folder = (retriever.name, format), index_folder(self._settings, retriever, format)
        if key not in self._resources.indexes and (retriever.index is not None or folder.exists()):
            index = self._resources.indexes[key] = self._resources.index(folder)
            step = max(1, len(index.chunks) // _OF_INDEX)
            self._some[key] = [index.chunks[row] for row in range(0, len(index.chunks), step)]
        self.guessed |= key not in self._resources.indexes
        return key in self._resources.indexes

    def _sizes(self, cell: Cell, question: Question, retriever: RetrieverFactor) -> list[int]:
        """Characters of what a condition will show out of an index: of a whole document, the bytes of its file."""
        gold = distinct(question.gold)
        if cell.condition != "full":
            return [_size(retriever)] * len(gold)
        corpus = Path(self._resources.benchmark.corpus or ".")
        files = [corpus / name for name in dict.fromkeys(item.document for item in gold)]
        return [file.stat().st_size if file.is_file() else _WHOLE * _size(retriever) for file in files]


def _size(retriever: RetrieverFactor) -> int:
    """The characters of a typical chunk."""
    chunker = retriever.build.chunker
    if isinstance(chunker, Crest):
        return (chunker.smallest + chunker.largest) // 2
    return chunker.target if isinstance(chunker, Sections) else chunker.size


def _filled(size: int, id: str) -> Chunk:
    text = (_FILLER * (size // len(_FILLER) + 1))[:size]
    return Chunk(id, "not known yet", "plain", 0, size, text)
