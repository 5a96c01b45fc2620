"""Chunks drawn by chance: what is easy, since nothing ties it to the query."""
from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar

from retrieval.mining.rows import Rows
from retrieval.mining.types import Asked
from retrieval.types import Hit

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
