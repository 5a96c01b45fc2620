"""Protocols of retrieval, base settings of retrievers, `Hit`, the result of a search, and operations on hits."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import fsum, isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from ragbed.documents.chunkers.spans import Span
from ragbed.documents.errors import SettingsError
from ragbed.documents.types import Chunk, Document, FieldValue
from ragbed.retrieval.tagged_union import KindModel

Matrix = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors. `name` is the model's name in the settings. `identity` contains a hash of the
    weights, so it differs between models with different vectors. Only `dimension` and `window` may load it."""

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
    """Unit vectors that can be searched. A row is the number of a vector."""

    @property
    def dimension(self) -> int: ...

    def __len__(self) -> int: ...

    def search(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None,
               ) -> tuple[Matrix, NDArray[np.int64]]:
        """Return inner products and rows of the `k` nearest vectors, best first, each of shape (queries, k). If fewer
        are found, the remaining rows are -1, and their products are the smallest float32. The mask `among`, of shape
        (vectors,), restricts which vectors are searched; None allows all."""
        ...

    def stored(self, first: int, end: int) -> Matrix | None:
        """Return the vectors in rows `[first, end)`, float32 of shape (rows, d); None if only codes are stored.
        Kinds that round vectors return the rounded ones."""
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
        """Hash of the searched texts. It does not depend on the embedder or on `among`."""
        ...

    @property
    def embedder(self) -> Embedder:
        """Embedder for queries, and for chunks without stored vectors. Raises ModelError if it is missing."""
        ...

    @property
    def among(self) -> NDArray[np.bool_] | None:
        """Mask of the rows that may be found, of shape (chunks,); None for all. Other rows are not searched."""
        ...

    def texts(self) -> Iterator[str]:
        """Yield the searched text of each chunk: the header that it was indexed with, and its content."""
        ...

    def nearest(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
        """Return for each unit vector at most `k` rows with their cosine, best first, ties by row. The mask `among`, of
        shape (chunks,), restricts the search further."""
        ...

    def vectors(self, chunks: Sequence[Chunk]) -> tuple[Matrix, NDArray[np.intp]]:
        """Return the unit vectors of the chunks' windows, of shape (windows, d), and the first row of each chunk.
        Chunks that are not in the collection, such as widened ones, are embedded now. Needs at least one chunk."""
        ...

    def document(self, id: str) -> Document:
        """Return the document of a chunk, with both renderings. Raises KeyError if the id is unknown."""
        ...

    def metadata(self) -> Iterator[Mapping[str, FieldValue]]:
        """Yield for each chunk `document`, `source`, `title`, `format`, `page`, and the user's fields."""
        ...


MAX_PARTS = 32  # maximum retrievers that one may contain, because each level of nesting may double the searches


class Scorer(Protocol):
    """Scores how relevant texts are to queries."""

    def scores(self, queries: Sequence[str], texts: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return for each query one number per text, in their order; higher is more relevant."""
        ...


@dataclass(frozen=True, slots=True)
class RerankerDeps:
    """Dependencies for opening a retriever, in addition to the collection.

    Attributes:
        judge: opens the relevance judge for settings of the kind `judge`; None if no model can be called.
    """

    judge: Callable[[Any], Scorer] | None = None


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
        """Return text that differs between retrievers whose rankings of a collection may differ. It depends on the
        settings and their models, but not on the collection's embedder. Large files are not loaded. Raises UserError if
        a model or package is missing."""
        raise NotImplementedError


if TYPE_CHECKING:
    RetrieverSettings: TypeAlias = RetrieverKind


class Progress(Protocol):
    """Reports the progress of a stage (`parse`, `embed`, `index`, `write`); `total` is None if unknown."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """Report no progress."""


T = TypeVar("T", bound=Hashable)

DECIMALS = 6  # smaller score differences are ties, because they depend on the number of threads


def distinct(hits: Sequence[Hit]) -> list[Hit]:
    """Return the first hit of each chunk."""
    found: dict[str, Hit] = {}
    for hit in hits:
        found.setdefault(hit.chunk.id, hit)
    return list(found.values())


def check_queries(queries: Sequence[str]) -> None:
    """Raise SettingsError if the queries are one text, whose letters would be searched one by one."""
    if isinstance(queries, str):
        raise SettingsError(f"queries: expected a list of texts, but got the text {queries[:40]!r}; put it in a list")


def number(value: object) -> float | None:
    """Convert a number of any library to a float. None if it is not finite, a boolean or no number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if isfinite(found) else None


def min_max_scale(scores: Sequence[float]) -> list[float]:
    """Scale scores to 0..1 by their minimum and maximum. Equal scores all become 1."""
    least, highest = min(scores, default=0.0), max(scores, default=0.0)
    if highest - least <= 10 ** -DECIMALS * max(abs(least), abs(highest)):
        return [1.0] * len(scores)
    return [(score - least) / (highest - least) for score in scores]


def reciprocal_ranks(ranks: Iterable[Mapping[T, int]], weights: Iterable[float] | None = None,
                     constant: int = 60) -> dict[T, float]:
    """Return for each item the sum of weight / (constant + rank) over the lists that contain it.

    The sum does not depend on the order of the lists, so ties stay ties. Source: Cormack, Clarke, Buettcher,
    "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods", SIGIR 2009, eq. 1.

    Args:
        ranks: for each list, the rank of each item, counted from 1.
        weights: one per list. Default: 1 each.
    """
    parts: dict[T, list[float]] = {}
    for weight, places in zip(repeat(1.0) if weights is None else weights, ranks, strict=False):
        for item, rank in places.items():
            parts.setdefault(item, []).append(weight / (constant + rank))
    return {item: fsum(each) for item, each in parts.items()}


def interleave(lists: Iterable[Sequence[T]]) -> list[T]:
    """Merge lists: the first item of each, then the second of each, and so on."""
    every = list(lists)
    return [one[at] for at in range(max(map(len, every), default=0)) for one in every if at < len(one)]


def append_rest(first: Sequence[Hit], rest: Iterable[Hit], k: int) -> list[Hit]:
    """Return at most `k` hits: the reordered `first`, then the hits of `rest` that are not in `first`. Their scores
    continue below the last reordered hit in steps of 1. So the best hits are the same for every `k`."""
    known = {hit.chunk.id for hit in first}
    least, count = (first[-1].score, len(first)) if first else (0.0, 0)
    more = (hit for hit in rest if hit.chunk.id not in known)
    behind = [Hit(hit.chunk, least - place, count + place, hit.found_by) for place, hit in enumerate(more, 1)]
    return [*first, *behind][:k]
