"""Pool: chunks that are searched among some of them at a time, without an index folder."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from documents.types import Chunk, digest
from retrieval.build import Progress, embed_texts, silent
from retrieval.cache import CachedEmbedder
from retrieval.types import Hit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from retrieval.embedder import Matrix

_DECIMALS = 6  # of a cosine: what differs by less is a tie, which the number of threads must not decide


def content_of(embedder: str, chunks: Iterable[str]) -> str:
    """A hash of the chunks of a pool, by their ids, and of the embedder, by its identity."""
    return digest(embedder, *sorted(chunks))


class Within(NamedTuple):
    """A query among the chunks of one scope."""

    scope: str
    query: str


class Pool:
    """Chunks, embedded once, and named scopes of them. Every window of a scope is compared: the search is exact.

    Args:
        scopes: the chunks of each, by its name; one that stands in several is embedded once.
        embedder: its vectors are kept on disk, so that no text is embedded twice.
    """

    def __init__(self, scopes: Mapping[str, Iterable[Chunk]], embedder: CachedEmbedder) -> None:
        self._embedder = embedder
        self._rows: dict[str, int] = {}
        self.chunks: list[Chunk] = []
        self._scopes = {name: list(dict.fromkeys(map(self._row, chunks))) for name, chunks in scopes.items()}
        self._vectors: Matrix | None = None
        self._firsts: NDArray[np.intp] | None = None

    @property
    def content(self) -> str:
        """A hash of what can be found, and by which embedder."""
        return content_of(self._embedder.identity, self._rows)

    def embed(self, progress: Progress = silent) -> None:
        """Embed every chunk, in windows that the model can read; texts embedded before come from the cache.

        Raises:
            ModelError: the embedder cannot be loaded.
            SettingsError: the cache folder cannot be written.
        """
        import numpy as np

        contents = [chunk.content for chunk in self.chunks]
        spans = self._embedder.windows(contents)
        texts = [content[start:end] for content, windows in zip(contents, spans, strict=True)
                 for start, end in windows]
        self._firsts = np.cumsum([0, *map(len, spans)])
        self._vectors = embed_texts(texts, self._embedder, progress)

    def search(self, queries: Sequence[Within], k: int) -> list[list[Hit]]:
        """At most `k` chunks of its scope for each query, best first, then in the scope's order.

        The score is the cosine of the nearest window. `embed` goes before.
        """
        vectors = self._embedder.embed_queries([one.query for one in queries])
        return [self._nearest(vector, self._scopes[one.scope], k)
                for one, vector in zip(queries, vectors, strict=True)]

    def _row(self, chunk: Chunk) -> int:
        if chunk.id not in self._rows:
            self._rows[chunk.id] = len(self.chunks)
            self.chunks.append(chunk)
        return self._rows[chunk.id]

    def _nearest(self, query: Matrix, rows: Sequence[int], k: int) -> list[Hit]:
        import numpy as np

        if not rows:
            return []
        vectors, starts = self._windows(np.asarray(rows))
        best = np.maximum.reduceat(vectors @ query, starts).round(_DECIMALS)
        order = np.argsort(-best, kind="stable")[:k].tolist()
        return [Hit(self.chunks[rows[place]], float(best[place]), rank, "dense") for rank, place in enumerate(order, 1)]

    def _windows(self, rows: NDArray[np.intp]) -> tuple[Matrix, NDArray[np.intp]]:
        """The vectors of the chunks in these rows, and where those of each begin."""
        import numpy as np

        assert self._vectors is not None
        assert self._firsts is not None
        begins, ends = self._firsts[rows], self._firsts[rows + 1]
        starts = np.cumsum(ends - begins) - (ends - begins)
        if (begins[1:] == ends[:-1]).all():  # in one piece, which need not be copied
            return self._vectors[begins[0]:ends[-1]], starts
        places = np.arange((ends - begins).sum()) + np.repeat(begins - starts, ends - begins)
        return self._vectors[places], starts
