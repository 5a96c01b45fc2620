"""Searches as a question makes them, and as they are kept, so that a replay needs neither index nor embedder.

A retriever blocks, so it is searched off the event loop; equal searches are made once. What is kept of a search has the
hash of its request as key: plain JSON that names what is searched by its content, and all else that decides what is
found.
"""
from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from ragbed.agents.database import Database, row_hash
from ragbed.agents.journal import Mode
from ragbed.documents.errors import CallError, ReplayMiss
from ragbed.documents.types import Chunk
from ragbed.retrieval.pool import Within
from ragbed.retrieval.types import Hit
from ragbed.strategies.types import Search

SCHEMA = ("CREATE TABLE IF NOT EXISTS searches (key TEXT PRIMARY KEY, request TEXT NOT NULL, found TEXT NOT NULL,"
          " hash TEXT NOT NULL)",)
_SHOWN = 80  # characters of a request that was missed

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FoundHits:
    """Hits that came of a request, with notes, and the sources, by id, of the documents that only an index knows."""

    hits: Sequence[Hit]
    notes: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def placed(cls, chunks: Sequence[Chunk], by: str, notes: tuple[str, ...] = ()) -> FoundHits:
        """Make hits of chunks that were not compared with anything, in their order."""
        return cls([Hit(chunk, 0.0, rank, by) for rank, chunk in enumerate(chunks, 1)], notes)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return tuple(hit.chunk for hit in self.hits)


def store_search(database: Database, request: Request, found: str) -> None:
    """Keep what was found, as JSON, under the hash of its request."""
    row = request_key(request), request_json(request), found
    database.put("INSERT OR REPLACE INTO searches VALUES (?, ?, ?, ?)", (*row, row_hash(*row)))


def request_key(request: Request) -> str:
    """Return the SHA-256 over everything that decides what is found."""
    return hashlib.sha256(request_json(request).encode()).hexdigest()


def request_json(request: Request) -> str:
    """Return the request as it is kept."""
    return json.dumps(request, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


class SearchStore:
    """Reads and keeps what was found in a database's table `searches`; before `begin` it keeps nothing. `source_of`
    gives the source path of a document that an index knows, else its id."""

    def __init__(self, source_of: Callable[[str], str] | None = None) -> None:
        self.sources: dict[str, str] = {}
        self._source_of = source_of
        self._database: Database | None = None
        self._reads = False

    def begin(self, database: Database, mode: Mode) -> None:
        """Keep in this database, and read from it but in the mode `live`."""
        self._database, self._reads = database, mode != "live"

    def taken(self, request: Request, make: Callable[[], FoundHits] | None, name: str) -> FoundHits:
        """Return what is kept for a request, or make and keep it. Raises ReplayMiss if there is nothing to make it."""
        known = self.find(request)
        if known is None:
            if make is None:
                raise search_miss(request, name)
            known = make()
            self.keep(request, known)
        return known

    def find(self, request: Request) -> FoundHits | None:
        """Return what is kept for the request; None where nothing is."""
        if self._database is None or not self._reads:
            return None
        rows = self._database.read("SELECT * FROM searches WHERE key = ?", (request_key(request),))
        if not rows:
            return None
        *row, hash = rows[0]
        self._database.check(row_hash(*row) == hash, f"search {row[0][:12]}")
        fields = json.loads(row[2])
        self.sources.update(fields["sources"])
        return FoundHits([_hit(one, rank, self._database) for rank, one in enumerate(fields["hits"], 1)],
                        tuple(fields["notes"]), fields["sources"])

    def keep(self, request: Request, found: FoundHits) -> None:
        """Keep findings; they are durable with the record or call that is kept next."""
        if self._database is None:
            return
        sources = {hit.chunk.document: self._source_of(hit.chunk.document) for hit in found.hits} \
            if self._source_of else {}
        fields = {"hits": [_hit_fields(hit, self._database) for hit in found.hits], "notes": list(found.notes),
                  "sources": {document: source for document, source in sources.items() if source != document}}
        store_search(self._database, request, json.dumps(fields))


def search_miss(request: Request, name: str) -> ReplayMiss:
    """Make the error of a replay for which the journal does not hold what a request to search `name` found."""
    said = str(request.get("query") or request.get("question") or request.get("gold"))
    shown = said if len(said) <= _SHOWN else said[:_SHOWN] + "..."
    return ReplayMiss(f"the journal holds nothing that {name} found for {shown!r} ({request_key(request)[:12]})",
                      "replay_miss", 0)


def _hit_fields(hit: Hit, database: Database) -> dict[str, Any]:
    chunk = hit.chunk
    return {"id": chunk.id, "document": chunk.document, "format": chunk.format, "start": chunk.start,
            "end": chunk.end, "text": database.put_text(chunk.content),
            "prefix": database.put_text(chunk.prefix) if chunk.prefix else "",
            "pages": chunk.pages, "score": hit.score, "found_by": hit.found_by}


def _hit(one: Mapping[str, Any], rank: int, database: Database) -> Hit:
    pages = one["pages"]
    chunk = Chunk(one["id"], one["document"], one["format"], one["start"], one["end"], database.text(one["text"]),
                  database.text(one["prefix"]) if one["prefix"] else "", tuple(pages) if pages else None)
    return Hit(chunk, one["score"], rank, one["found_by"])


SearchFunction = Callable[[Search], Awaitable[Sequence[Chunk]]]
Asked = TypeVar("Asked", bound=Hashable)
Query = TypeVar("Query", bound=Hashable, contravariant=True)


class Searchable(Protocol[Query]):
    """A `Retriever` where the queries are texts, a `Pool` where they name a scope too."""

    def search(self, queries: Sequence[Query], k: int) -> list[list[Hit]]: ...


def fixed_chunks(chunks: Sequence[Chunk]) -> SearchFunction:
    """Return a function whose every search gives these chunks, which were placed: no thread, nothing remembered."""

    async def search(action: Search) -> Sequence[Chunk]:
        return chunks

    return search


@dataclass(frozen=True, slots=True)
class StoredRetriever(Generic[Asked]):
    """A place where the searches of one retriever are kept."""

    searches: SearchStore
    name: str  # of what is searched, for the message of a miss
    request: Callable[[Asked, int], Request]  # names a search by the content of what is searched


@dataclass(slots=True)
class SearchTimes:
    """Queries and seconds of a retriever's first search, which loads what it needs, and of those after it."""

    first: float | None = None
    alone: int = 0
    queries: int = 0
    seconds: float = 0.0

    def add(self, queries: int, seconds: float) -> None:
        """Count a search of so many queries and seconds."""
        if self.first is None:
            self.first, self.alone = seconds, queries
        else:
            self.queries += queries
            self.seconds += seconds

    @property
    def rate(self) -> float | None:
        """Return queries a second after the first search; where there was one search, in that."""
        queries, seconds = (self.queries, self.seconds) if self.queries else (self.alone, self.first)
        return queries / seconds if seconds else None


class Searcher(Generic[Asked]):
    """Searches one retriever for many questions and cells; what was asked before is not searched again, and queries
    that arrive while a search is running are put to the retriever together. A replay has no retriever, and only gives
    what was kept; hits are looked for there first, and kept there, unless nothing is. `k` chunks are found where the
    action names no number; `times` are what the searches took that the retriever was asked for. The latest `most` are
    remembered, all of them where it is None."""

    def __init__(self, retriever: Searchable[Asked] | None, k: int, kept: StoredRetriever[Asked] | None = None,
                 most: int | None = None) -> None:
        self.retriever, self.k, self.times = retriever, k, SearchTimes()
        self._kept, self._most = kept, most
        self._asked: dict[tuple[Asked, int], asyncio.Task[list[Hit]]] = {}  # those under way
        self._found: OrderedDict[tuple[Asked, int], list[Hit]] = OrderedDict()
        self._waiting: list[Asked] = []
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "search")  # one: the embedder uses every core by itself

    async def hits(self, query: Asked, k: int) -> list[Hit]:
        """Return the hits of one query; raises what the retriever raises, and ReplayMiss where there is none."""
        key = (query, k)
        if key in self._found:
            self._found.move_to_end(key)
            return self._found[key]
        if key not in self._asked:
            if self._kept:
                request = self._kept.request(query, k)
                if (found := self._kept.searches.find(request)) is not None:
                    return self._remember(query, k, list(found.hits))
                if self.retriever is None:
                    raise search_miss(request, self._kept.name)
            self._waiting.append(query)
            self._asked[key] = asyncio.create_task(self._search(query, k))
        return await asyncio.shield(self._asked[key])

    async def __call__(self: Searcher[str], search: Search) -> Sequence[Chunk]:
        return [hit.chunk for hit in await self.hits(search.query, search.k or self.k)]

    def within(self: Searcher[Within], scope: str) -> SearchFunction:
        """Return a function that searches one scope of a pool."""

        async def search(action: Search) -> Sequence[Chunk]:
            return [hit.chunk for hit in await self.hits(Within(scope, action.query), action.k or self.k)]

        return search

    async def _search(self, query: Asked, k: int) -> list[Hit]:
        try:
            async with self._turn:
                if (query, k) in self._found:
                    return self._found[query, k]
                batch, self._waiting = list(dict.fromkeys([query, *self._waiting])), []
                try:
                    found = await self._run(batch, k)
                except CallError:  # of a model that a retriever asks; whose query it was is not known
                    if len(batch) == 1:
                        raise
                    batch, found = [query], await self._run([query], k)
                for one, hits in zip(batch, found, strict=True):
                    self._remember(one, k, hits)
                    if self._kept:
                        self._kept.searches.keep(self._kept.request(one, k), FoundHits(hits))
                return found[0]
        finally:
            del self._asked[query, k]

    def _remember(self, query: Asked, k: int, hits: list[Hit]) -> list[Hit]:
        self._found[query, k] = hits
        if self._most is not None and len(self._found) > self._most:
            self._found.popitem(last=False)
        return hits

    async def _run(self, batch: Sequence[Asked], k: int) -> list[list[Hit]]:
        assert self.retriever is not None
        started = time.perf_counter()
        found = await asyncio.get_running_loop().run_in_executor(self._thread, self.retriever.search, batch, k)
        self.times.add(len(batch), time.perf_counter() - started)
        return found

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()
