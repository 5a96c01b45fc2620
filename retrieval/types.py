"""Hit and Retriever: what a search returns, and the one method that every retriever has."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from documents.types import Chunk


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that a search found.

    Attributes:
        score: higher is better; its scale is the retriever's.
        rank: from 1.
        found_by: the retriever's name, such as `dense`.
    """

    chunk: Chunk
    score: float
    rank: int
    found_by: str


class Retriever(Protocol):
    """Finds chunks for queries."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits for each query, best first, one list per query in their order."""
        ...
