"""Protocols of retrieval, base settings of retrievers, and `Hit`, the result of a search."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from ragbed.documents.chunkers.spans import Span
from ragbed.documents.types import Chunk, Document
from ragbed.retrieval.tagged_union import KindModel

if TYPE_CHECKING:
    from ragbed.retrieval.rerankers.reranker import RerankerDeps

Matrix = NDArray[np.float32]
FieldValue = str | int | float | bool | None  # value of a metadata field


class Embedder(Protocol):
    """Turns texts into unit vectors. `name` is the user's name for the model. `identity` differs between models that
    give different vectors, because it contains a hash of the weights. Reading these two does not load the model.
    Reading `dimension` and `window` may load it."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def window(self) -> int:
        """Maximum tokens that the model reads of one text, including special tokens."""
        ...

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        """Cut each text into spans, in code points, that fit the window with `header` in front of each. The spans of a
        text are in order, do not overlap and cover it. An empty text has one empty span."""
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
        score: higher is better; the scale depends on the retriever.
        rank: counted from 1.
        found_by: name of the retriever, such as `dense`. A combined retriever adds the ranks of its parts, as in
            `fused(dense 1, bm25 4)`.
    """

    chunk: Chunk
    score: float
    rank: int
    found_by: str


class Retriever(Protocol):
    """Finds chunks for queries."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return one list per query, in the same order, of at most `k` hits, best first."""
        ...


class Vectors(Protocol):
    """Unit vectors in one kind of index, by row."""

    @property
    def dimension(self) -> int: ...

    def __len__(self) -> int: ...

    def search(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None,
               ) -> tuple[Matrix, NDArray[np.int64]]:
        """Return inner products and rows of the `k` nearest vectors, best first, each of shape (queries, k). If fewer
        are found, the remaining rows are -1 and their products the smallest float32. The mask `among`, of shape
        (vectors,), restricts the search itself, not its result; None allows all vectors."""
        ...

    def stored(self, first: int, end: int) -> Matrix | None:
        """Return the vectors in rows `[first, end)`, float32 of shape (rows, d); None if only codes are stored."""
        ...


class Collection(Protocol):
    """Chunks that are searched together: an index, or the chunks of one question. A row is a chunk's position."""

    @property
    def chunks(self) -> Sequence[Chunk]:
        """All chunks, including those that a search may not return."""
        ...

    @property
    def content(self) -> str:
        """Hash of the chunks in order, the embedder, and the mask `among`."""
        ...

    @property
    def text_hash(self) -> str:
        """Hash of the result of `texts`. It does not depend on the embedder and on `among`."""
        ...

    @property
    def embedder(self) -> Embedder:
        """Embeds queries, and chunks that have no stored vectors. Raises ModelError if it is not on this machine."""
        ...

    @property
    def among(self) -> NDArray[np.bool_] | None:
        """Mask of the rows that may be found, of shape (chunks,); None for all. It restricts the search itself."""
        ...

    def texts(self) -> Iterator[str]:
        """Yield the searched text of each chunk: the header that it was indexed with, and its content."""
        ...

    def nearest(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
        """Return for each unit vector at most `k` rows with their cosine, best first, ties by row. The mask `among`, of
        shape (chunks,), restricts the search further than the collection does."""
        ...

    def vectors(self, chunks: Sequence[Chunk]) -> tuple[Matrix, NDArray[np.intp]]:
        """Return the unit vectors of the chunks' windows, of shape (windows, d), and the first row of each chunk. At
        least one chunk is required. Chunks that are not in the collection, such as widened ones, are embedded now."""
        ...

    def document(self, id: str) -> Document:
        """Return the document of a chunk, with both renderings. Raises KeyError if the id is unknown."""
        ...

    def metadata(self) -> Iterator[Mapping[str, FieldValue]]:
        """Yield for each chunk `document`, `source`, `title`, `format`, `page`, and the user's fields."""
        ...


MAX_PARTS = 32  # maximum retrievers that one may combine, because each level of nesting may double the searches


class RetrieverKind(KindModel):
    """Settings of one kind of retriever. Guests add kinds in the slot `retriever`. A retriever that combines others has
    a field `of`, annotated with `"RetrieverSettings"`, the union of all kinds."""

    @model_validator(mode="before")
    @classmethod
    def _limit_parts(cls, value: Any) -> Any:
        waiting, found = [value], 0
        while waiting:
            one = waiting.pop()
            found += 1
            if found > MAX_PARTS:
                raise ValueError(f"combines more than {MAX_PARTS} retrievers; remove some")
            of = one.get("of") if isinstance(one, dict) else getattr(one, "of", None)
            waiting.extend(of if isinstance(of, list | tuple) else [of] if of is not None else [])
        return value

    @property
    def embeds(self) -> bool:
        """Whether the collection's embedder affects the hits."""
        return True

    def open(self, collection: Collection, deps: RerankerDeps) -> Retriever:
        """Open the retriever over a collection. Raises UserError if a model or package is missing."""
        raise NotImplementedError

    def identity(self) -> str:
        """Return text that differs between retrievers that rank equal collections differently. It depends on the
        settings and their models, but not on the collection's embedder. No large files are loaded. Raises UserError if
        a model or package is missing."""
        raise NotImplementedError


if TYPE_CHECKING:
    RetrieverSettings: TypeAlias = RetrieverKind


class Scorer(Protocol):
    """Scores how relevant texts are to queries."""

    def scores(self, queries: Sequence[str], texts: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return for each query one number per text, in their order; higher is more relevant."""
        ...


class Progress(Protocol):
    """Reports the progress of a stage (`parse`, `embed`, `index`, `write`); `total` is None if unknown."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """Show no progress."""
