"""Searches as a question makes them: blocking retrievers off the event loop, equal searches once."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from agents.searches import Found, Request, Searches, miss
from documents.errors import CallError
from documents.types import Chunk
from retrieval.pool import Within
from retrieval.types import Hit, Retriever
from strategies.types import Search

SearchFunction = Callable[[Search], Awaitable[Sequence[Chunk]]]
Asked = TypeVar("Asked", bound=Hashable)
Query = TypeVar("Query", bound=Hashable, contravariant=True)


class Finder(Protocol[Query]):
    """What is searched: a `Retriever` where the queries are texts, a `Pool` where they name a scope too."""

    def search(self, queries: Sequence[Query], k: int) -> list[list[Hit]]: ...


def instant(retriever: Retriever) -> SearchFunction:
    """Searches a retriever that only hands out what was placed: no thread, nothing remembered."""

    async def search(action: Search) -> Sequence[Chunk]:
        return [hit.chunk for hit in retriever.search([action.query], action.k or 1)[0]]

    return search


@dataclass(frozen=True, slots=True)
class Kept(Generic[Asked]):
    """How the searches of one retriever are kept.

    Attributes:
        name: of what is searched, for the message of a miss.
        request: names a search by the content of what is searched.
    """

    searches: Searches
    name: str
    request: Callable[[Asked, int], Request]


@dataclass(slots=True)
class Took:
    """What the searches of a retriever took.

    Attributes:
        first: seconds of the first, which loads and builds what it needs; None before it.
        alone: queries of the first.
        queries: of those after it.
        seconds: of those after it.
    """

    first: float | None = None
    alone: int = 0
    queries: int = 0
    seconds: float = 0.0

    def add(self, queries: int, seconds: float) -> None:
        """A search took so long."""
        if self.first is None:
            self.first, self.alone = seconds, queries
        else:
            self.queries += queries
            self.seconds += seconds

    @property
    def rate(self) -> float | None:
        """Queries a second after the first search; where there was one search, in that."""
        queries, seconds = (self.queries, self.seconds) if self.queries else (self.alone, self.first)
        return queries / seconds if seconds else None


class Searcher(Generic[Asked]):
    """Searches one retriever for many questions and cells.

    Queries that arrive while a search is running are put to the retriever together, and a query
    asked before is not searched again.

    Args:
        retriever: None in a replay, which only gives what was kept.
        k: chunks per search where the action names no number.
        kept: where hits are looked for first, and kept; None keeps nothing.

    Attributes:
        took: what the searches took that the retriever was asked for.
    """

    def __init__(self, retriever: Finder[Asked] | None, k: int, kept: Kept[Asked] | None = None) -> None:
        self.retriever = retriever
        self.k = k
        self.took = Took()
        self._kept = kept
        self._asked: dict[tuple[Asked, int], asyncio.Task[list[Hit]]] = {}
        self._found: dict[tuple[Asked, int], list[Hit]] = {}
        self._waiting: list[Asked] = []
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "search")  # one: the embedder uses every core by itself

    async def hits(self, query: Asked, k: int) -> list[Hit]:
        """The hits of one query; raises what the retriever raises, and ReplayMiss where there is none."""
        key = (query, k)
        if key in self._found:
            return self._found[key]
        if key not in self._asked:
            if (known := self._look_up(query, k)) is not None:
                return self._found.setdefault(key, known)
            self._waiting.append(query)
            self._asked[key] = asyncio.create_task(self._search(query, k))
        return await asyncio.shield(self._asked[key])

    async def __call__(self: Searcher[str], search: Search) -> Sequence[Chunk]:
        return [hit.chunk for hit in await self.hits(search.query, search.k or self.k)]

    def within(self: Searcher[Within], scope: str) -> SearchFunction:
        """Searches of one scope of a pool."""

        async def search(action: Search) -> Sequence[Chunk]:
            return [hit.chunk for hit in await self.hits(Within(scope, action.query), action.k or self.k)]

        return search

    def _look_up(self, query: Asked, k: int) -> list[Hit] | None:
        """What was kept of the search; None where it has to be made."""
        request = self._kept.request(query, k) if self._kept else {}
        found = self._kept.searches.find(request) if self._kept else None
        if found is None and self.retriever is None:
            raise miss(request, self._kept.name if self._kept else "nothing")
        return None if found is None else list(found.hits)

    async def _search(self, query: Asked, k: int) -> list[Hit]:
        async with self._turn:
            if (query, k) not in self._found:
                batch, self._waiting = list(dict.fromkeys([query, *self._waiting])), []
                try:
                    found = await self._run(batch, k)
                except CallError:  # of a model that a retriever asks; whose query it was is not known
                    if len(batch) == 1:
                        raise
                    batch, found = [query], await self._run([query], k)
                for one, hits in zip(batch, found, strict=True):
                    self._found[one, k] = hits
                    if self._kept:
                        self._kept.searches.keep(self._kept.request(one, k), Found(hits))
            return self._found[query, k]

    async def _run(self, batch: Sequence[Asked], k: int) -> list[list[Hit]]:
        assert self.retriever is not None
        begun = time.perf_counter()
        found = await asyncio.get_running_loop().run_in_executor(self._thread, self.retriever.search, batch, k)
        self.took.add(len(batch), time.perf_counter() - begun)
        return found

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()
