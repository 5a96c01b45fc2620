"""Dense retrieval: the chunks whose vectors are nearest to the query's."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from retrieval.retrievers.base import Kind
from retrieval.types import Aids, Collection, Hit


class Dense(Kind):
    """Cosine of the query's vector and that of a chunk's nearest window."""

    kind: Literal["dense"] = "dense"

    def open(self, collection: Collection, aids: Aids) -> DenseRetriever:
        return DenseRetriever(collection)

    def identity(self) -> str:
        return "dense"


@dataclass(frozen=True, slots=True)
class DenseRetriever:
    """Dense retrieval over a collection."""

    collection: Collection

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Raises ModelError where the embedder is not on this machine."""
        if not queries:
            return []
        chunks = self.collection.chunks
        found = self.collection.nearest(self.collection.embedder.embed_queries(queries), k)
        return [[Hit(chunks[row], score, rank, "dense") for rank, (row, score) in enumerate(best, 1)]
                for best in found]
