"""What a search returns under each evidence condition."""
from __future__ import annotations

from collections.abc import Sequence

from documents.types import Chunk
from retrieval.conditions import under
from retrieval.types import Hit

A, B, C = (Chunk(name, "document", "plain", 0, 1, name) for name in "abc")


class Finds:
    """Finds C, whatever is asked."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [[Hit(C, 0.5, 1, "dense")] for _ in queries]


def test_placed_chunks_are_returned_whole_in_their_order_and_none_is_added() -> None:
    for condition in ("given", "evidence"):
        hits = under(condition, [B, A], Finds()).search(["one", "two"], k=1)
        assert hits == [[Hit(B, 0.0, 1, condition), Hit(A, 0.0, 2, condition)]] * 2


def test_closed_book_finds_nothing() -> None:
    assert under("closed-book", [A, B], Finds()).search(["one", "two"], k=5) == [[], []]


def test_retrieved_searches() -> None:
    assert under("retrieved", [A, B], Finds()).search(["one"], k=5) == [[Hit(C, 0.5, 1, "dense")]]
