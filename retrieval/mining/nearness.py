"""How near given chunks are to a query: the cosine of the nearest window of each."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from retrieval.hits import DECIMALS
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
        return [self._cosines(vector, wanted) for vector, wanted in zip(vectors, rows, strict=True)]

    def _cosines(self, query: Matrix, rows: Sequence[int]) -> list[float]:
        import numpy as np

        if not rows:
            return []
        vectors, firsts = self._collection.vectors([self._collection.chunks[row] for row in rows])
        cosines: list[float] = np.maximum.reduceat(vectors @ query, firsts).round(DECIMALS).tolist()
        return cosines
