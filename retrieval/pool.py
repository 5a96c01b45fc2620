"""Pools of chunks without an index folder, and retrievers that are opened when they first search."""
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
from ragbed.retrieval.filters.terms import narrowed
from ragbed.retrieval.hits import DECIMALS
from ragbed.retrieval.rerankers.reranker import RerankerDeps
from ragbed.retrieval.retrievers.dense import windows_of
from ragbed.retrieval.storage.cache import CachedEmbedder
from ragbed.retrieval.types import Collection, FieldValue, Hit, Matrix, Progress, Retriever, RetrieverKind, silent


def content_of(embedder: str, chunks: Iterable[str]) -> str:
    """Return a hash of the chunks of a pool, by their ids, and of the embedder, by its identity."""
    return digest(embedder, *sorted(chunks))


class Within(NamedTuple):
    """A query among the chunks of one scope."""

    scope: str
    query: str


class Pool:
    """Chunks, embedded once when a vector is first asked for, and named scopes of them, of which several may hold one.
    The embedder's vectors are kept on disk, so that no text is embedded twice. The chunks' documents are there by id,
    as far as they are known."""

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
        """A hash of what can be found, and by which embedder."""
        return content_of(self.embedder.identity, self._rows)

    def scope(self, name: str) -> Scope:
        """Return the chunks of that name, as what a retriever is opened over."""
        return Scope(self, self._scopes[name])

    def embed(self, progress: Progress = silent) -> None:
        """Embed every chunk, in windows that the model can read; texts embedded before come from the cache. Raises
        ModelError where the embedder cannot be loaded, and SettingsError where the cache folder cannot be written."""
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
        """Return the vectors of the chunks in these rows, and where those of each begin."""
        self.embed()
        assert self._vectors is not None
        assert self._firsts is not None
        begins, ends = self._firsts[rows], self._firsts[rows + 1]
        starts = np.cumsum(ends - begins) - (ends - begins)
        if (begins[1:] == ends[:-1]).all():  # in one piece, which need not be copied
            return self._vectors[begins[0]:ends[-1]], starts
        places = np.arange((ends - begins).sum()) + np.repeat(begins - starts, ends - begins)
        return self._vectors[places], starts

    def known(self, chunk: Chunk) -> Matrix | None:
        """Return the vectors of one chunk; None where it is none of the pool."""
        return self.windows(np.array([self._rows[chunk.id]]))[0] if chunk.id in self._rows else None

    def _row(self, chunk: Chunk) -> int:
        if chunk.id not in self._rows:
            self._rows[chunk.id] = len(self.chunks)
            self.chunks.append(chunk)
        return self._rows[chunk.id]


@dataclass(frozen=True)
class Scope:
    """Some chunks of a pool, as a collection. Every window of them is compared: the search is exact."""

    pool: Pool
    rows: Sequence[int]
    among: None = field(default=None, init=False)

    @cached_property
    def chunks(self) -> list[Chunk]:
        return [self.pool.chunks[row] for row in self.rows]

    @property
    def content(self) -> str:
        """A hash of the chunks in their order, and of the embedder."""
        return digest(self.embedder.identity, *(chunk.id for chunk in self.chunks))

    @property
    def text_hash(self) -> str:
        """A hash of the chunks in their order."""
        return digest(*(chunk.id for chunk in self.chunks))

    @property
    def embedder(self) -> CachedEmbedder:
        return self.pool.embedder

    def texts(self) -> Iterator[str]:
        return (chunk.content for chunk in self.chunks)

    def document(self, id: str) -> Document:
        return self.pool.documents[id]

    def metadata(self) -> Iterator[Mapping[str, FieldValue]]:
        """Give of each chunk its document, format and first page, and, where it is known, its source and title."""
        for chunk in self.chunks:
            known = self.pool.documents.get(chunk.document)
            yield {"document": chunk.document, "source": known.source if known else chunk.document,
                   "title": known.title if known else None, "format": chunk.format,
                   "page": chunk.pages[0] if chunk.pages else None}

    def nearest(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
        """Return for each unit vector at most `k` rows of the scope with the cosine of their nearest window."""
        rows = np.arange(len(self.rows)) if among is None else np.flatnonzero(among)
        if not len(rows) or k < 1:
            return [[] for _ in queries]
        vectors, starts = self._windows if among is None else self.pool.windows(np.asarray(self.rows)[rows])
        found = []
        for query in queries:  # one by one: the product of two matrices may differ in the last digits, and ties
            cosines = np.maximum.reduceat(vectors @ query, starts).round(DECIMALS)
            best = np.argsort(-cosines, kind="stable")[:k]
            found.append(list(zip(rows[best].tolist(), cosines[best].tolist(), strict=True)))
        return found

    def vectors(self, chunks: Sequence[Chunk]) -> tuple[Matrix, NDArray[np.intp]]:
        return windows_of(chunks, self.pool.known, lambda document: "", lambda: self.embedder)

    @cached_property
    def _windows(self) -> tuple[Matrix, NDArray[np.intp]]:
        return self.pool.windows(np.asarray(self.rows))


_OPEN = 512  # retrievers kept open: a benchmark has a scope for each question, and asks each more than once


@dataclass(frozen=True, slots=True)
class RetrieverChoice:
    """A kind of retriever, and among which chunks it looks."""

    kind: RetrieverKind
    where: tuple[str, ...] = ()  # conditions on chunks, decided before a search
    deps: Callable[[], RerankerDeps] = RerankerDeps  # what opening it may need, asked for when it is opened

    def open(self, collection: Collection) -> Retriever:
        """Return the retriever over what of the collection meets the conditions. Raises UserError where a model, a
        package or a field is not to be had."""
        return self.kind.open(narrowed(collection, self.where), self.deps())

    def identity(self) -> str:
        """Tells ways of finding apart that find otherwise in equal collections."""
        where = " and ".join(self.where)
        return f"{self.kind.identity()} where {where}" if where else self.kind.identity()


@dataclass(frozen=True)
class WholeSearch:
    """One retriever over a collection. It is opened once, however many threads search first."""

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
    """One retriever over each scope of a pool: what it finds depends on the scope alone."""

    def __init__(self, pool: Pool, how: RetrieverChoice) -> None:
        self.pool = pool
        self._how = how
        self._open: OrderedDict[str, Retriever] = OrderedDict()
        self._lock = threading.Lock()

    def search(self, queries: Sequence[Within], k: int) -> list[list[Hit]]:
        if self._how.kind.embeds:  # together, which is faster than scope by scope, and kept from then on
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
                if len(self._open) > _OPEN:
                    self._open.popitem(last=False)
            self._open.move_to_end(scope)
            return self._open[scope]
