"""Neighbours by a retriever of any kind: the nearest vectors, the words of BM25, or both fused."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from retrieval.mining.types import Asked
from retrieval.types import Hit, Retriever


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
