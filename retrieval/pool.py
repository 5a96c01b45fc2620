"""Pool: chunks that are searched among some of them at a time, without an index folder."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from documents.types import Chunk, Document, digest
from retrieval.building.progress import Progress, silent
from retrieval.dense import windows_of
from retrieval.hits import DECIMALS
from retrieval.storage.cache import CachedEmbedder
from retrieval.types import Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from retrieval.embedder import Matrix


def content_of(embedder: str, chunks: Iterable[str]) -> str:
    """A hash of the chunks of a pool, by their ids, and of the embedder, by its identity."""
    return digest(embedder, *sorted(chunks))


class Within(NamedTuple):
    """A query among the chunks of one scope."""

    scope: str
    query: str


class Pool:
    """Chunks, embedded once when a vector is first asked for, and named scopes of them.

    Args:
        scopes: the chunks of each, by its name; one that stands in several is embedded once.
        embedder: its vectors are kept on disk, so that no text is embedded twice.
        documents: those of the chunks, by id, as far as they are known.
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
        """A hash of what can be found, and by which embedder."""
        return content_of(self.embedder.identity, self._rows)

    def scope(self, name: str) -> Scope:
        """The chunks of that name, as what a retriever is opened over."""
        return Scope(self, self._scopes[name])

    def embed(self, progress: Progress = silent) -> None:
        """Embed every chunk, in windows that the model can read; texts embedded before come from the cache.

        Raises:
            ModelError: the embedder cannot be loaded.
            SettingsError: the cache folder cannot be written.
        """
        import numpy as np

        if self._vectors is not None:
            return
        contents = [chunk.content for chunk in self.chunks]
        spans = self.embedder.windows(contents)
        texts = [content[start:end] for content, windows in zip(contents, spans, strict=True)
                 for start, end in windows]
        self._firsts = np.cumsum([0, *map(len, spans)])
        self._vectors = _embedded(texts, self.embedder, progress)

    def windows(self, rows: NDArray[np.intp]) -> tuple[Matrix, NDArray[np.intp]]:
        """The vectors of the chunks in these rows, and where those of each begin."""
        import numpy as np

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
        """The vectors of one chunk; None where it is none of the pool."""
        import numpy as np

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
        """In the order of the scope."""
        return [self.pool.chunks[row] for row in self.rows]

    @property
    def content(self) -> str:
        """A hash of the chunks in their order, and of the embedder."""
        return digest(self.embedder.identity, *(chunk.id for chunk in self.chunks))

    @property
    def wording(self) -> str:
        """A hash of the chunks in their order."""
        return digest(*(chunk.id for chunk in self.chunks))

    @property
    def embedder(self) -> CachedEmbedder:
        """The pool's."""
        return self.pool.embedder

    def texts(self) -> Iterator[str]:
        """The content of each chunk."""
        return (chunk.content for chunk in self.chunks)

    def document(self, id: str) -> Document:
        """The document of that id; KeyError where the pool was not told of it."""
        return self.pool.documents[id]

    def metadata(self) -> Iterator[Mapping[str, Value]]:
        """Of each chunk: its document, format and first page, and, where it is known, its source and title."""
        for chunk in self.chunks:
            known = self.pool.documents.get(chunk.document)
            yield {"document": chunk.document, "source": known.source if known else chunk.document,
                   "title": known.title if known else None, "format": chunk.format,
                   "page": chunk.pages[0] if chunk.pages else None}

    def nearest(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
        """For each unit vector at most `k` rows of the scope with the cosine of their nearest window, best first."""
        import numpy as np

        rows = np.arange(len(self.rows)) if among is None else np.flatnonzero(among)
        if not len(rows) or k < 1:
            return [[] for _ in queries]
        vectors, starts = self._windows if among is None else self.pool.windows(np.asarray(self.rows)[rows])
        return [[(int(rows[place]), cosine) for place, cosine in _best(query, vectors, starts, k)]
                for query in queries]  # one by one: the product of two matrices may differ in the last digits, and ties

    def vectors(self, chunks: Sequence[Chunk]) -> tuple[Matrix, NDArray[np.intp]]:
        """As the protocol says."""
        return windows_of(chunks, self.pool.known, lambda document: "", lambda: self.embedder)

    @cached_property
    def _windows(self) -> tuple[Matrix, NDArray[np.intp]]:
        import numpy as np

        return self.pool.windows(np.asarray(self.rows))


def _embedded(texts: Sequence[str], embedder: CachedEmbedder, progress: Progress) -> Matrix:
    """Unit vectors of passages, float32 of shape (texts, dimension), telling of the stage `embed`."""
    total, done = len(set(texts)), 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        progress("embed", done, total)

    return embedder.embed_passages(texts, advance)


def _best(query: Matrix, vectors: Matrix, starts: NDArray[np.intp], k: int) -> Iterator[tuple[int, float]]:
    import numpy as np

    best = np.maximum.reduceat(vectors @ query, starts).round(DECIMALS)
    order = np.argsort(-best, kind="stable")[:k].tolist()
    return zip(order, best[order].tolist(), strict=True)
