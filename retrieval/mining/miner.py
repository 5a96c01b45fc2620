"""Miner: what it is asked, its one method, and the rows of the collection that it looks among."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from ragbed.documents.types import Chunk
from ragbed.retrieval.types import Collection, Hit


@dataclass(frozen=True, slots=True)
class MiningQuery:
    """A query that chunks are mined for."""

    key: str  # tells queries apart, and seeds what is drawn
    query: str
    around: tuple[Chunk, ...] = ()  # chunks whose documents, names and numbers are looked at beside the query's own
    leave_out: frozenset[str] = frozenset()  # ids of chunks that are never found, for reasons of the caller's


class Miner(Protocol):
    """Finds chunks that are near to a query in its own way."""

    def mine(self, asked: Sequence[MiningQuery], k: int) -> list[list[Hit]]:
        """Return at most `k` hits for each query, best first, ranked among what is not left out; a larger `k` finds the
        same and more behind it."""
        ...


@dataclass(frozen=True)
class Rows:
    """The rows of a collection by their chunks' ids, made once for all miners."""

    collection: Collection

    def rows_of(self, ids: Iterable[str]) -> list[int]:
        """Return the row of each of the chunks, all of which the collection holds."""
        return [self._by_id[id] for id in ids]

    def of_ids(self, ids: Iterable[str]) -> set[int]:
        """Return the rows of those of the chunks that the collection holds."""
        return {self._by_id[id] for id in ids if id in self._by_id}

    def hits(self, scored: Iterable[tuple[int, float]], k: int, name: str) -> list[Hit]:
        """Return the `k` rows of the highest score as hits, equal ones by row."""
        best = sorted(scored, key=lambda one: (-one[1], one[0]))[:k]
        return [Hit(self.collection.chunks[row], score, rank, name) for rank, (row, score) in enumerate(best, 1)]

    @cached_property
    def _by_id(self) -> dict[str, int]:
        return {chunk.id: row for row, chunk in enumerate(self.collection.chunks)}
