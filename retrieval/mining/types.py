"""What miners are asked, and the one method of each."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from documents.types import Chunk
from retrieval.types import Hit


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that chunks are mined for.

    Attributes:
        key: tells queries apart, and seeds what is drawn.
        around: chunks whose documents, names and numbers are looked at beside the query's own.
        leave_out: ids of chunks that are never found, for reasons of the caller's.
    """

    key: str
    query: str
    around: tuple[Chunk, ...] = ()
    leave_out: frozenset[str] = frozenset()


class Miner(Protocol):
    """Finds chunks that are near to a query in its own way."""

    def mine(self, asked: Sequence[Asked], k: int) -> list[list[Hit]]:
        """At most `k` hits for each query, best first, ranked among what is not left out.

        A larger `k` finds the same and more behind it.
        """
        ...
