"""Searches of many questions share the retriever."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from agents.search import Searcher
from documents.types import Chunk
from retrieval.types import Hit
from strategies.types import Search

OSLO = Chunk("c1", "oslo", "plain", 0, 30, "Oslo is the capital of Norway.")


class Pages:
    """A retriever that keeps count."""

    def __init__(self) -> None:
        self.batches: list[tuple[tuple[str, ...], int]] = []

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.batches.append((tuple(queries), k))
        time.sleep(0.05)
        return [[Hit(OSLO, 1.0, 1, "toy")] for _ in queries]


async def test_searches_of_many_questions_go_together_and_equal_ones_once():
    pages = Pages()
    searcher = Searcher(pages, 5)
    queries = ["a", "b", "c", "a", "b", "d"] * 20
    found = await asyncio.gather(*(searcher(Search(query)) for query in queries))
    assert found == [[OSLO]] * 120
    await searcher(Search("a"))
    await searcher(Search("a", k=2))
    searcher.close()
    asked = [query for queries, k in pages.batches if k == 5 for query in queries]
    assert sorted(asked) == ["a", "b", "c", "d"]
    assert len(pages.batches) <= 3
