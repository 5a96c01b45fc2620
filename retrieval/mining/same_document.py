"""Other chunks of the documents that a query is about, nearest first."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from retrieval.mining.nearness import Nearness
from retrieval.mining.rows import Rows
from retrieval.mining.types import Asked
from retrieval.types import Hit


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
