"""Pools of chunks in memory, and searches over pools and indexes that open their retriever on first use."""
from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.types import Chunk, Document, FieldValue, digest
from ragbed.retrieval.building.chunked_documents import fitting_header
from ragbed.retrieval.filters.filtered_collection import filter_collection
from ragbed.retrieval.retrievers.dense import nearest_chunks, window_vectors
from ragbed.retrieval.storage.cache import CachedEmbedder, naming_source
from ragbed.retrieval.types import (
    DECIMALS,
    Collection,
    Hit,
    Matrix,
    Progress,
    RerankerDeps,
    Retriever,
    RetrieverKind,
    silent,
)
from ragbed.retrieval.vectors import BuiltVectors, VectorKind, VectorTask

_MAX_OPEN = 512  # retrievers to keep open; a benchmark has a scope per question, and several cells ask each question


def pool_content(embedder: str, chunks: Iterable[str]) -> str:
    """Return a hash of the ids of a pool's chunks and of the embedder's identity."""
    return digest(embedder, *sorted(chunks))


class ScopedQuery(NamedTuple):
    """A query that searches only the chunks of one scope."""

    scope: str
    query: str


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """How the chunks of a pool are embedded and searched.

    Attributes:
        vectors: the kind of vector index of each scope; None compares every window.
        titled: whether the name and title of its document are embedded and searched with each chunk.
    """

    vectors: VectorKind | None = None
    titled: bool = False

    def identity(self, embedder: str) -> str:
        """Return text that differs between pools of the same chunks whose hits may differ."""
        kind = self.vectors.model_dump_json() if self.vectors is not None else ""
        return " ".join(filter(None, (embedder, kind, "titled" if self.titled else "")))


class Pool:
    """Chunks in named scopes, which may overlap, such as the chunks of each question of a benchmark.

    Chunks are embedded when a vector is first needed.

    Args:
        scopes: the chunks of each scope, by its name.
        documents: known documents, by id.
        settings: how the chunks are embedded and searched.
        others: pools that may have embedded the same texts already, for another kind of vector index.

    Attributes:
        built: seconds and bytes of the vector index of each scope that was searched, by its name. The time of embedding
            is not included.
    """

    def __init__(self, scopes: Mapping[str, Iterable[Chunk]], embedder: CachedEmbedder,
                 documents: Mapping[str, Document] | None = None, settings: PoolSettings | None = None,
                 others: Iterable[Pool] = ()) -> None:
        self.embedder = embedder
        self.documents = documents or {}
        self.settings = settings or PoolSettings()
        self.built: dict[str, tuple[float, int]] = {}
        self._indexes: OrderedDict[str, BuiltVectors] = OrderedDict()
        self._headers: dict[str, str] = {}
        self._rows: dict[str, int] = {}
        self.chunks: list[Chunk] = []
        self._scopes = {name: list(dict.fromkeys(map(self._row, chunks))) for name, chunks in scopes.items()}
        self._vectors: Matrix | None = None
        self._twin = next((one for one in others if (one.embedder.identity, one.settings.titled, list(one._rows)) == (
            embedder.identity, self.settings.titled, list(self._rows))), None)
        self._firsts: NDArray[np.intp] | None = None

    @property
    def content(self) -> str:
        """Hash of the chunks, of the embedder's identity and of the settings."""
        return pool_content(self.identity, self._rows)

    @property
    def identity(self) -> str:
        """Text that differs between pools of the same chunks whose hits may differ."""
        return self.settings.identity(self.embedder.identity)

    def scope(self, name: str) -> Scope:
        """Return the chunks of a scope as a collection."""
        return Scope(self, self._scopes[name], name)

    @property
    def scopes(self) -> Sequence[str]:
        """Names of the scopes."""
        return list(self._scopes)

    def header(self, document: str) -> str:
        """Return the text in front of each chunk of a document: empty unless the pool is titled."""
        if not self.settings.titled:
            return ""
        if document not in self._headers:
            self._headers[document] = fitting_header(self.documents[document], self.embedder)
        return self._headers[document]

    @property
    def memory(self) -> int | None:
        """Bytes of the vectors that are searched, or of their indexes; None if nothing is embedded."""
        if self._vectors is None or self.settings.vectors is None:
            return None if self._vectors is None else self._vectors.nbytes
        return sum(size for _, size in self.built.values())

    def index(self, scope: str, vectors: Matrix) -> BuiltVectors:
        """Return the vector index of a scope, which is built when it is first needed. Raises SettingsError if the
        settings do not suit the vectors."""
        if scope not in self._indexes:
            assert self.settings.vectors is not None
            started = perf_counter()
            kind, why = self.settings.vectors.choose(*vectors.shape)
            task = VectorTask(vectors, why, Path(), self.embedder.identity, None, lambda more: None)
            self._indexes[scope] = kind.build(task)
            self.built.setdefault(scope, (perf_counter() - started, kind.size(*vectors.shape)))
            if len(self._indexes) > _MAX_OPEN:
                self._indexes.popitem(last=False)
        self._indexes.move_to_end(scope)
        return self._indexes[scope]

    def embed(self, progress: Progress = silent) -> None:
        """Embed the windows of every chunk. Vectors of texts that were embedded before come from the cache. Raises
        ModelError if the embedder cannot be loaded. Raises SettingsError if the cache folder cannot be written."""
        if self._vectors is not None:
            return
        if self._twin is not None:
            self._twin.embed(progress)
            self._firsts, self._vectors = self._twin._firsts, self._twin._vectors
            return
        headed = [(self.header(chunk.document), chunk.content) for chunk in self.chunks]
        spans = [windows for header, part in groupby(headed, key=lambda one: one[0])
                 for windows in self.embedder.windows([content for _, content in part], header)]
        texts = [header + content[start:end] for (header, content), windows in zip(headed, spans, strict=True)
                 for start, end in windows]
        total, done = len(set(texts)), 0

        def advance(more: int) -> None:
            nonlocal done
            done += more
            progress("embed", done, total)

        self._firsts = np.cumsum([0, *map(len, spans)])
        sources = (chunk.document for chunk, windows in zip(self.chunks, spans, strict=True) for _ in windows)
        with naming_source(zip(sources, texts, strict=True)):
            self._vectors = self.embedder.embed_passages(texts, advance)

    def windows(self, rows: NDArray[np.intp]) -> tuple[Matrix, NDArray[np.intp]]:
        """Return the window vectors of the chunks in these rows, and the position of each chunk's first vector."""
        self.embed()
        assert self._vectors is not None
        assert self._firsts is not None
        begins, ends = self._firsts[rows], self._firsts[rows + 1]
        starts = np.cumsum(ends - begins) - (ends - begins)
        if (begins[1:] == ends[:-1]).all():  # contiguous rows need no copy
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
    """The chunks of one scope of a pool, as a collection. By default search is exact, because it compares every window.
    """

    pool: Pool
    rows: Sequence[int]
    name: str = ""
    among: None = field(default=None, init=False)

    @cached_property
    def chunks(self) -> list[Chunk]:
        return [self.pool.chunks[row] for row in self.rows]

    @property
    def content(self) -> str:
        """Hash of the chunks in order, the embedder and the settings."""
        return digest(self.pool.identity, *(chunk.id for chunk in self.chunks))

    @property
    def text_hash(self) -> str:
        """Hash of the chunks in order and of their headers."""
        return digest(*(["titled"] if self.pool.settings.titled else []), *(chunk.id for chunk in self.chunks))

    @property
    def embedder(self) -> CachedEmbedder:
        return self.pool.embedder

    def texts(self) -> Iterator[str]:
        return (self.pool.header(chunk.document) + chunk.content for chunk in self.chunks)

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
        if self.pool.settings.vectors is not None and len(self.rows):
            index = self.pool.index(self.name, self._windows[0])
            return nearest_chunks(index, self._owners, queries, k, among)
        rows = np.arange(len(self.rows)) if among is None else np.flatnonzero(among)
        if not len(rows) or k < 1:
            return [[] for _ in queries]
        vectors, starts = self._windows if among is None else self.pool.windows(np.asarray(self.rows)[rows])
        found = []
        for query in queries:  # not a product of matrices, whose last digits may differ and break ties
            cosines = np.maximum.reduceat(vectors @ query, starts).round(DECIMALS)
            best = np.argsort(-cosines, kind="stable")[:k]
            found.append(list(zip(rows[best].tolist(), cosines[best].tolist(), strict=True)))
        return found

    def vectors(self, chunks: Sequence[Chunk]) -> tuple[Matrix, NDArray[np.intp]]:
        return window_vectors(chunks, self.pool.known, self.pool.header, lambda: self.embedder)

    @cached_property
    def _owners(self) -> NDArray[np.intp]:
        vectors, starts = self._windows
        return np.repeat(np.arange(len(starts)), np.diff([*starts, len(vectors)]))

    @cached_property
    def _windows(self) -> tuple[Matrix, NDArray[np.intp]]:
        return self.pool.windows(np.asarray(self.rows))


@dataclass(frozen=True, slots=True)
class RetrieverChoice:
    """A kind of retriever and a filter.

    Attributes:
        where: conditions on chunks, which restrict the search itself.
        deps: function that returns the dependencies for opening the retriever; called when it is opened.
    """

    kind: RetrieverKind
    where: tuple[str, ...] = ()
    deps: Callable[[], RerankerDeps] = RerankerDeps

    def open(self, collection: Collection) -> Retriever:
        """Open the retriever over chunks that meet the conditions. Raises UserError if a model or package is
        missing."""
        return self.kind.open(filter_collection(collection, self.where), self.deps())

    def identity(self) -> str:
        """Return text that differs between choices whose hits in the same collection may differ."""
        where = " and ".join(f"({one})" if " or " in one else one for one in self.where)
        return f"{self.kind.identity()} where {where}" if where else self.kind.identity()


@dataclass(frozen=True)
class WholeSearch:
    """Searches a collection with one retriever, which is opened at the first search."""

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
    """Searches each scope of a pool with its own retriever, so that hits depend only on the scope."""

    def __init__(self, pool: Pool, how: RetrieverChoice) -> None:
        self.pool = pool
        self._how = how
        self._open: OrderedDict[str, Retriever] = OrderedDict()
        self._lock = threading.Lock()

    def search(self, queries: Sequence[ScopedQuery], k: int) -> list[list[Hit]]:
        if self._how.kind.embeds:  # embedding all chunks at once is faster; the vectors are cached
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
