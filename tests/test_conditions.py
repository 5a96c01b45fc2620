"""What a search returns where the evidence was placed beforehand."""
from __future__ import annotations

from documents.types import Chunk
from retrieval.conditions import Placed
from retrieval.types import Hit

A, B = (Chunk(name, "document", "plain", 0, 1, name) for name in "ab")


def test_placed_chunks_are_returned_whole_in_their_order_and_none_is_added() -> None:
    hits = Placed((B, A), "given").search(["one", "two"], k=1)
    assert hits == [[Hit(B, 0.0, 1, "given"), Hit(A, 0.0, 2, "given")]] * 2


def test_a_closed_book_finds_nothing() -> None:
    assert Placed((), "closed-book").search(["one", "two"], k=5) == [[], []]
