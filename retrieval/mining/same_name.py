"""Chunks that share a name with a query but state other numbers: another year, another amount."""
from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from math import log

from retrieval.hits import DECIMALS
from retrieval.mining.names import names_of, numbers_of, subject_of
from retrieval.mining.rows import Rows
from retrieval.mining.types import Asked
from retrieval.types import Hit

_COMMON = 0.02
"""A name in a larger share of the chunks ties nothing together, unless it stands in fewer than `_FEW`."""
_FEW = 50


class SameName:
    """Chunks that hold a name of the query, or what a chunk of `around` is about, and a number that none of these has.

    A chunk that holds all the query's own numbers, where it has any, speaks of the same year or amount, and is none.
    The score is the sum of log(1 + chunks / chunks with that name) over the shared names.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def mine(self, asked: Sequence[Asked], k: int) -> list[list[Hit]]:
        """As the protocol says."""
        return [self._mined(one, k) for one in asked]

    def _mined(self, one: Asked, k: int) -> list[Hit]:
        count = len(self._rows.collection.chunks)
        scores: dict[int, float] = defaultdict(float)
        subjects = {name for chunk in one.around if (name := subject_of(chunk.content))}
        for name in sorted(names_of(one.query) | subjects):
            holders = self._holders.get(name, ())
            for row in holders:
                scores[row] += log(1 + count / len(holders))
        for row in self._rows.of_ids(one.leave_out):
            scores.pop(row, None)
        rounded = [(round(score, DECIMALS), row) for row, score in scores.items()]
        ranked = sorted(rounded, key=lambda each: (-each[0], each[1]))
        return self._with_other_numbers(one, ranked, k)

    def _with_other_numbers(self, one: Asked, ranked: Sequence[tuple[float, int]], k: int) -> list[Hit]:
        asked = numbers_of(one.query)
        known = asked.union(*(numbers_of(chunk.content) for chunk in one.around))
        hits: list[Hit] = []
        for score, row in ranked:
            if len(hits) == k:
                break
            chunk = self._rows.collection.chunks[row]
            stated = numbers_of(chunk.content)
            if stated - known and not (asked and asked <= stated):
                hits.append(Hit(chunk, score, len(hits) + 1, "entity"))
        return hits

    @cached_property
    def _holders(self) -> dict[str, array[int]]:
        """The rows of the chunks that hold each name that is not common, four bytes each."""
        found: dict[str, array[int]] = defaultdict(lambda: array("I"))
        for row, chunk in enumerate(self._rows.collection.chunks):
            for name in names_of(chunk.content):
                found[name].append(row)
        most = max(_FEW, _COMMON * len(self._rows.collection.chunks))
        return {name: rows for name, rows in found.items() if len(rows) <= most}
