"""An index with some of its documents only. Whatever reads it, searches included, cannot reach the others."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.errors import IndexFolderError
from ragbed.documents.types import Chunk, Document, FieldValue, digest
from ragbed.retrieval.index import Index
from ragbed.retrieval.types import Embedder, Matrix

Mask = NDArray[np.bool_]


class AllowedIndex(Index):
    """Some documents of an index, as if it had no others: rows, counts and the weights of words are those of the
    allowed chunks. Searching is thread-safe.

    Args:
        documents: ids of the documents.
        fields: fields that every chunk has, though perhaps without a value, such as those of the server's own filter.
    """

    chunks: Any  # an `AllowedChunks`

    def __init__(self, whole: Index, documents: frozenset[str], fields: frozenset[str] = frozenset()) -> None:
        self._whole, self._allowed, self._fields = whole, documents, fields
        self.folder, self.manifest = whole.folder, whole.manifest
        self._mask: Mask = np.array([document in documents for document, *_ in whole.chunks.fields()], np.bool_)
        self._rows = np.flatnonzero(self._mask)
        self.chunks = AllowedChunks(whole, self._rows, documents)
        self._hash = digest(*sorted(documents))

    @property
    def content(self) -> str:
        return digest("allowed", self._whole.content, self._hash)

    @property
    def text_hash(self) -> str:
        return digest("allowed", self._whole.text_hash, self._hash)

    @property
    def replaced(self) -> bool:
        return self._whole.replaced

    @property
    def embedder(self) -> Embedder:
        return self._whole.embedder

    def texts(self) -> Iterator[str]:
        return self._only(self._whole.texts())

    def metadata(self) -> Iterator[Mapping[str, FieldValue]]:
        return ({**dict.fromkeys(self._fields), **known} for known in self._only(self._whole.metadata()))

    def _only(self, rows: Iterator[Any]) -> Iterator[Any]:
        return (one for one, allowed in zip(rows, self._mask, strict=True) if allowed)

    def nearest(self, queries: Matrix, k: int, among: Mask | None = None) -> list[list[tuple[int, float]]]:
        """Search as `Index.nearest`, among the allowed chunks. Raises IndexFolderError if the kind of vectors does not
        keep to the chunks that it may find."""
        mask = self._mask
        if among is not None:
            mask = np.zeros(len(mask), np.bool_)
            mask[self._rows[among]] = True
        found = self._whole.nearest(queries, k, mask)
        if not all(mask[row] for hits in found for row, _ in hits):
            raise IndexFolderError(f"{self.folder}: its vectors ({self.manifest.kind.kind}) find chunks that they were "
                                   "told to leave out, so no rule can be enforced on them; use --vectors flat")
        return [[(int(np.searchsorted(self._rows, row)), score) for row, score in hits] for hits in found]

    def vectors(self, chunks: Sequence[Chunk]) -> tuple[Matrix, NDArray[np.intp]]:
        for chunk in chunks:
            self._check(chunk.document)
        return self._whole.vectors(chunks)

    def document(self, id: str) -> Document:
        self._check(id)
        return self._whole.document(id)

    def documents(self) -> list[Document]:
        return [self._whole.document(id) for id in dict.fromkeys(document for document, *_ in self.chunks.fields())]

    def source_of(self, document: str) -> str:
        self._check(document)
        return self._whole.source_of(document)

    def _check(self, document: str) -> None:
        if document not in self._allowed:
            raise KeyError(document)


class AllowedChunks(Sequence[Chunk]):
    """The chunks of some documents of an index, read when needed."""

    def __init__(self, whole: Index, rows: NDArray[np.intp], documents: frozenset[str]) -> None:
        self._whole, self._rows, self._documents = whole.chunks, rows, documents

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, row: int) -> Chunk: ...
    @overload
    def __getitem__(self, row: slice) -> list[Chunk]: ...
    def __getitem__(self, row: int | slice) -> Chunk | list[Chunk]:
        if isinstance(row, slice):
            return [self._whole[one] for one in self._rows[row].tolist()]
        return self._whole[int(self._rows[row])]

    def fields(self) -> Iterator[tuple[str, str, int | None]]:
        """Yield the document, format and first page of each chunk."""
        return (one for one in self._whole.fields() if one[0] in self._documents)

    def row(self, id: str) -> int:
        """Return the row of a chunk id. Raises KeyError if it is unknown."""
        whole = self._whole.row(id)
        row = int(np.searchsorted(self._rows, whole))
        if row == len(self._rows) or self._rows[row] != whole:
            raise KeyError(id)
        return row
