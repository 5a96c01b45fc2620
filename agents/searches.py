"""What was found: searches, and what else came out of an index, kept so that a replay needs neither it nor an embedder.

A request is plain JSON that names what is searched by its content, and everything else that decides what is found; its
hash is the key. Equal requests of several cells are kept once.
"""
from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.database import Database
from agents.journal import Mode
from documents.errors import ReplayMiss
from documents.types import Chunk
from retrieval.types import Hit

SCHEMA = ("CREATE TABLE IF NOT EXISTS searches (key TEXT PRIMARY KEY, request TEXT NOT NULL, found TEXT NOT NULL)",)
KEEP = "INSERT OR REPLACE INTO searches VALUES (?, ?, ?)"
_SHOWN = 80  # characters of a request that was missed

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a request.

    Attributes:
        sources: source path by document id, of the documents that only an index knows.
    """

    hits: Sequence[Hit]
    notes: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def placed(cls, chunks: Sequence[Chunk], by: str, notes: tuple[str, ...] = ()) -> Found:
        """Chunks that were not compared with anything, in their order."""
        return cls([Hit(chunk, 0.0, rank, by) for rank, chunk in enumerate(chunks, 1)], notes)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return tuple(hit.chunk for hit in self.hits)


def request_key(request: Request) -> str:
    """SHA-256 over everything that decides what is found."""
    return hashlib.sha256(request_json(request).encode()).hexdigest()


def request_json(request: Request) -> str:
    """The request as it is kept."""
    return json.dumps(request, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


class Searches:
    """Reads and keeps what was found in a database's table `searches`; before `begin` it keeps nothing.

    Args:
        source_of: the source path of a document that an index knows, else its id.
    """

    def __init__(self, source_of: Callable[[str], str] | None = None) -> None:
        self.sources: dict[str, str] = {}
        self._source_of = source_of
        self._database: Database | None = None
        self._reads = False

    def begin(self, database: Database, mode: Mode) -> None:
        """Keep in this database, and read from it but in the mode `live`."""
        self._database, self._reads = database, mode != "live"

    def taken(self, request: Request, make: Callable[[], Found] | None, name: str) -> Found:
        """What is kept for the request, else what is made now and kept.

        Args:
            make: None where nothing is there to make it with.
            name: what is searched, for the message of a miss.

        Raises:
            ReplayMiss: nothing is kept, and nothing is there to make it with.
        """
        known = self.find(request)
        if known is None:
            if make is None:
                raise miss(request, name)
            known = make()
            self.keep(request, known)
        return known

    def find(self, request: Request) -> Found | None:
        """What is kept for the request."""
        if self._database is None or not self._reads:
            return None
        rows = self._database.read("SELECT found FROM searches WHERE key = ?", (request_key(request),))
        return self._read(json.loads(rows[0][0]), self._database) if rows else None

    def keep(self, request: Request, found: Found) -> None:
        """Keep what was found; durable with the record or call that is kept next."""
        if self._database is None:
            return
        text = request_json(request)
        self._database.put(KEEP, (request_key(request), text, json.dumps(self._written(found, self._database))))

    def _written(self, found: Found, database: Database) -> dict[str, Any]:
        sources = {hit.chunk.document: self._source_of(hit.chunk.document) for hit in found.hits} \
            if self._source_of else {}
        return {"hits": [_hit_fields(hit, database) for hit in found.hits], "notes": list(found.notes),
                "sources": {document: source for document, source in sources.items() if source != document}}

    def _read(self, fields: Mapping[str, Any], database: Database) -> Found:
        self.sources.update(fields["sources"])
        return Found([_hit(one, rank, database) for rank, one in enumerate(fields["hits"], 1)],
                     tuple(fields["notes"]), fields["sources"])


def miss(request: Request, name: str) -> ReplayMiss:
    """The error of a replay for which the journal does not hold what a request found.

    Args:
        name: what is searched.
    """
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
