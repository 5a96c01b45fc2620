"""The protocols of retrieval: what embeds, what is searched, what searches and scores; and Hit, what is found."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.chunkers.spans import Span
from ragbed.documents.types import Chunk, Document

Matrix = NDArray[np.float32]
FieldValue = str | int | float | bool | None  # what a metadata field may hold


class Embedder(Protocol):
    """Texts to unit vectors.

    `name` is what a user calls the model; `identity` tells models apart that give different vectors
    (it holds a hash of the weights). Reading either does not load the model; `dimension` and `window` may.
    """

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def window(self) -> int:
        """Tokens that the model reads of one text, its special tokens included."""
        ...

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        """Return for each text the spans, in code points, that fit the window with `header` in front of each. The spans
        are in order, do not overlap and cover the text; an empty text has one empty span."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors of questions, float32 of shape (texts, dimension)."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors of passages, float32 of shape (texts, dimension)."""
        ...


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that a search found.

    Attributes:
        score: higher is better; its scale is the retriever's.
        rank: from 1.
        found_by: the retriever's name, such as `dense`, and of one made of others the ranks that they gave, as in
            `fused(dense 1, bm25 4)`.
    """

    chunk: Chunk
    score: float
    rank: int
    found_by: str


class Retriever(Protocol):
    """Finds chunks for queries."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most `k` hits for each query, best first, one list per query in their order."""
        ...


class Vectors(Protocol):
    """Unit vectors by row, under one kind of index."""

    @property
    def dimension(self) -> int: ...

    def __len__(self) -> int: ...

    def search(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None,
               ) -> tuple[Matrix, NDArray[np.int64]]:
        """Return inner products and rows of the `k` nearest vectors, best first, each of shape (queries, k). Where
        fewer are found, the row is -1 and the product is the least of float32. The mask `among`, shape (vectors,), is
        decided before the search; None lets all be found."""
        ...

    def stored(self, first: int, end: int) -> Matrix | None:
        """Return the vectors in rows `[first, end)`, float32 of shape (rows, d); None where codes keep them nearly."""
        ...


class Collection(Protocol):
    """Chunks that are searched together: an index folder, or the chunks of one question. A row is a chunk's place."""

    @property
    def chunks(self) -> Sequence[Chunk]:
        """All chunks, whichever of them may be found."""
        ...

    @property
    def content(self) -> str:
        """A hash of the chunks in their order, of how they are embedded, and of which may be found."""
        ...

    @property
    def wording(self) -> str:
        """A hash of what `texts` gives, however it is embedded and whichever of it may be found."""
        ...

    @property
    def embedder(self) -> Embedder:
        """The embedder of queries, and of chunks where they are embedded anew. ModelError where it is not to be had."""
        ...

    @property
    def among(self) -> NDArray[np.bool_] | None:
        """Which rows may be found, shape (chunks,); None for all. Decided before a search, not after it."""
        ...

    def texts(self) -> Iterator[str]:
        """Give the text that each chunk is searched by: its content, below the header that it was indexed with."""
        ...

    def nearest(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
        """Return for each unit vector at most `k` rows that may be found, with their cosine, best first, then by row;
        `among`, shape (chunks,), says which may be, beside what the collection itself says."""
        ...

    def vectors(self, chunks: Sequence[Chunk]) -> tuple[Matrix, NDArray[np.intp]]:
        """Return the unit vectors of the windows of these chunks, at least one, shape (windows, d), and where those of
        each begin. A chunk that is none of the collection's own, such as one that was widened, is embedded as those
        are."""
        ...

    def document(self, id: str) -> Document:
        """Return the document of a chunk, with both renderings; KeyError if it is not known."""
        ...

    def metadata(self) -> Iterator[Mapping[str, FieldValue]]:
        """Give of each chunk `document`, `source`, `title`, `format`, `page`, and its document's own fields."""
        ...


class Scorer(Protocol):
    """Says how relevant texts are to queries."""

    def scores(self, queries: Sequence[str], texts: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return for each query one number for each of its texts, in their order; higher is more relevant."""
        ...


class Progress(Protocol):
    """Is told how far a stage (`parse`, `embed`, `index`, `write`) has come; `total` None where unknown."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """Show no progress."""
