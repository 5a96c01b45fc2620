"""The documents that tools may read: those of an index, or those that are made of a question's chunks."""
from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from ragbed.documents.types import Chunk, Document, Format, Page, chunk_id, digest
from ragbed.retrieval.filters.filtered_collection import filter_collection
from ragbed.retrieval.index import Index


class Corpus(Protocol):
    """The documents that a question may use.

    Attributes:
        hash: hash of the content.
        format: the rendering of the documents that the question's searches show.
        ids: ids of the documents, in order.
        chunks: the chunks that the question searches.
    """

    @property
    def hash(self) -> str: ...

    @property
    def format(self) -> Format: ...

    @property
    def ids(self) -> Sequence[str]: ...

    @property
    def chunks(self) -> Sequence[Chunk]: ...

    def document(self, id: str) -> Document:
        """Return the document of an id. Raises KeyError if it is unknown."""
        ...

    def spans(self, id: str, start: int, end: int) -> tuple[Chunk, ...]:
        """Return the span `[start, end)` of a document's rendering as chunks, which may be cited. Several if the
        question has only parts of the document."""
        ...


class IndexCorpus:
    """The documents of an index with a chunk that meets the conditions of `where`; see `Corpus`."""

    def __init__(self, index: Index, format: Format, where: Sequence[str] = ()) -> None:
        self.format = format
        self._index, self._found = index, filter_collection(index, where)
        self.hash = self._found.content

    @cached_property
    def ids(self) -> Sequence[str]:
        among = self._found.among
        return tuple(dict.fromkeys(document for row, (document, *_) in enumerate(self._index.chunks.fields())
                                   if among is None or among[row]))

    @cached_property
    def _allowed(self) -> frozenset[str]:
        return frozenset(self.ids)

    @cached_property
    def chunks(self) -> Sequence[Chunk]:
        among = self._found.among
        return self._index.chunks if among is None else [self._index.chunks[row] for row in among.nonzero()[0].tolist()]

    def document(self, id: str) -> Document:
        if id not in self._allowed:
            raise KeyError(id)
        return self._index.document(id)

    def spans(self, id: str, start: int, end: int) -> tuple[Chunk, ...]:
        document = self.document(id)
        start, end = max(start, 0), min(end, len(document.text(self.format)))
        return (Chunk.of(document, self.format, start, end),) if start < end else ()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A chunk in the text of its document: where it begins there, and its text without what came before."""

    at: int
    chunk: Chunk
    text: str


class ChunkCorpus:
    """The documents that some chunks belong to, with the text of these chunks only; see `Corpus`. `describe` returns
    the source and title of a document."""

    def __init__(self, chunks: Sequence[Chunk], describe: Callable[[str], tuple[str, str]]) -> None:
        self.chunks, self._describe = chunks, describe
        self.format: Format = chunks[0].format if chunks else "plain"

    @cached_property
    def hash(self) -> str:
        return digest("chunks", *(chunk.id for chunk in self.chunks))

    @cached_property
    def ids(self) -> Sequence[str]:
        return tuple(self._of)

    @cached_property
    def _of(self) -> dict[str, list[Chunk]]:
        found: dict[str, list[Chunk]] = {}
        for chunk in self.chunks:
            found.setdefault(chunk.document, []).append(chunk)
        return found

    def document(self, id: str) -> Document:
        text, pages = "", dict[int, Page]()
        for piece in self._pieces(id):
            text += "\n" * (piece.at - len(text)) + piece.text
            if piece.chunk.pages and piece.chunk.pages[0] > max(pages, default=0):
                pages[piece.chunk.pages[0]] = Page(piece.chunk.pages[0], piece.at, piece.at)
        return Document(id, *self._describe(id), html=text, plain=text, pages=tuple(pages.values()))

    def spans(self, id: str, start: int, end: int) -> tuple[Chunk, ...]:
        return tuple(_cut(piece, start - piece.at, end - piece.at) for piece in self._pieces(id)
                     if piece.at < end and start < piece.at + len(piece.text))

    def _pieces(self, id: str) -> Iterator[_Piece]:
        at, reached = 0, 0
        for chunk in sorted(self._of[id], key=lambda chunk: (chunk.start, chunk.end)):
            text = chunk.content.removeprefix(chunk.prefix)
            if len(text) == chunk.end - chunk.start:  # drop what the chunk before it has, too
                text = text[max(reached - chunk.start, 0):] if at else text
                at += 2 * bool(at and chunk.start > reached)
                reached = max(reached, chunk.end)
            elif at:
                at += 2
            if text:
                yield _Piece(at, chunk, text)
                at += len(text)


_opened: deque[ChunkCorpus] = deque(maxlen=8)


def open_chunks(chunks: Sequence[Chunk], describe: Callable[[str], tuple[str, str]]) -> ChunkCorpus:
    """Return the documents of chunks. Many questions may search the same ones, so the last corpora are kept."""
    for one in tuple(_opened):
        if len(one.chunks) == len(chunks) and all(map(operator.is_, one.chunks, chunks)):
            return one
    _opened.append(ChunkCorpus(chunks, describe))
    return _opened[-1]


def _cut(piece: _Piece, first: int, last: int) -> Chunk:
    """Return a part of a piece as a chunk, or the whole chunk if the part is the whole piece."""
    first, last, chunk = max(first, 0), min(last, len(piece.text)), piece.chunk
    if last - first == len(piece.text):
        return chunk
    content, start = piece.text[first:last], max(chunk.start, chunk.end - len(piece.text)) + first
    end = start + len(content)
    return replace(chunk, id=chunk_id(chunk.document, chunk.format, start, end, content), start=start, end=end,
                   content=content, prefix="")
