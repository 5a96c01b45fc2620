"""Pools of chunks in memory, and searches that open their retriever at first use."""
from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.types import Chunk, Document, digest
from ragbed.retrieval.filters.terms import filter_collection
from ragbed.retrieval.hits import DECIMALS
from ragbed.retrieval.rerankers.reranker import RerankerDeps
from ragbed.retrieval.retrievers.dense import window_vectors
from ragbed.retrieval.storage.cache import CachedEmbedder
from ragbed.retrieval.types import Collection, FieldValue, Hit, Matrix, Progress, Retriever, RetrieverKind, silent


def pool_content(embedder: str, chunks: Iterable[str]) -> str:
    """Return a hash of the ids of a pool's chunks and of the embedder's identity."""
    return digest(embedder, *sorted(chunks))


class ScopedQuery(NamedTuple):
    """A query that searches only the chunks of one scope."""

    scope: str
    query: str


class Pool:
    """Chunks in named scopes, which may overlap, such as the chunks of each question of a benchmark.

    Chunks are embedded when a vector is first needed.

    Args:
        scopes: chunks by the name of the scope.
        documents: known documents, by id.
    """

    def __init__(self, scopes: Mapping[str, Iterable[Chunk]], embedder: CachedEmbedder,
                 documents: Mapping[str, Document] | None = None) -> None:
        self.embedder = embedder
        self.documents = documents or {}
        self._rows: dict[str, int] = {}
        self.chunks: list[Chunk] = []
        self._scopes = {name: list(dict.fromkeys(map(self._row, chunks))) for name, chunks in scopes.items()}
        self._vectors: Matrix | None = None
        self._firsts: NDArray[np.intp] | None = None

    @property
    def content(self) -> str:
        """Hash of the chunks and of the embedder."""
        return pool_content(self.embedder.identity, self._rows)

    def scope(self, name: str) -> Scope:
        """Return the chunks of a scope as a collection."""
        return Scope(self, self._scopes[name])

    def embed(self, progress: Progress = silent) -> None:
        """Embed every chunk by windows. Vectors of texts that were embedded before come from the cache. Raises
        ModelError if the embedder cannot be loaded. Raises SettingsError if the cache folder cannot be written."""
        if self._vectors is not None:
            return
        contents = [chunk.content for chunk in self.chunks]
        spans = self.embedder.windows(contents)
        texts = [content[start:end] for content, windows in zip(contents, spans, strict=True) for start, end in windows]
        total, done = len(set(texts)), 0

        def advance(more: int) -> None:
            nonlocal done
            done += more
            progress("embed", done, total)

        self._firsts = np.cumsum([0, *map(len, spans)])
        self._vectors = self.embedder.embed_passages(texts, advance)

    def windows(self, rows: NDArray[np.intp]) -> tuple[Matrix, NDArray[np.intp]]:
        """Return the vectors of the chunks in these rows, and the first row of each chunk."""
        self.embed()
        assert self._vectors is not None
        assert self._firsts is not None
        begins, ends = self._firsts[rows], self._firsts[rows + 1]
        starts = np.cumsum(ends - begins) - (ends - begins)
        if (begins[1:] == ends[:-1]).all():  # contiguous, so no copy is needed
            return self._vectors[begins[0]:ends[-1]], starts
        places = np.arange((ends - begins).sum()) + np.repeat(begins - starts, ends - begins)
        return self._vectors[places], starts

    def known(self, chunk: Chunk) -> Matrix | None:
        """Return the vectors of a chunk; None if it is not in the pool."""
        return self.windows(np.array([self._rows[chunk.id]]))[0] if chunk.id in self._rows else None

    def _row(self, chunk: Chunk) -> int:
        if chunk.id not in self._rows:
            self._rows[chunk.id] = len(self.chunks)
            self.chunks.append(chunk)
        return self._rows[chunk.id]


@dataclass(frozen=True)
class Scope:
    """Some chunks of a pool as a collection. Search is exact, because it compares every window."""

    pool: Pool
    rows: Sequence[int]
    among: None = field(default=None, init=False)

    @cached_property
    def chunks(self) -> list[Chunk]:
        return [self.pool.chunks[row] for row in self.rows]

    @property
    def content(self) -> str:
        """Hash of the chunks in order and of the embedder."""
        return digest(self.embedder.identity, *(chunk.id for chunk in self.chunks))

    @property
    def text_hash(self) -> str:
        """Hash of the chunks in order."""
        return digest(*(chunk.id for chunk in self.chunks))

    @property
    def embedder(self) -> CachedEmbedder:
        return self.pool.embedder

    def texts(self) -> Iterator[str]:
        return (chunk.content for chunk in self.chunks)

    def document(self, id: str) -> Document:
        return self.pool.documents[id]

    def metadata(self) -> Iterator[Mapping[str, FieldValue]]:
        """Yield document, format and first page of each chunk, and source and title if they are known."""
        for chunk in self.chunks:
            known = self.pool.documents.get(chunk.document)
            yield {"document": chunk.document, "source": known.source if known else chunk.document,
                   "title": known.title if known else None, "format": chunk.format,
                   "page": chunk.pages[0] if chunk.pages else None}

    def nearest(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
        """Return for each unit vector at most `k` rows of the scope, each with the cosine of its nearest window."""
        rows = np.arange(len(self.rows)) if among is None else np.flatnonzero(among)
        if not len(rows) or k < 1:
            return [[] for _ in queries]
        vectors, starts = self._windows if among is None else self.pool.windows(np.asarray(self.rows)[rows])
        found = []
        for query in queries:  # one by one: a product of two matrices may differ in the last digits, and so in ties
            cosines = np.maximum.reduceat(vectors @ query, starts).round(DECIMALS)
            best = np.argsort(-cosines, kind="stable")[:k]
            found.append(list(zip(rows[best].tolist(), cosines[best].tolist(), strict=True)))
        return found

    def vectors(self, chunks: Sequence[Chunk]) -> tuple[Matrix, NDArray[np.intp]]:
        return window_vectors(chunks, self.pool.known, lambda document: "", lambda: self.embedder)

    @cached_property
    def _windows(self) -> tuple[Matrix, NDArray[np.intp]]:
        return self.pool.windows(np.asarray(self.rows))


_MAX_OPEN = 512  # retrievers to keep open: a benchmark has a scope per question and asks each several times


@dataclass(frozen=True, slots=True)
class RetrieverChoice:
    """A kind of retriever and a filter.

    Attributes:
        where: conditions on chunks, which restrict the search itself.
        deps: returns the dependencies for opening the retriever; called when it is opened.
    """

    kind: RetrieverKind
    where: tuple[str, ...] = ()
    deps: Callable[[], RerankerDeps] = RerankerDeps

    def open(self, collection: Collection) -> Retriever:
        """Open the retriever over the chunks that meet the conditions. Raises UserError if a model, package or field is
        missing."""
        return self.kind.open(filter_collection(collection, self.where), self.deps())

    def identity(self) -> str:
        """Return text that differs between choices that give different hits on equal collections."""
        where = " and ".join(self.where)
        return f"{self.kind.identity()} where {where}" if where else self.kind.identity()


@dataclass(frozen=True)
class WholeSearch:
    """One retriever over a collection. It is opened once, even if several threads search at first."""

    collection: Collection
    how: RetrieverChoice
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        with self._lock:
            retriever = self._retriever
        return retriever.search(queries, k)

    @cached_property
    def _retriever(self) -> Retriever:
        return self.how.open(self.collection)


class ScopedSearch:
    """One retriever per scope of a pool, so that hits depend only on the scope."""

    def __init__(self, pool: Pool, how: RetrieverChoice) -> None:
        self.pool = pool
        self._how = how
        self._open: OrderedDict[str, Retriever] = OrderedDict()
        self._lock = threading.Lock()

    def search(self, queries: Sequence[ScopedQuery], k: int) -> list[list[Hit]]:
        if self._how.kind.embeds:  # embeds all chunks at once, which is faster; the vectors are cached
            self.pool.embedder.embed_queries([one.query for one in queries])
        places: dict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(queries):
            places[one.scope].append(place)
        found: dict[int, list[Hit]] = {}
        for scope, at in places.items():
            hits = self._retriever(scope).search([queries[place].query for place in at], k)
            found |= dict(zip(at, hits, strict=True))
        return [found[place] for place in range(len(queries))]

    def _retriever(self, scope: str) -> Retriever:
        with self._lock:
            if scope not in self._open:
                self._open[scope] = self._how.open(self.pool.scope(scope))
                if len(self._open) > _MAX_OPEN:
                    self._open.popitem(last=False)
            self._open.move_to_end(scope)
            return self._open[scope]
