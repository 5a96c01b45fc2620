"""One SQLite file that survives `kill -9`, with commits shared by whoever waits at the same moment. WAL with
synchronous NORMAL loses nothing when the process dies, only when the machine does."""
from __future__ import annotations

import asyncio
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from ragbed.documents.errors import RunError
from ragbed.documents.types import digest

_UNWRITABLE = {
    sqlite3.SQLITE_FULL: "free space, and the same command continues",
    sqlite3.SQLITE_IOERR: "where the disk is full free space, and the same command continues",
    **dict.fromkeys((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM),
                    "the file and its folder have to be there and writable; copy the folder to where they are")}
_BATCH = 256  # rows
_WINDOW = 0.005  # seconds: many replies of one moment share one commit, and none waits noticeably
# Not WITHOUT ROWID, which is for small rows: texts in the key's own tree make every insertion three times as dear.
_FOREIGN = "SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger')"
_TEXTS = "CREATE TABLE IF NOT EXISTS texts (hash TEXT PRIMARY KEY, content TEXT NOT NULL)"


def storable(text: str) -> str:
    """Replace half surrogate pairs, which have no UTF-8 form, by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


@lru_cache(maxsize=512)  # the parts of prompts repeat, and are the same objects
def text_hash(text: str) -> str:
    """Return the hash of a text as it is stored."""
    return digest(storable(text))


def row_hash(*values: str | None) -> str:
    """Return the hash that a row is kept with, over what it holds."""
    return digest(*(value or "" for value in values))


class Database:
    """Tables and the texts that their rows refer to by hash.

    Args:
        path: the file; made where absent.
        schema: `CREATE TABLE IF NOT EXISTS` statements.
        version: of the schema; stored in the file.
        reading: whether nothing is going to be written: a file that cannot be is then read as it is.

    Raises:
        RunError: the file cannot be opened or written, is not a database, or has another schema, and is as it was.
    """

    def __init__(self, path: Path, schema: Iterable[str], version: int = 0, reading: bool = False) -> None:
        self.path = path
        self._commit: asyncio.Future[None] | None = None
        self._known: set[str] | None = None  # the hashes of all texts, once one is put: who reads needs none
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
            raise _refusal(path, error) from error

    def _prepare(self, schema: Iterable[str], version: int) -> None:
        if self._stamp(version) < version:
            self._connection.execute(f"PRAGMA user_version={version:d}")
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", _TEXTS, *schema):
            self._connection.execute(statement)

    def _stamp(self, version: int) -> int:
        """The file's version; one without a stamp is new."""
        foreign = self._connection.execute(_FOREIGN).fetchone()
        if foreign:  # a view may never end, and a trigger delete what is put
            self._connection.close()
            raise RunError(f"{self.path}: holds the {' '.join(foreign)!r}, which no run has; get the file again")
        (stamped,), = self._connection.execute("PRAGMA user_version")
        if stamped not in (0, version):
            self._connection.close()
            raise RunError(f"{self.path}: was written by another version of ragbed, in format {stamped}, and this one "
                           f"reads format {version}; run it again, with --fresh")
        return int(stamped)

    def _reopen_to_read(self) -> None:
        """Without a log beside it a file is whole, and needs no lock, which would have to be written."""
        self._connection.close()
        log = self.path.with_name(f"{self.path.name}-wal")
        whole = not (log.is_file() and log.stat().st_size)
        self._connection = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro{'&immutable=1' * whole}", uri=True,
                                           isolation_level=None)

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, those not yet committed included."""
        return list(self.rows(statement, values))

    def rows(self, statement: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query one at a time, for tables that are too large to be held."""
        try:
            for row in self._connection.execute(statement, values):
                if bytes in map(type, row):
                    raise RunError(f"{self.path}: damaged, bytes stand for a text; run it again, with --fresh")
                yield row
        except sqlite3.Error as error:
            raise _refusal(self.path, error) from error

    def rows_by_number(self, table: str, columns: str, rowids: str, values: Sequence[Any] = ()
                 ) -> Iterator[tuple[Any, ...]]:
        """Yield columns of the rows that a query gives the numbers of, in its order; in memory are the numbers and a
        batch of rows. RunError where another process replaces one meanwhile."""
        numbers = array("q", (number for (number,) in self.rows(rowids, values)))
        for start in range(0, len(numbers), _BATCH):
            batch = numbers[start:start + _BATCH].tolist()
            found = {row[0]: row[1:] for row in self.rows(
                f"SELECT rowid, {columns} FROM {table} WHERE rowid IN ({','.join(map(str, batch))})")}  # noqa: S608
            if len(found) < len(batch):
                raise RunError(f"{self.path}: rows were replaced while they were read; give the command again")
            yield from (found[number] for number in batch)

    def has(self, table: str) -> bool:
        """Say whether there is such a table: a file that can only be read keeps those of its own version."""
        return bool(self.read("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read everything inside as of one moment, whatever another process writes meanwhile."""
        self._execute("BEGIN")
        try:
            yield
        finally:
            self._execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep everything put inside together, or, where an error ends it, nothing of it."""
        self.flush()
        whole = False
        try:
            yield
            self.flush()
            whole = True
        finally:
            if not whole:
                if self._connection.in_transaction:
                    self._execute("ROLLBACK")
                self._known = None

    def put(self, statement: str, values: Sequence[Any]) -> None:
        """Write; durable after the next commit."""
        if not self._connection.in_transaction:
            self._execute("BEGIN IMMEDIATE")
        self._execute(statement, values)

    def put_text(self, content: str) -> str:
        """Keep a text once; returns its hash."""
        key = text_hash(content)
        if self._known is None:
            self._known = {hash for (hash,) in self.rows("SELECT hash FROM texts")}
        if key not in self._known:
            self._known.add(key)
            self.put("INSERT OR IGNORE INTO texts VALUES (?, ?)", (key, storable(content)))
        return key

    def text(self, key: str) -> str:
        """Return the text of that hash; RunError where it is not kept."""
        rows = self.read("SELECT content FROM texts WHERE hash = ?", (key,))
        if not rows:
            raise RunError(f"{self.path}: the text {key} is missing; the file is damaged")
        self.check(text_hash(rows[0][0]) == key, f"text {key}")
        return str(rows[0][0])

    def check(self, sound: bool, what: str) -> None:
        """Make sure that what was read is what was kept; RunError where it is not."""
        if not sound:
            raise RunError(f"{self.path}: the {what} was altered since it was kept; give this run another name, or use "
                           "--fresh to begin anew")

    async def durable(self) -> None:
        """Return when everything put so far is committed."""
        if self._commit is None:
            loop = asyncio.get_running_loop()
            self._commit = loop.create_future()
            loop.call_later(_WINDOW, self._settle, self._commit)
        await asyncio.shield(self._commit)

    def _settle(self, commit: asyncio.Future[None]) -> None:
        if self._commit is not commit:  # it was closed meanwhile, with everything put
            return
        self._commit = None
        try:
            self.flush()
        except RunError as error:
            commit.set_exception(error)
        else:
            commit.set_result(None)

    def copy_from(self, path: Path, prior: Literal["IGNORE", "REPLACE"] = "REPLACE") -> None:
        """Copy every row of another file of this kind, durably, in the place of one here with the same key, or with
        IGNORE without those whose key is here; all of them, or none."""
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
            raise _refusal(self.path, error) from error

    def close(self) -> None:
        """Commit and close."""
        self._commit = None
        try:
            self.flush()
        finally:
            self._connection.close()


def _code(error: sqlite3.Error) -> int:
    # An error of the module itself has no code of SQLite's.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _refusal(path: Path, error: sqlite3.Error) -> RunError:
    remedy = _UNWRITABLE.get(_code(error))
    return RunError(f"{path}: {error}" + (f"; {remedy}" if remedy else ""))
