"""The rows of a collection by their chunks' ids, and scored rows as hits.

How near given chunks are to a query: the cosine of the nearest window of each.

Neighbours by a retriever of any kind: the nearest vectors, the words of BM25, or both fused.

Chunks drawn by chance: what is easy, since nothing ties it to the query.

Other chunks of the documents that a query is about, nearest first.
"""
from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from retrieval.hits import DECIMALS
from retrieval.mining.types import Asked
from retrieval.types import Collection, Hit, Retriever

if TYPE_CHECKING:
    from retrieval.embedder import Matrix

@dataclass(frozen=True)
class Rows:
    """What miners need of a collection beside its search; made once for all of them."""

    collection: Collection

    def rows_of(self, ids: Iterable[str]) -> list[int]:
        """The row of each of the chunks, all of which the collection holds."""
        return [self._by_id[id] for id in ids]

    def of_ids(self, ids: Iterable[str]) -> set[int]:
        """The rows of those of the chunks that the collection holds."""
        return {self._by_id[id] for id in ids if id in self._by_id}

    def hits(self, scored: Iterable[tuple[int, float]], k: int, name: str) -> list[Hit]:
        """The `k` rows of the highest score as hits, equal ones by row."""
        best = sorted(scored, key=lambda one: (-one[1], one[0]))[:k]
        return [Hit(self.collection.chunks[row], score, rank, name) for rank, (row, score) in enumerate(best, 1)]

    @cached_property
    def _by_id(self) -> dict[str, int]:
        return {chunk.id: row for row, chunk in enumerate(self.collection.chunks)}


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


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What a retriever finds for the query."""

    name: str
    retriever: Retriever

    def mine(self, asked: Sequence[Asked], k: int) -> list[list[Hit]]:
        """As the protocol says. Queries are searched together where they leave out about as many chunks.

        What is left out may come first, so a query is searched for that many more. Counts of as many binary digits
        stand together and are searched for the greatest of them, 2^digits - 1: less than twice what any of them needs,
        and a handful of searches whatever the counts are.
        """
        places: dict[int, list[int]] = defaultdict(list)
        for place, one in enumerate(asked):
            places[len(one.leave_out).bit_length()].append(place)
        found: dict[int, list[Hit]] = {}
        for digits, at in places.items():
            searched = self.retriever.search([asked[place].query for place in at], k + 2**digits - 1)
            found |= {place: self._left(asked[place], hits, k) for place, hits in zip(at, searched, strict=True)}
        return [found[place] for place in range(len(asked))]

    def _left(self, one: Asked, hits: Sequence[Hit], k: int) -> list[Hit]:
        left = [hit for hit in hits if hit.chunk.id not in one.leave_out][:k]
        return [replace(hit, rank=rank, found_by=self.name) for rank, hit in enumerate(left, 1)]


DRAWN = "random"  # what the miner is called
T = TypeVar("T")


class Drawn:
    """Chunks in an order drawn for each query; their score says nothing and is 0."""

    def __init__(self, rows: Rows, seed: int) -> None:
        self._rows, self._seed = rows, seed

    def mine(self, asked: Sequence[Asked], k: int) -> list[list[Hit]]:
        """As the protocol says."""
        return [self._mined(one, k) for one in asked]

    def _mined(self, one: Asked, k: int) -> list[Hit]:
        chunks = self._rows.collection.chunks
        order = drawn(range(len(chunks)), random.Random(f"{self._seed}:{one.key}:drawn"))
        left_out = self._rows.of_ids(one.leave_out)
        rows = islice((row for row in order if row not in left_out), k)
        return [Hit(chunks[row], 0.0, rank, DRAWN) for rank, row in enumerate(rows, 1)]


def drawn(items: Sequence[T], rng: random.Random) -> Iterator[T]:
    """All items in an order drawn as it is needed (Fisher and Yates): of many only some are looked at."""
    moved: dict[int, int] = {}
    for at in range(len(items)):
        other = rng.randrange(at, len(items))
        yield items[moved.get(other, other)]
        moved[other] = moved.get(at, at)


class SameDocument:
    """Chunks of the documents of `around`, by the cosine of their nearest window with the query."""

    def __init__(self, rows: Rows, nearness: Nearness) -> None:
        self._rows, self._nearness = rows, nearness

    def mine(self, asked: Sequence[Asked], k: int) -> list[list[Hit]]:
        """As the protocol says; ModelError where the embedder is not on this machine."""
        others = [self._others(one) for one in asked]
        cosines = self._nearness.of([one.query for one in asked], others)
        return [self._rows.hits(zip(rows, near, strict=True), k, "same_document")
                for rows, near in zip(others, cosines, strict=True)]

    def _others(self, one: Asked) -> list[int]:
        documents = dict.fromkeys(chunk.document for chunk in one.around)
        left_out = self._rows.of_ids(one.leave_out)
        return [row for document in documents for row in self._by_document.get(document, ()) if row not in left_out]

    @cached_property
    def _by_document(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for row, chunk in enumerate(self._rows.collection.chunks):
            found.setdefault(chunk.document, []).append(row)
        return found
