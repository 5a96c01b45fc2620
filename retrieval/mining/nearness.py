"""How near given chunks are to a query: the cosine of the nearest window of each."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from documents.types import Chunk
from retrieval.types import Collection

if TYPE_CHECKING:
    from retrieval.embedder import Matrix


class Nearness:
    """Cosines of queries with chunks of a collection."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def of(self, queries: Sequence[str], rows: Sequence[Sequence[int]]) -> list[list[float]]:
        """For each query the cosine with each of its rows, in their order.

        Raises:
            ModelError: the embedder is not on this machine.
        """
        if not any(rows):
            return [[] for _ in rows]
        vectors = self._collection.embedder.embed_queries(queries)
        return [self._cosines(vector[None], wanted) for vector, wanted in zip(vectors, rows, strict=True)]

    def _cosines(self, query: Matrix, rows: Sequence[int]) -> list[float]:
        import numpy as np

        if not rows:
            return []
        among = np.zeros(len(self._collection.chunks), np.bool_)
        among[list(rows)] = True
        found = dict(self._collection.nearest(query, len(rows), among)[0])
        missed = [row for row in rows if row not in found]  # an approximate index may not reach every row
        found |= zip(missed, self._embedded(query, [self._collection.chunks[row] for row in missed]), strict=True)
        return [found[row] for row in rows]

    def _embedded(self, query: Matrix, chunks: Sequence[Chunk]) -> list[float]:
        embedder = self._collection.embedder
        best = []
        for chunk, spans in zip(chunks, embedder.windows([chunk.content for chunk in chunks]), strict=True):
            windows = embedder.embed_passages([chunk.content[start:end] for start, end in spans])
            best.append(float((windows @ query[0]).max()))
        return best
