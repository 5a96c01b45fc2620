"""Store traffic in PostgreSQL, so that several servers share threads, feedback and records.

The tables are in the schema `ragbed_traffic`. Its name must not be that of the user: PostgreSQL would then look for the
tables of the threads in it, too. `copy_traffic` writes them to a folder like that of one server, for the commands that
read such folders.
"""
from __future__ import annotations

import json
import re
import secrets
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from pydantic import TypeAdapter

from ragbed.agents.database import Database, storable, text_hash
from ragbed.agents.types import Answer
from ragbed.documents.errors import MissingExtra, RunError, SettingsError
from ragbed.documents.http import sanitize_line
from ragbed.documents.types import digest
from ragbed.experiments.cells import Cell
from ragbed.experiments.guests.traffic.traffic_runs import (
    EXEMPLARS,
    PROMPTS,
    QUESTIONS,
    TRAFFIC,
    answer_record,
    describe_run,
)
from ragbed.experiments.question import Question
from ragbed.experiments.record import Record, Result, Timing
from ragbed.experiments.runs.store import RunFolder, question_json, write_text
from ragbed.experiments.settings import RunSettings

if TYPE_CHECKING:
    from ragbed.agents.assistant import Assistant

T = TypeVar("T")
_FORMAT = "1"  # version of the tables; increase it with every change that an older ragbed cannot read
_SETUP, _SERVERS = 7247235, 7247236  # advisory locks: making the tables, and one for each running server
_CONNECT_SECONDS = 10
_RETRY_SECONDS = 30.0  # seconds that the end of an answer waits for a database that restarts
_COPY = "copied.txt"  # file that marks a folder as a copy, and says of what
_BATCH = 500  # rows per query
_HASH = re.compile(r'"([0-9a-f]{32})"')  # of a text in a record
_QUESTION = TypeAdapter(Question)
_TABLES = {  # columns to copy; the first is the key
    "threads": "id, owner, configuration, probability", "titles": "thread, title",
    "turns": "record, thread, place, owner, configuration, run, probability, before, filter, question, standalone,"
             " outcome, text, shown, begun, ended",
    "feedback": "record, owner, thumb, comment, time, first, rated"}
_RECORDS = (
    "CREATE TABLE IF NOT EXISTS runs (name TEXT PRIMARY KEY, config TEXT NOT NULL, manifest TEXT NOT NULL,"
    " files TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS records (run TEXT NOT NULL, question TEXT NOT NULL, place BIGSERIAL,"
    " content TEXT NOT NULL, cell TEXT NOT NULL, result TEXT NOT NULL, timing TEXT NOT NULL,"
    " PRIMARY KEY (run, question))",
    "CREATE TABLE IF NOT EXISTS texts (hash TEXT PRIMARY KEY, content TEXT NOT NULL)")


def database_errors() -> tuple[type[Exception], ...]:
    """Return the errors that the stores of threads and of traffic raise."""
    if "psycopg" not in sys.modules:
        return RunError, sqlite3.Error
    import psycopg

    return RunError, sqlite3.Error, psycopg.Error


class PostgresDatabase:
    """Tables in PostgreSQL, with the methods of `Database` that traffic needs.

    It has one connection, which is opened again after the database was restarted. While it is open, it holds a lock
    that tells other servers that this one is running.

    Raises:
        MissingExtra: psycopg is not installed.
        SettingsError: it is not a URL of PostgreSQL. No message contains the password.
        RunError: the database cannot be reached, refuses a statement, or was written by another version of ragbed.
    """

    def __init__(self, url: str, schema: Iterable[str]) -> None:
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError as error:
            raise MissingExtra("psycopg", "postgres") from error
        try:
            parts = conninfo_to_dict(url)
        except psycopg.Error:  # the error's own message would show the password
            raise SettingsError("not a PostgreSQL URL; write postgres://USER:PASSWORD@HOST/DATABASE") from None
        self._url, self._password, self._schema = url, str(parts.get("password") or ""), tuple(schema)
        self.name = f"PostgreSQL on {parts.get('host', 'this machine')}, database {parts.get('dbname', '')!r}"
        self.server = secrets.randbelow(2**31)
        self._connection: psycopg.Connection[Any] | None = None
        self._failure: type[Exception] = psycopg.Error
        self._within = False
        self._guard(self._prepare)

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query. A lost connection is opened again, outside of transactions."""
        return self._guard(lambda: self._run(statement, values).fetchall(), again=not self._within)

    def put(self, statement: str, values: Sequence[Any]) -> None:
        """Execute a write. Outside of a transaction it is durable on return."""
        self._guard(lambda: self._run(statement, values), again=not self._within)

    def put_text(self, content: str) -> str:
        """Store a text once, and return its hash."""
        key = text_hash(content)
        self.put("INSERT INTO texts VALUES (?, ?) ON CONFLICT DO NOTHING", (key, storable(content)))
        return key

    def flush(self) -> None:
        """Do nothing, because writes are durable on return."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a block whose writes are committed together, or not at all if it raises."""
        self.put("BEGIN", ())
        self._within, whole = True, False
        try:
            yield
            self.put("COMMIT", ())
            whole = True
        finally:
            try:
                if not whole and self._connection is not None and not self._connection.closed:
                    self._guard(self._connection.rollback)
            finally:
                self._within = False

    def lock(self, name: str) -> None:
        """Wait until no other transaction holds a lock of this name, and hold it until the transaction ends."""
        self.read("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (name,))

    def is_dead(self, server: int | None) -> bool:
        """Tell whether a server no longer runs. Its lock is free then."""
        if server == self.server:
            return False
        (taken,), = self.read("SELECT pg_try_advisory_lock(?, ?)", (_SERVERS, server or 0))
        if taken:
            self.read("SELECT pg_advisory_unlock(?, ?)", (_SERVERS, server or 0))
        return bool(taken)

    def retry(self, work: Callable[[], T]) -> T:
        """Return the result of work. Repeat it while the database cannot be reached, for at most 30 seconds."""
        end = time.monotonic() + _RETRY_SECONDS
        while True:
            try:
                return work()
            except RunError:
                if time.monotonic() > end or (self._connection is not None and not self._connection.closed):
                    raise
                time.sleep(0.5)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _open(self) -> Any:
        import psycopg

        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=_CONNECT_SECONDS)
            self._connection.execute("SELECT pg_advisory_lock(%s, %s)", (_SERVERS, self.server))
            self._connection.execute("SET search_path TO ragbed_traffic")
        return self._connection

    def _prepare(self) -> None:
        connection = self._open()
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SETUP,))
            connection.execute("CREATE SCHEMA IF NOT EXISTS ragbed_traffic")
            for statement in (*self._schema, *_RECORDS):
                connection.execute(statement.replace("REAL", "DOUBLE PRECISION"))
            self._run("INSERT INTO secrets VALUES ('format', ?) ON CONFLICT DO NOTHING", (_FORMAT,))
            (found,), = self._run("SELECT value FROM secrets WHERE name = 'format'")
        if found != _FORMAT:
            raise RunError(f"{self.name}: written by another version of ragbed (format {found}, not {_FORMAT}); use "
                           "another database, or that version")

    def _run(self, statement: str, values: Sequence[Any] = ()) -> Any:
        # PostgreSQL cannot store the character NUL
        return self._open().execute(statement.replace("?", "%s"), [
            one.replace("\0", "\ufffd") if isinstance(one, str) else one for one in values])

    def _guard(self, work: Callable[[], T], again: bool = False) -> T:
        try:
            return work()
        except self._failure as error:
            if again and self._connection is not None and self._connection.closed:  # the database was restarted
                return self._guard(work)
            raise RunError(f"{self.name}: {sanitize_line(str(error), self._password)}") from None


class PostgresRun:
    """The run of one configuration in PostgreSQL. Several servers may add to it."""

    def __init__(self, database: PostgresDatabase, name: str, assistant: Assistant | None = None) -> None:
        self._database, self._name = database, name
        if assistant is not None:
            with TemporaryDirectory() as folder:
                path = Path(folder) / name
                config, manifest = describe_run(assistant, path)
                files = {str(one.relative_to(path)): one.read_text(encoding="utf-8")
                         for one in path.rglob("*") if one.is_file()}
            database.put("INSERT INTO runs VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                         (name, storable(config), json.dumps(manifest), json.dumps(files)))
        (manifest_text,), = database.read("SELECT manifest FROM runs WHERE name = ?", (name,))
        self.cell = Cell.of(json.loads(manifest_text)["cells"][0])

    def add(self, question: Question, answer: Answer, source_of: Callable[[str], str]) -> None:
        """Store a question and its answer durably, both or neither. The answer replaces an interruption that another
        server has noted meanwhile."""
        with self._database.transaction():
            record = answer_record(self.cell, question, answer, self._database, source_of)
            self._database.put(
                "INSERT INTO records (run, question, content, cell, result, timing) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (run, question) DO UPDATE SET result = excluded.result, timing = excluded.timing", (
                    self._name, question.id, storable(question_json(question.drop_chunks())), self.cell.id,
                    storable(record.result.model_dump_json()), record.timing.model_dump_json()))

    def result(self, question: str) -> tuple[str, str] | None:
        """Return the outcome and the text of a question's answer; None if it has no record."""
        for (stored,) in self._database.read("SELECT result FROM records WHERE run = ? AND question = ?",
                                             (self._name, question)):
            found = json.loads(stored)
            return found["outcome"], found["text"]
        return None

    def close(self) -> None:
        """Do nothing, because the database is closed by its owner."""


def copy_traffic(url: str, out: Path, schema: Iterable[str], version: int) -> dict[str, int]:
    """Copy the traffic in a database to a folder, which replaces an earlier copy. Return the number of rows by table.

    Raises RunError if the folder exists and is not such a copy, or either cannot be read or written."""
    if out.exists() and not (out / _COPY).is_file():
        raise RunError(f"{out} exists and is not a copy of traffic; name another folder")
    new = out.with_name(f".{out.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    with closing(PostgresDatabase(url, schema)) as source, source.transaction():
        source.put("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", ())
        new.mkdir(parents=True)
        with closing(Database(new / TRAFFIC, schema, version)) as target, target.transaction():
            counts = {name: _copy_table(source, target, name, columns) for name, columns in _TABLES.items()}
        for name, config, manifest, files in source.read("SELECT name, config, manifest, files FROM runs"):
            for file, text in json.loads(files).items():
                (new / name / file).parent.mkdir(parents=True, exist_ok=True)
                (new / name / file).write_text(text, encoding="utf-8")
            with closing(RunFolder(new / name)) as folder:
                moved = _config_in(config, out / name)
                folder.begin(moved, {**json.loads(manifest), "settings": digest(moved)}, {})
                _copy_records(source, folder, name)
    write_text(new / _COPY, f"{source.name}\n")
    shutil.rmtree(out, ignore_errors=True)
    new.rename(out)
    return counts


def _copy_table(source: PostgresDatabase, target: Database, table: str, columns: str) -> int:
    count, last = 0, ""
    key, marks = columns.partition(",")[0], ", ".join("?" * len(columns.split(",")))
    while rows := source.read(f"SELECT {columns} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {_BATCH}",  # noqa: S608
                              (last,)):
        for row in rows:
            target.put(f"INSERT INTO {table} ({columns}) VALUES ({marks})", row)  # noqa: S608
        count, last = count + len(rows), rows[-1][0]
    return count


def _copy_records(source: PostgresDatabase, folder: RunFolder, run: str) -> None:
    last = -1
    with folder.database.transaction():
        while rows := source.read("SELECT place, content, result, timing FROM records WHERE run = ? AND place > ?"
                                  " ORDER BY place LIMIT ?", (run, last, _BATCH)):
            used = {hash for *_, result, _ in rows for hash in _HASH.findall(result)}
            for (text,) in source.read("SELECT content FROM texts WHERE hash = ANY(?)", (list(used),)):
                folder.database.put_text(text)
            for place, content, result, timing in rows:
                folder.put_question(_QUESTION.validate_json(content), place)
                folder.put_record(Record(result=Result.model_validate_json(result),
                                         timing=Timing.model_validate_json(timing)), 0)
            last = rows[-1][0]


def _config_in(config: str, path: Path) -> str:
    """Return the settings of a run with the paths of its folder."""
    fields = yaml.safe_load(config)
    path = path.absolute()
    fields |= {"out": str(path.parent), "benchmark": {"kind": "jsonl", "path": str(path / QUESTIONS)}}
    fields |= {name: str(path / file) for name, file in (("prompts", PROMPTS), ("exemplars", EXEMPLARS))
               if fields.get(name)}
    return RunSettings.model_validate(fields).to_yaml()
