"""Keep the replies of models in one file for all runs, so that a new run sends only calls that no run has made.

    cache = ReplyCache(Path("calls.sqlite"), size=2_000_000_000)
    cache.keep(key, "https://api.openai.com/v1 gpt-5-mini", reply)
    cache.find(key, "https://api.openai.com/v1 gpt-5-mini")

Several processes may use the file at once. It holds no prompts and no addresses: a reply is found by a hash of the
call and of what serves the model. Failures are never stored.
"""
from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ByteSize, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from ragbed.agents.database import row_hash
from ragbed.agents.types import outcome_to_json
from ragbed.documents.paths import cache_dir
from ragbed.documents.types import digest
from ragbed.retrieval.storage.files import hold
from ragbed.strategies.types import Reply

if TYPE_CHECKING:
    from ragbed.experiments.settings import RunSettings

_SCHEMA = ("PRAGMA auto_vacuum=INCREMENTAL", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL",
           "PRAGMA journal_size_limit=4000000",
           "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, used INTEGER, hash TEXT, reply TEXT)",
           "CREATE INDEX IF NOT EXISTS by_use ON replies (used)")
_USED_BYTES = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, " \
    "pragma_page_size"
_SHRINK = "PRAGMA incremental_vacuum"
_EVERY = 64  # replies between two checks of the size
_FRESH = 3_600  # seconds within which another use of a reply is not noted
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_REPLY = TypeAdapter(Reply)


class CacheSettings(BaseModel):
    """The cache of calls, which all runs share. `off` turns it off.

    Attributes:
        size: largest size of the cache, such as `500 MB`; 0 turns it off. The replies that were not used for the
            longest time are removed first.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=lambda schema: schema.update(
        {"type": ["object", "boolean", "string"]}))

    size: ByteSize = Field(default=ByteSize(2_000_000_000), ge=0)

    @model_validator(mode="before")
    @classmethod
    def _read_switch(cls, value: Any) -> Any:
        """Read `on` and `off`, which YAML turns into booleans."""
        return {True: {}, "on": {}, False: {"size": 0}, "off": {"size": 0}}.get(value, value) \
            if isinstance(value, bool | str) else value


def open_calls(settings: RunSettings) -> ReplyCache | None:
    """Open the cache in `RAGBED_CALL_CACHE`, or in ragbed's cache folder; None if it is turned off."""
    size = (getattr(settings, "cache", None) or CacheSettings()).size
    folder = os.environ.get("RAGBED_CALL_CACHE") or cache_dir() / "calls"
    return None if folder == "off" or not size else ReplyCache(Path(folder) / "replies.sqlite", size)


class ReplyCache:
    """Replies in an SQLite file. If the file cannot be used, nothing is found or kept, and `close` returns why.

    Args:
        size: largest size of the replies in bytes.
    """

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        self._database: sqlite3.Connection | None = None
        self._problem, self._kept = "", 0
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = hold(path.with_suffix(".lock"), wait=True)  # changing to WAL fails if another process does it too
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self._problem = self._check_owner()
        except OSError as error:
            self._problem = f"{error.strerror}; free space, or set RAGBED_CALL_CACHE to a folder that can be written"
        else:
            self._database = None if self._problem else sqlite3.connect(path, isolation_level=None, timeout=10)
            for statement in _SCHEMA:
                self._execute(statement)
            lock.release()

    def _check_owner(self) -> str:
        if not hasattr(os, "geteuid"):
            return ""
        states = [self.path.stat(), self.path.parent.stat()]
        if any(state.st_uid != os.geteuid() or state.st_mode & 0o022 for state in states):
            return f"other users could change it; run chmod go-w {self.path.parent} {self.path}"
        return ""

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; none if the file cannot be used, which ends its use."""
        if self._database is None:
            return []
        try:
            if statement == _SHRINK:
                self._database.executescript(statement)  # `execute` would free one page only
                return []
            return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            self._database.close()
            self._database, self._problem = None, f"{error}; free space, or delete it"
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
                for ending in ("", "-wal", "-shm"):
                    self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
                self._problem = "it was damaged and is removed"
            return []

    def find(self, key: str, served_by: str) -> Reply | None:
        """Return the reply to a call, given by its journal key, of what serves the model; None if there is none. A
        damaged reply is removed."""
        name, now = digest(key, served_by), int(time.time())
        for used, hash, text in self._execute("SELECT used, hash, reply FROM replies WHERE key = ?", (name,)):
            try:
                if isinstance(text, str) and row_hash(name, text) == hash:
                    reply = _REPLY.validate_json(text)
                    if not isinstance(used, int) or not now - _FRESH < used <= now:
                        self._execute("UPDATE replies SET used = ? WHERE key = ?", (now, name))
                    return reply
            except ValidationError:
                pass
            self._execute("DELETE FROM replies WHERE key = ?", (name,))
        return None

    def keep(self, key: str, served_by: str, reply: Reply) -> None:
        """Store a reply. It replaces an earlier one of the same call."""
        name, text = digest(key, served_by), json.dumps(outcome_to_json(reply))
        if len(text) <= self.size // 4:
            self._execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)",
                          (name, int(time.time()), row_hash(name, text), text))
            self._kept += 1
            if self._kept % _EVERY == 0:
                self._evict()

    def _evict(self) -> None:
        """Remove the replies that were not used for the longest time, if all are larger than `size`."""
        (used,), = self._execute(_USED_BYTES) or [(0,)]
        while used > self.size:
            (count,), = self._execute("SELECT count(*) FROM replies") or [(0,)]
            if not count:
                break
            self._execute("DELETE FROM replies WHERE key IN (SELECT key FROM replies ORDER BY used LIMIT ?)",
                          (count // 10 + 1,))
            (used,), = self._execute(_USED_BYTES) or [(0,)]
        self._execute(_SHRINK)

    def close(self) -> str:
        """Close the file. Return a note on why it was not used, if so."""
        self._evict()
        if self._database is not None:
            self._database.close()
        return f"the cache of calls {self.path} is not used: {self._problem}" if self._problem else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
