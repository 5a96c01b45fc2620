"""Evidence conditions: what stands in for retrieval, knowing nothing of gold."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from documents.types import Chunk
from retrieval.types import Hit

Condition = Literal["closed-book", "given", "gold", "retrieved", "full"]


@dataclass(frozen=True, slots=True)
class Placed:
    """Chunks that were placed beforehand: every search returns all of them, in their order, and adds none.

    The retriever of `given`, `gold` and `full`, whose chunks the caller chose, and, with no chunks, of
    `closed-book`; under `retrieved` an index searches. Scores are 0: nothing was compared.
    """

    chunks: tuple[Chunk, ...]
    found_by: str

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The same chunks for each query, whatever `k` is."""
        return [[Hit(chunk, 0.0, rank, self.found_by) for rank, chunk in enumerate(self.chunks, 1)] for _ in queries]
