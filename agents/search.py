"""Run the searches of questions, and store the results, so that a replay needs neither index nor embedder.

Retrievers run in a thread, because they block. Equal searches run once. A result is stored under the hash of its
request: JSON with everything that determines the result, including a hash of the index."""
from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any, Generic, Protocol, TypeVar

from ragbed.agents.database import Database, row_hash
from ragbed.agents.journal import Mode
from ragbed.documents.errors import CallError, ReplayMiss
from ragbed.documents.types import Chunk
from ragbed.retrieval.types import Hit
from ragbed.strategies.types import Search

SCHEMA = ("CREATE TABLE IF NOT EXISTS searches (key TEXT PRIMARY KEY, request TEXT NOT NULL, found TEXT NOT NULL,"
          " hash TEXT NOT NULL)",)
_dump = json.JSONEncoder().encode
_FIND = "SELECT * FROM searches WHERE key = ?"
_MAX_PARTS = 100_000  # chunks whose JSON is kept in memory
_MAX_SHOWN = 80  # maximum characters of a query in an error
_MAX_BATCH = 8_000  # maximum characters of several queries that are searched together

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FoundHits:
    """The hits of a search, with notes, and the source path of each document by its id. `parts` has the texts of a
    tool's result, and the places of its spans in `hits`, in reading order; None if a search found the hits."""

    hits: Sequence[Hit]
    notes: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[str | int] | None = None

    @classmethod
    def from_chunks(cls, chunks: Sequence[Chunk], by: str, notes: tuple[str, ...] = ()) -> FoundHits:
        """Turn chunks that have no scores into hits, in the same order."""
        return cls([Hit(chunk, 0.0, rank, by) for rank, chunk in enumerate(chunks, 1)], notes)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return tuple(hit.chunk for hit in self.hits)


def store_search(database: Database, request: Request, found: str) -> None:
    """Store a result, as JSON, under the hash of its request."""
    text = request_json(request)
    row = _sha256(text), text, found
    database.put("INSERT OR REPLACE INTO searches VALUES (?, ?, ?, ?)", (*row, row_hash(*row)))


def request_key(request: Request) -> str:
    """Return the SHA-256 of a request."""
    return _sha256(request_json(request))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def request_json(request: Request) -> str:
    """Return a request as it is stored."""
    return json.dumps(request, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


class SearchStore:
    """Reads and stores results in a database's table `searches`, once `begin` was called. `source_of` returns the
    source path of a document id, and `header_of` the header of a chunk; without it, none are stored."""

    def __init__(self, source_of: Callable[[str], str] | None = None,
                 header_of: Callable[[Chunk], str] | None = None) -> None:
        self.sources: dict[str, str] = {}
        self.headers: dict[str, str] = {}  # by chunk id, of the results that were read
        self._source_of, self._header_of = source_of, header_of
        self._database: Database | None = None
        self._reads = self._earlier = self._replayed = False
        self._parts: dict[str, str] = {}

    def begin(self, database: Database, mode: Mode) -> None:
        """Store results in this database, and read from it unless the mode is `live`."""
        self._database, self._reads, self._parts = database, mode != "live", {}
        self._replayed = mode == "replay"
        self._earlier = self._reads and database.has("earlier_searches")

    def find_or_make(self, request: Request, make: Callable[[], FoundHits] | None, name: str) -> FoundHits:
        """Return the stored result of a request. If there is none, `make` one and store it, or raise ReplayMiss."""
        known = self.find(request)
        if known is None:
            if make is None:
                raise search_miss(request, name)
            known = make()
            self.keep(request, known)
        return known

    def find(self, request: Request) -> FoundHits | None:
        """Return the stored result of a request, if there is one."""
        if self._database is None or not self._reads:
            return None
        key = (request_key(request),)
        rows = self._database.read(_FIND, key)
        if not rows and self._earlier:  # a search of earlier settings, which this run needs too
            self._database.put("INSERT INTO searches SELECT * FROM earlier_searches WHERE key = ?", key)
            rows = self._database.read(_FIND, key)
        if not rows:
            return None
        *row, hash = rows[0]
        self._database.check(row_hash(*row) == hash, f"search {row[0][:12]}")
        if self._replayed:
            self._database.used.add(key[0])
        fields = json.loads(row[2])
        self.sources.update(fields["sources"])
        self.headers.update(fields.get("headers", {}))
        parts = fields.get("parts")
        return FoundHits([_hit(one, rank, self._database) for rank, one in enumerate(fields["hits"], 1)],
                        tuple(fields["notes"]), fields["sources"], None if parts is None else [
                            self._database.text(one) if isinstance(one, str) else one for one in parts])

    def keep(self, request: Request, found: FoundHits) -> None:
        """Store a result. It becomes durable when the next record or call is stored."""
        if self._database is None:
            return
        sources = {document: self._source_of(document) for document in dict.fromkeys(
            hit.chunk.document for hit in found.hits)} if self._source_of else {}
        others: dict[str, Any] = {"notes": list(found.notes),
                  "sources": {document: source for document, source in sources.items() if source != document}}
        if self._header_of:
            others["headers"] = {hit.chunk.id: self._header_of(hit.chunk) for hit in found.hits}
        if found.parts is not None:
            others["parts"] = [self._database.put_text(one) if isinstance(one, str) else one for one in found.parts]
        scores = json.dumps([hit.score for hit in found.hits])[1:-1].split(", ")
        names = {name: json.dumps(name) for name in {hit.found_by for hit in found.hits}}
        parts = [self._parts.get(hit.chunk.id) or self._chunk_json(hit.chunk, self._database) for hit in found.hits]
        hits = ", ".join(f'{part}, "score": {score}, "found_by": {names[hit.found_by]}}}'
                         for hit, part, score in zip(found.hits, parts, scores, strict=bool(found.hits)))
        store_search(self._database, request, f'{{"hits": [{hits}], {json.dumps(others)[1:]}')

    async def durable(self) -> None:
        """Wait until the results so far are durable."""
        if self._database is not None:
            await self._database.durable()

    def _chunk_json(self, chunk: Chunk, database: Database) -> str:
        """Make the beginning of a hit's JSON. It is made once per chunk, because many searches find the same ones."""
        if len(self._parts) >= _MAX_PARTS:
            self._parts.clear()
        text, prefix = database.put_text(chunk.content), database.put_text(chunk.prefix) if chunk.prefix else ""
        part = self._parts[chunk.id] = (  # twice as fast as to encode a dictionary
            f'{{"id": {_dump(chunk.id)}, "document": {_dump(chunk.document)}, "format": "{chunk.format}", "start": '
            f'{chunk.start}, "end": {chunk.end}, "text": "{text}", "prefix": "{prefix}", "pages": {_dump(chunk.pages)}')
        return part


def search_miss(request: Request, name: str) -> ReplayMiss:
    """Return the error for a search in `name` whose result is not in a replay's journal."""
    query = str(next((request[one] for one in ("query", "question", "gold", "arguments") if request.get(one)), None))
    shown = query if len(query) <= _MAX_SHOWN else query[:_MAX_SHOWN] + "..."
    return ReplayMiss(f"no recorded result of {name} for {shown!r} ({request_key(request)[:12]})",
                      "replay_miss", 0)


def _hit(one: Mapping[str, Any], rank: int, database: Database) -> Hit:
    pages = one["pages"]
    chunk = Chunk(one["id"], one["document"], one["format"], one["start"], one["end"], database.text(one["text"]),
                  database.text(one["prefix"]) if one["prefix"] else "", tuple(pages) if pages else None)
    return Hit(chunk, one["score"], rank, one["found_by"])


SearchFunction = Callable[[Search], Awaitable[Sequence[Chunk]]]
Asked = TypeVar("Asked", bound=Hashable)
Query = TypeVar("Query", bound=Hashable, contravariant=True)


class Searchable(Protocol[Query]):
    """A `Retriever`, whose queries are texts, or a `ScopedSearch`, whose queries also name a scope."""

    def search(self, queries: Sequence[Query], k: int) -> list[list[Hit]]: ...


def fixed_chunks(chunks: Sequence[Chunk]) -> SearchFunction:
    """Return a search function that always returns these chunks."""

    async def search(action: Search) -> Sequence[Chunk]:
        return chunks

    return search


@dataclass(frozen=True, slots=True)
class StoredRetriever(Generic[Asked]):
    """Describes how to store the searches of one retriever."""

    searches: SearchStore
    name: str  # name of the retriever, for errors
    request: Callable[[Asked, int], Request]  # makes the stored form of a request from a query and the number of chunks


@dataclass(slots=True)
class SearchTimes:
    """Counts the queries and seconds of a retriever. Its first search, which loads it, is counted separately."""

    first: float | None = None
    alone: int = 0
    queries: int = 0
    seconds: float = 0.0

    def add(self, queries: int, seconds: float) -> None:
        if self.first is None:
            self.first, self.alone = seconds, queries
        else:
            self.queries += queries
            self.seconds += seconds

    @property
    def rate(self) -> float | None:
        """Return queries per second. The first search counts only if there was no other."""
        queries, seconds = (self.queries, self.seconds) if self.queries else (self.alone, self.first)
        return queries / seconds if seconds else None


class Searcher(Generic[Asked]):
    """Searches one retriever for many questions and cells.

    Repeated queries are answered from memory. Queries that arrive during a search are batched, short ones first.

    Args:
        retriever: the retriever to search, or None in a replay, which only returns stored hits.
        k: number of chunks if a search sets none.
        kept: where to read and store hits, if at all.
        most: number of results to remember; None for all.
    """

    def __init__(self, retriever: Searchable[Asked] | None, k: int, kept: StoredRetriever[Asked] | None = None,
                 most: int | None = None) -> None:
        self.retriever, self.k, self.times = retriever, k, SearchTimes()
        self._kept, self._most = kept, most
        self._asked: dict[tuple[Asked, int], asyncio.Future[list[Hit]]] = {}  # searches that wait or run
        self._tasks: set[asyncio.Task[None]] = set()
        self._found: OrderedDict[tuple[Asked, int], list[Hit]] = OrderedDict()
        self._waiting: list[Asked] = []
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "search")  # one thread, because the embedder uses every core

    async def hits(self, query: Asked, k: int) -> list[Hit]:
        """Return the hits of one query. Raises the retriever's errors, or ReplayMiss if there is no retriever."""
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
            self._asked[key] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._search(query, k))
            self._tasks.add(task)
            task.add_done_callback(lambda ended: self._end(ended, query, k))
        return await asyncio.shield(self._asked[key])

    async def __call__(self: Searcher[str], search: Search) -> Sequence[Chunk]:
        return [hit.chunk for hit in await self.hits(search.query, search.k or self.k)]

    def search_scored(self, ask: Callable[[str], Asked], scores: dict[str, float]) -> SearchFunction:
        """Return a search function that also adds the score of each chunk that it finds first to `scores`. `ask`
        returns the query for the retriever, such as one that names a scope."""

        async def search(action: Search) -> Sequence[Chunk]:
            found = await self.hits(ask(action.query), action.k or self.k)
            for hit in found:
                scores.setdefault(hit.chunk.id, hit.score)
            return [hit.chunk for hit in found]

        return search

    async def _search(self, query: Asked, k: int) -> None:
        async with self._turn:
            if (query, k) not in self._asked:
                return  # found with an earlier batch
            batch = self._next_batch(query)
            try:
                found = await self._run(batch, k)
            except CallError:  # the judge failed for an unknown query of the batch, so retry this one alone
                if len(batch) == 1:
                    raise
                batch, found = [query], await self._run([query], k)
            for one, hits in zip(batch, found, strict=True):
                if self._kept:
                    self._kept.searches.keep(self._kept.request(one, k), FoundHits(hits))
                self._remember(one, k, hits)
                if (asked := self._asked.pop((one, k), None)) is not None:
                    asked.set_result(hits)

    def _end(self, task: asyncio.Task[None], query: Asked, k: int) -> None:
        """Pass on the error of a search."""
        self._tasks.discard(task)
        if (error := None if task.cancelled() else task.exception()) is not None:
            self._asked.pop((query, k)).set_exception(error)
        elif task.cancelled() and (asked := self._asked.pop((query, k), None)) is not None:
            asked.cancel()

    def _next_batch(self, query: Asked) -> list[Asked]:
        """Take a query and the shortest waiting ones, but few characters in all, so that long texts delay few."""
        waiting = sorted(dict.fromkeys(one for one in self._waiting if one != query), key=lambda one: len(str(one)))
        sizes = accumulate((len(str(one)) for one in waiting), initial=len(str(query)))
        count = sum(size <= _MAX_BATCH for size in islice(sizes, 1, None))
        self._waiting = waiting[count:]
        return [query, *waiting[:count]]

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
        self._thread.shutdown()
