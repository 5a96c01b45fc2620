"""Evidence conditions: what stands in for retrieval, knowing nothing of gold."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from documents.types import Chunk
from retrieval.types import Hit, Retriever

Condition = Literal["closed-book", "given", "evidence", "retrieved"]


@dataclass(frozen=True, slots=True)
class Placed:
    """Chunks that were placed beforehand: every search returns all of them, in their order, and adds none.

    Their scores are 0: nothing was compared.
    """

    chunks: tuple[Chunk, ...]
    found_by: str

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The same chunks for each query, whatever `k` is."""
        return [[Hit(chunk, 0.0, rank, self.found_by) for rank, chunk in enumerate(self.chunks, 1)] for _ in queries]


def under(condition: Condition, placed: Sequence[Chunk], retriever: Retriever) -> Retriever:
    """What answers a `Search` under a condition.

    Args:
        placed: the question's chunks, which the caller chose: the benchmark's own (`given`) or some of them
            (`evidence`); not looked at under the other two.
        retriever: what searches under `retrieved`.
    """
    if condition == "retrieved":
        return retriever
    return Placed(() if condition == "closed-book" else tuple(placed), condition)
