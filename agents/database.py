"""Store data in a SQLite file that survives `kill -9`. With WAL and synchronous NORMAL, only a crash of the machine can
lose data. Concurrent writers share commits."""
from __future__ import annotations

import asyncio
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from ragbed.documents.errors import RunError
from ragbed.documents.types import digest

_UNWRITABLE = {
    sqlite3.SQLITE_FULL: "free space, and rerun the command to continue",
    sqlite3.SQLITE_IOERR: "if the disk is full, free space; rerun the command to continue",
    **dict.fromkeys((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM),
                    "file and folder must exist and be writable; copy the folder to a place where they are")}
_BATCH = 256  # rows per batch
_COMMIT_SECONDS = 0.005  # writes within this time of each other share one commit
_MAX_SECONDS = 0.1  # further writes delay a commit no longer, because questions wait for it
_MAX_KNOWN = 100_000  # hashes of stored texts that are remembered
_CHECKPOINT = "PRAGMA wal_autocheckpoint=4000"  # pages: less often than by default, because pages are rewritten
_FOREIGN = "SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger')"
# not WITHOUT ROWID, which makes inserting long texts three times slower
_TEXTS = "CREATE TABLE IF NOT EXISTS texts (hash TEXT PRIMARY KEY, content TEXT NOT NULL)"


def is_postgres(place: object) -> bool:
    """Tell whether a place is the URL of a PostgreSQL database, and not a path."""
    return str(place).startswith(("postgres://", "postgresql://"))


def storable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, with question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


_SHORT = 4_096  # maximum characters of a text such as a chunk


def text_hash(text: str) -> str:
    """Return the hash of a text as stored. Chunks and parts of prompts repeat, so their hashes are cached."""
    return _short_hash(text) if len(text) <= _SHORT else _long_hash(text)


def _hash(text: str) -> str:
    return digest(storable(text))


_short_hash, _long_hash = lru_cache(maxsize=8_192)(_hash), lru_cache(maxsize=256)(_hash)


def row_hash(*values: str | None) -> str:
    """Return the hash over a row's values, which is stored with it."""
    return digest(*(value or "" for value in values))


class Database:
    """A SQLite file with tables, and a table of texts that rows refer to by hash.

    Args:
        path: the file; created if missing.
        schema: `CREATE TABLE IF NOT EXISTS` statements.
        version: version of the schema, which is stored in the file.
        reading: whether to open a file that cannot be written as read-only, instead of raising an error.

    Raises:
        RunError: the file cannot be opened or written, is not a database, or has another schema.
    """

    other_version = "run again with --fresh"  # what to do with a file of another version

    def __init__(self, path: Path, schema: Iterable[str], version: int = 0, reading: bool = False) -> None:
        self.path, self.used = path, set[str]()  # keys of the calls and searches that a replay has read
        self._commit: asyncio.Future[None] | None = None
        self._known = set[str]()  # hashes of texts that are certainly stored
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=30)
            try:
                self._prepare(schema, version)
            except sqlite3.OperationalError as error:
                if not reading or _code(error) not in _UNWRITABLE:
                    raise
                self._reopen_to_read()
                self._stamp(version)
        except sqlite3.Error as error:
            raise _sqlite_error(path, error) from error

    def _prepare(self, schema: Iterable[str], version: int) -> None:
        if self._stamp(version) < version:
            self._connection.execute(f"PRAGMA user_version={version:d}")
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", _CHECKPOINT, _TEXTS, *schema):
            self._connection.execute(statement)

    def _stamp(self, version: int) -> int:
        foreign = self._connection.execute(_FOREIGN).fetchone()
        if foreign:  # reading a view may never end, and a trigger may delete new rows
            self._connection.close()
            raise RunError(f"{self.path}: unexpected {' '.join(foreign)!r}: not a file written by ragbed; restore it "
                           "from the original run")
        (stamped,), = self._connection.execute("PRAGMA user_version")
        if stamped not in (0, version):
            self._connection.close()
            raise RunError(f"{self.path}: written by another version of ragbed (format {stamped}, not {version}); "
                           f"{self.other_version}")
        return int(stamped)

    def _reopen_to_read(self) -> None:
        """Open the file read-only. Without a write-ahead log next to it, it is complete and needs no lock."""
        self._connection.close()
        log = self.path.with_name(f"{self.path.name}-wal")
        whole = not (log.is_file() and log.stat().st_size)
        self._connection = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro{'&immutable=1' * whole}", uri=True,
                                           isolation_level=None)

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, including uncommitted ones."""
        return list(self.rows(statement, values))

    def rows(self, statement: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query one at a time, for large tables."""
        try:
            for row in self._connection.execute(statement, values):
                if bytes in map(type, row):
                    raise RunError(f"{self.path}: damaged (bytes instead of text); run again with --fresh")
                yield row
        except sqlite3.Error as error:
            raise _sqlite_error(self.path, error) from error

    def rows_by_number(self, table: str, columns: str, rowids: str, values: Sequence[Any] = ()
                 ) -> Iterator[tuple[Any, ...]]:
        """Yield columns of the rows whose numbers the query `rowids` returns, in its order. Rows are read in batches.
        Raises RunError if another process replaces rows in the meantime."""
        numbers = array("q", (number for (number,) in self.rows(rowids, values)))
        for start in range(0, len(numbers), _BATCH):
            batch = numbers[start:start + _BATCH].tolist()
            found = {row[0]: row[1:] for row in self.rows(
                f"SELECT rowid, {columns} FROM {table} WHERE rowid IN ({','.join(map(str, batch))})")}  # noqa: S608
            if len(found) < len(batch):
                raise RunError(f"{self.path}: another process replaced rows meanwhile; run the command again")
            yield from (found[number] for number in batch)

    def define(self, name: str, function: Callable[[Any, Any], bool]) -> None:
        """Define an SQL function of two values."""
        self._connection.create_function(name, 2, function)

    def has(self, table: str) -> bool:
        """Tell whether a table exists. A read-only file may lack tables of a newer schema."""
        return bool(self.read("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Open a block that reads a consistent snapshot, even if other processes write."""
        self._execute("BEGIN")
        try:
            yield
        finally:
            self._execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a block whose writes are committed together, or not at all if it raises."""
        self.flush()
        whole = False
        try:
            yield
            self.flush()
            whole = True
        finally:
            self._known.clear()
            if not whole and self._connection.in_transaction:
                self._execute("ROLLBACK")

    def put(self, statement: str, values: Sequence[Any]) -> None:
        """Execute a write. It is durable after the next commit."""
        if not self._connection.in_transaction:
            self._execute("BEGIN IMMEDIATE")
        self._execute(statement, values)

    def put_text(self, content: str) -> str:
        """Store a text once, and return its hash."""
        key = text_hash(content)
        if key not in self._known:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known.add(key)
            self.put("INSERT OR IGNORE INTO texts VALUES (?, ?)", (key, storable(content)))
        return key

    def text(self, key: str) -> str:
        """Return the text with this hash. Raises RunError if it is missing."""
        rows = self.read("SELECT content FROM texts WHERE hash = ?", (key,))
        if not rows:
            raise RunError(f"{self.path}: the text {key} is missing; the file is damaged")
        self.check(text_hash(rows[0][0]) == key, f"text {key}")
        return str(rows[0][0])

    def check(self, sound: bool, what: str) -> None:
        """Raise RunError unless data read from the file is `sound`; `what` names the data."""
        if not sound:
            raise RunError(f"{self.path}: {what} was altered after it was written; give this run another name, or "
                           "start again with --fresh")

    async def durable(self) -> None:
        """Wait until everything put so far is committed."""
        if self._commit is None:
            loop = asyncio.get_running_loop()
            self._commit = loop.create_future()
            loop.call_later(_COMMIT_SECONDS, self._settle, self._commit, self._connection.total_changes,
                            loop.time() + _MAX_SECONDS)
        await asyncio.shield(self._commit)

    def _settle(self, commit: asyncio.Future[None], changes: int, latest: float) -> None:
        if self._commit is not commit:  # another task has committed and closed it
            return
        loop = commit.get_loop()
        if loop.time() < latest and (made := self._connection.total_changes) > changes:
            loop.call_later(_COMMIT_SECONDS, self._settle, commit, made, latest)
            return
        self._commit = None
        try:
            self.flush()
        except RunError as error:
            commit.set_exception(error)
        else:
            commit.set_result(None)

    def copy_from(self, path: Path, prior: Literal["IGNORE", "REPLACE"] = "REPLACE") -> None:
        """Copy all rows of another file with the same tables, or none if copying fails. `prior` says whether they
        replace rows with the same key."""
        self.flush()
        self._execute("ATTACH DATABASE ? AS other", (str(path),))
        try:
            with self.transaction():
                for (table,) in self.read("SELECT name FROM main.sqlite_master WHERE type = 'table'"):
                    self.put(f"INSERT OR {prior} INTO main.{table} SELECT * FROM other.{table}", ())  # noqa: S608
        finally:
            self._execute("DETACH DATABASE other")

    def flush(self) -> None:
        """Commit everything put so far."""
        if self._connection.in_transaction:
            self._execute("COMMIT")

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        try:
            self._connection.execute(statement, values)
        except sqlite3.Error as error:
            raise _sqlite_error(self.path, error) from error

    def close(self) -> None:
        self._commit = None
        try:
            self.flush()
        finally:
            self._connection.close()


def _code(error: sqlite3.Error) -> int:
    # Errors of the Python module itself have no SQLite code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _sqlite_error(path: Path, error: sqlite3.Error) -> RunError:
    remedy = _UNWRITABLE.get(_code(error))
    return RunError(f"{path}: {error}" + (f"; {remedy}" if remedy else ""))
