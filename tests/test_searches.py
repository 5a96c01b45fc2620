"""Searches of many questions share the retriever."""
import asyncio
import time
from collections.abc import Sequence

import pytest

from agents import Database
from agents.search import SCHEMA, KeptSearches, Searcher, Searches
from documents import CallError, Chunk, ReplayMiss
from retrieval import Hit
from strategies import Search

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


class Failing(Pages):
    """A retriever that asks a model, which fails for one query."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        found = super().search(queries, k)
        if "broken" in queries:
            raise CallError("m: HTTP 500", "http_500")
        return found


async def test_a_call_that_fails_during_a_search_fails_the_question_that_asked_it_alone():
    pages = Failing()
    searcher = Searcher(pages, 5)
    found = await asyncio.gather(*(searcher(Search(query)) for query in ["a", "b", "broken", "c"]),
                                 return_exceptions=True)
    searcher.close()
    assert [found[0], found[1], found[3]] == [[OSLO]] * 3
    assert isinstance(found[2], CallError)


def kept(database: Database, mode: str = "record", of: str = "pages") -> KeptSearches[str]:
    searches = Searches(lambda document: f"{document}.md")
    searches.begin(database, mode)
    return KeptSearches(searches, "the index", lambda query, k: {"of": of, "query": query, "k": k})


async def test_what_was_found_is_given_again_without_a_retriever_and_nothing_else_is(tmp_path):
    database = Database(tmp_path / "d", SCHEMA)
    first = kept(database)
    searcher = Searcher(Pages(), 5, first)
    hits = await searcher.hits("a", 5)
    searcher.close()
    again = kept(database, "replay")
    replay = Searcher(None, 5, again)
    assert await replay.hits("a", 5) == hits
    assert again.searches.sources == {"oslo": "oslo.md"}
    for query, k in (("a", 4), ("b", 5)):
        with pytest.raises(ReplayMiss, match="the journal holds nothing that the index found for"):
            await replay.hits(query, k)
    replay.close()
    other = Searcher(None, 5, kept(database, "replay", of="other pages"))
    with pytest.raises(ReplayMiss):
        await other.hits("a", 5)
    other.close()
    database.close()


async def test_a_search_that_is_kept_is_not_made_again_but_in_mode_live(tmp_path):
    database = Database(tmp_path / "d", SCHEMA)
    for mode, searched in (("record", 1), ("record", 0), ("live", 1)):
        pages = Pages()
        searcher = Searcher(pages, 5, kept(database, mode))
        for _ in range(2):
            await searcher.hits("a", 5)
        searcher.close()
        assert len(pages.batches) == searched
    assert database.read("SELECT count(*) FROM searches") == [(1,)]
    database.close()
