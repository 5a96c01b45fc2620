"""The folder of one run: settings, manifest, records, summary and report.

    config.yaml  manifest.json  records.sqlite  summary.json  report.html  times.jsonl
"""
from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, TypeAdapter, ValidationError

from ragbed.agents.database import Database
from ragbed.agents.journal import SCHEMA as JOURNAL_SCHEMA
from ragbed.agents.search import SCHEMA as SEARCHES_SCHEMA
from ragbed.documents.errors import RunError
from ragbed.documents.types import digest
from ragbed.experiments.question import Question
from ragbed.experiments.record import Record, Result, Timing
from ragbed.retrieval.storage.files import explain_write_error, write_atomically
from ragbed.retrieval.storage.files import hold as hold_file

Model = TypeVar("Model", bound=BaseModel)
VERSION = 3  # version of tables and their JSON; increase it with every change that an older ragbed cannot read
FORMAT = 3  # version of summary.json and manifest.json; increase it with every change of their content
_RECORDS = ("CREATE TABLE IF NOT EXISTS records (cell TEXT, question TEXT, place INTEGER, hash TEXT NOT NULL,"
            " result TEXT NOT NULL, timing TEXT NOT NULL, PRIMARY KEY (cell, question))")
_QUESTIONS = "CREATE TABLE IF NOT EXISTS questions (id TEXT PRIMARY KEY, place INTEGER, content TEXT)"
_PINS = "CREATE TABLE IF NOT EXISTS pins (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
# Tokens of calls for which the server reported none: an estimate, or the most possible for a call that was killed.
_SPENT = "CREATE TABLE IF NOT EXISTS spent (id TEXT PRIMARY KEY, tokens INTEGER, dollars REAL) WITHOUT ROWID"
_SCHEMA = (*JOURNAL_SCHEMA, *SEARCHES_SCHEMA, _RECORDS, _QUESTIONS, _PINS, _SPENT)
_PIN = "INSERT OR REPLACE INTO pins VALUES (?, ?)"
_ORIGIN = "cassette"  # the row of `pins` with the hash of the replayed cassette
_SEAL = "seal"  # the row of `pins` with hashes of the finished run's files, and its numbers of rows, as JSON
_FILES, _TABLES = ("config.yaml", "manifest.json", "summary.json"), ("records", "calls", "searches", "texts")
_QUESTION, _SUMMARY = TypeAdapter(Question), TypeAdapter(dict[str, Any])
_JOINED = " FROM records r JOIN questions q ON q.id = r.question"
_ORDERED = " ORDER BY q.place, r.place"
# Naming the cells lets SQLite use the key (cell, question). A scan would read every trace.
_OF_QUESTION = ("SELECT cell, question, iif(intact(result, hash), result, ''), timing FROM records WHERE cell IN "
                "(SELECT DISTINCT cell FROM records) AND question = ? ORDER BY place")
_FAILURES = ("SELECT json_extract(r.result, '$.failure.kind') AS kind, json_extract(r.result, '$.failure.message'),"
             f" json_extract(r.result, '$.outcome'){_JOINED} WHERE kind IS NOT NULL AND "
             f"instr(r.result, '\"failure\":{{'){_ORDERED}")
_RESULT = {traces: f"cell, question, iif(intact(result, hash), {result}, '')" for traces, result in (
    (True, "result"), (False, "json_set(result, '$.trace', json('[]'))"))}
_EARLIER = ("calls", "searches", "records")  # tables whose rows of earlier settings are in `earlier_NAME`
_USED_TEXTS = ("SELECT messages FROM calls", "SELECT found FROM searches", "SELECT result FROM records")
_TIMES = "SELECT cell, question, place, timing FROM records ORDER BY cell, question"
_HASHES = "SELECT cell, question, hash FROM records ORDER BY cell, question"
_AMONG = " WHERE q.id IN (SELECT value FROM json_each(?))"
_ROWIDS, _SOME_ROWIDS = (f"SELECT r.rowid{_JOINED}{some}{_ORDERED}" for some in ("", _AMONG))


class RunFolder:
    """Reads and writes the folder of one run. `lock` is held until the folder is closed. If it is None, the folder is
    read-only. Results whose hash differs are damaged, unless `checked` is false. Raises RunError if the folder or its
    database cannot be opened, or a newer ragbed made it."""

    def __init__(self, path: Path, lock: FileLock | None = None) -> None:
        self.path, self.checked = path, True
        self._lock = lock
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{path}: cannot make the run folder: {error.strerror}") from error
        self.database = Database(path / "records.sqlite", _SCHEMA, VERSION, reading=lock is None)
        self.database.define("intact", lambda result, hash: not self.checked or _hash(str(result)) == hash)

    @classmethod
    def existing(cls, path: Path) -> RunFolder:
        """Return the folder of an existing run. Raises RunError if there is none."""
        if not os.path.isfile(path / "records.sqlite"):  # also False for an invalid path
            raise RunError(f"{path} holds no run: it has no records.sqlite")
        return cls(path)

    def begin(self, config: str, manifest: Mapping[str, Any], questions: Mapping[int, Question]) -> None:
        """Write the settings, the manifest, and the questions without their chunks."""
        write_text(self.path / "manifest.json", json.dumps(manifest, indent=2, sort_keys=True) + "\n")
        write_text(self.path / "config.yaml", config)
        self.database.put("DELETE FROM pins WHERE name = ?", (_SEAL,))
        self.database.put("DELETE FROM questions", ())
        for place, question in questions.items():
            self.put_question(question, place)
        self.database.flush()

    def put_question(self, question: Question, place: int) -> None:
        """Store a question without its chunks at this position. The next commit makes it durable."""
        self.database.put("INSERT OR REPLACE INTO questions VALUES (?, ?, ?)", (
            question.id, place, question_json(question.drop_chunks())))

    def is_empty(self) -> bool:
        """Return whether the run has no record and no call."""
        return not self.database.read("SELECT 1 FROM records UNION ALL SELECT 1 FROM calls LIMIT 1")

    def done(self) -> set[tuple[str, str]]:
        """Return the (cell, question) pairs with a record."""
        return set(self.database.rows("SELECT cell, question FROM records"))

    def pin(self, name: str, value: str, replace: bool = False) -> None:
        """Store the hash of something that calls and records depend on, under a name. Raises RunError if a different
        hash is stored, except with `replace`."""
        known = self.database.read("SELECT value FROM pins WHERE name = ?", (name,))
        if not replace and known not in ([], [(value,)]) and not self.is_empty():
            raise RunError(f"{self.path} holds records made with an earlier version of {name}; use another run name, "
                           "or start again with --fresh")
        self.database.put(_PIN, (name, value))
        self.database.flush()

    def pins(self) -> dict[str, str]:
        """Return the hashes of what calls and records depend on, by name."""
        return {name: value for name, value in self.database.read("SELECT name, value FROM pins ORDER BY name")
                if name not in (_ORIGIN, _SEAL)}

    def origin(self) -> str | None:
        """Return the hash of the replayed cassette; None if the run is not a replay."""
        rows = self.database.read("SELECT value FROM pins WHERE name = ?", (_ORIGIN,))
        return str(rows[0][0]) if rows else None

    def set_origin(self, cassette: str) -> None:
        """Store the hash of the replayed cassette. The next commit makes it durable."""
        self.database.put(_PIN, (_ORIGIN, cassette))

    async def add(self, record: Record, place: int) -> None:
        """Store a record, and return once it is durable."""
        self.put_record(record, place)
        await self.database.durable()

    def put_record(self, record: Record, place: int) -> None:
        """Store a record of the cell at this position. The next commit makes it durable."""
        one, result = record.result, record.result.model_dump_json()
        self.database.put("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?)", (
            one.cell, one.question, place, _hash(result), result, record.timing.model_dump_json()))

    def replace_result(self, result: Result) -> None:
        """Replace a record's result, but keep its position and timing. The next commit makes it durable."""
        stored = result.model_dump_json()
        self.database.put("UPDATE records SET hash = ?, result = ? WHERE cell = ? AND question = ?",
                          (_hash(stored), stored, result.cell, result.question))

    def timing(self, cell: str, question: str) -> Timing | None:
        """Return when a question was answered in a cell and how long it took; None without a record."""
        rows = (row for name in ("records", "earlier_records") if self.database.has(name) for row in self.database.read(
            f"SELECT timing FROM {name} WHERE cell = ? AND question = ?", (cell, question)))  # noqa: S608
        first = next(rows, None)
        return self._read(Timing, cell, question, first[0]) if first else None

    def _read(self, kind: type[Model], cell: str, question: str, stored: str) -> Model:
        """Read and check a part of a record. A result must have the right cell and question, and all cited evidence."""
        with suppress(ValidationError):
            read = kind.model_validate_json(stored)
            if not isinstance(read, Result):
                return read
            named = {*read.cited, *(number for step in read.trace for number in step.found)}
            if (read.cell, read.question) == (cell, question) and named <= {one.number for one in read.evidence}:
                return read
        raise RunError(f"{self.path}: the record of {question} in cell {cell} is damaged; run it again, with --fresh")

    def _records(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[Record]:
        for cell, question, result, timing in rows:
            yield Record(result=self._read(Result, cell, question, result),
                         timing=self._read(Timing, cell, question, timing))

    def reopen(self) -> None:
        """Mark the run as unfinished by removing the files made from its records."""
        for name in ("summary.json", "report.html", "times.jsonl", "trial.json"):
            remove(self.path / name)

    def clear_records(self) -> None:
        """Remove the records and the files made from them. The journal is kept, so that the run can be replayed."""
        self.reopen()
        self.database.put("DELETE FROM records", ())
        self.database.flush()

    def set_aside(self, calls: bool = True) -> None:
        """Set records, calls and searches aside after settings changed. A call or search of the new settings moves
        back when it is needed, until `finish` removes the others. Without `calls`, no call is kept."""
        self.reopen()
        with self.database.transaction():
            for name in _EARLIER:
                if self.database.has(f"earlier_{name}"):  # the settings changed twice
                    self.database.put(f"INSERT OR REPLACE INTO earlier_{name} SELECT * FROM {name}", ())  # noqa: S608
                    self.database.put(f"DROP TABLE {name}", ())
                else:
                    self.database.put(f"ALTER TABLE {name} RENAME TO earlier_{name}", ())
            for statement in (*_SCHEMA, "DELETE FROM pins", "DELETE FROM spent",
                              *["DELETE FROM earlier_calls"] * (not calls)):
                self.database.put(statement, ())

    def drop_earlier(self) -> None:
        """Remove what `set_aside` left over, and texts that nothing uses any more."""
        earlier = [name for name in _EARLIER if self.database.has(f"earlier_{name}")]
        if not earlier:
            return
        with self.database.transaction():
            for name in earlier:
                self.database.put(f"DROP TABLE earlier_{name}", ())
            used = {hash for query in _USED_TEXTS for (row,) in self.database.rows(query)
                    for hash in re.findall(r'"([0-9a-f]{32})"', row)}
            for (hash,) in self.database.read("SELECT hash FROM texts"):
                if hash not in used:
                    self.database.put("DELETE FROM texts WHERE hash = ?", (hash,))

    def keep_records(self, wanted: Collection[tuple[str, str]]) -> None:
        """Keep only the records of these (cell, question) pairs. Others may belong to a model that was renamed."""
        for pair in [pair for pair in self.database.rows("SELECT cell, question FROM records") if pair not in wanted]:
            self.database.put("DELETE FROM records WHERE cell = ? AND question = ?", pair)
        self.database.flush()

    def records(self, traces: bool = False, among: Collection[str] | None = None) -> Iterator[Record]:
        """Yield all records, or those of the questions in `among`, by question, then cell. For `traces` see
        `results`."""
        rowids, ids = (_ROWIDS, ()) if among is None else (_SOME_ROWIDS, (json.dumps(list(among)),))
        return self._records(self.database.rows_by_number("records", f"{_RESULT[traces]}, timing", rowids, ids))

    def timings(self) -> Iterator[tuple[str, str, Timing]]:
        """Yield cell, question and timing of every record, in the order of `records`."""
        rows = self.database.rows_by_number("records", "cell, question, timing", _ROWIDS)
        return ((cell, question, self._read(Timing, cell, question, timing)) for cell, question, timing in rows)

    def results(self, traces: bool = False, one: tuple[str, str] | None = None) -> Iterator[Result]:
        """Yield every result, in the order of `records`, or that of `one` cell and question. By default large
        traces, which figures do not need, are left out."""
        rowids = _ROWIDS if one is None else "SELECT rowid FROM records WHERE cell = ? AND question = ?"
        for row in self.database.rows_by_number("records", _RESULT[traces], rowids, one or ()):
            yield self._read(Result, *row)

    def results_with(self, word: str) -> Iterator[Result]:
        """Yield the results that contain a word anywhere, including in traces, without parsing the others."""
        for row in self.database.read("SELECT cell, question, result FROM records WHERE instr(result, ?)", (word,)):
            yield self._read(Result, *row)

    def failures(self) -> list[tuple[str, str, str]]:
        """Return the kind and message of every failure, and the outcome of its question, in the order of `records`."""
        return self.database.read(_FAILURES)

    def question_ids(self) -> list[str]:
        """Return the ids of the run's questions, in order."""
        return [id for (id,) in self.database.rows("SELECT id FROM questions ORDER BY place")]

    def questions(self, among: Collection[str] | None = None) -> dict[str, Question]:
        """Return all questions, or those in `among`, by id, in order, without their chunks."""
        some, ids = ("", ()) if among is None else (_AMONG, (json.dumps(list(among)),))
        rows = self.database.rows(f"SELECT q.content FROM questions q{some} ORDER BY q.place", ids)  # noqa: S608
        try:
            return {(one := _QUESTION.validate_json(row[0])).id: one for row in rows}
        except ValidationError as error:
            raise RunError(f"{self.database.path}: damaged: a question cannot be read; run it again, with "
                           "--fresh") from error

    def records_of(self, question: str) -> Iterator[Record]:
        """Yield the records of one question, by cell in the run's order."""
        return self._records(self.database.read(_OF_QUESTION, (question,)))

    def altered(self) -> list[tuple[str, str]]:
        """Return the (cell, question) pairs whose result no longer has its stored hash."""
        return [(cell, question) for cell, question, hash, result in self.database.rows(
            "SELECT cell, question, hash, result FROM records") if _hash(result) != hash]

    def find_damage(self) -> str | None:
        """Describe what makes the run unfit to be continued or merged, such as an altered record; None if nothing."""
        altered = [f"the record of {question} in cell {cell} was altered" for cell, question in self.altered()]
        changed = self.alterations()  # records, calls and searches that were deleted are made again
        lost = [changed[name] for name in ("texts", "pins", "results", "questions") if name in changed]
        return next(iter([*altered, *lost]), None)

    def stored_questions(self) -> str:
        """Return one hash of the run's questions as they are stored."""
        return digest(*(content for (content,) in self.database.read("SELECT content FROM questions ORDER BY place")))

    def results_hash(self) -> str:
        """Return one hash of the results of all records."""
        return _hash(f"[{', '.join(map(json.dumps, self.database.rows(_HASHES)))}]")

    def summary(self) -> dict[str, Any]:
        """Read the summary of a finished run. Raises RunError if it has not finished, or another version made it."""
        path = self.path / "summary.json"
        if not path.is_file():
            raise RunError(f"{self.path}: the run has not finished; rerun the `ragbed run` command to continue it")
        try:
            content: dict[str, Any] = _SUMMARY.validate_json(path.read_bytes())
        except (OSError, ValueError, TypeError) as error:
            raise RunError(f"{path}: damaged; rerun the `ragbed run` command to write it again") from error
        if content.get("format") != FORMAT:
            raise RunError(f"{path}: made by another version of ragbed; run it again, with --fresh")
        return content

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary, which marks the run as complete, and seal the run."""
        text = json.dumps(summary, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        remove(self.path / "summary.json")
        self.seal(text)
        write_text(self.path / "summary.json", text)

    def seal(self, summary: str = "") -> None:
        """Store what shows later alterations of the run, whose summary will have this text."""
        sealed = {**self._state(), "times": self._times(), "summary.json": _hash(summary) if summary else ""}
        self.database.put(_PIN, (_SEAL, json.dumps(sealed)))
        self.database.flush()

    def _state(self) -> dict[str, Any]:
        return {**{name: _file_hash(self.path / name) for name in _FILES}, "pins": _hash(json.dumps(self.pins())),
                "results": self.results_hash(), "questions": self.stored_questions(), **{
            name: self.database.read(f"SELECT count(*) FROM {name}")[0][0] for name in _TABLES}}  # noqa: S608

    def _times(self) -> str:
        rows = chain(self.database.rows(_TIMES), self.database.rows("SELECT * FROM spent ORDER BY id"))
        return digest(*map(json.dumps, rows))

    def is_sealed(self) -> bool:
        """Return whether the run stored what shows later alterations. Earlier versions did not."""
        return bool(self.database.read("SELECT 1 FROM pins WHERE name = ?", (_SEAL,)))

    def alterations(self, times: bool = False) -> dict[str, str]:
        """Return what was altered since the run finished: a phrase by file or table. With `times`, compare those too,
        which takes longer. Added rows, as by judging again, do not count."""
        stored = self.database.read("SELECT value FROM pins WHERE name = ?", (_SEAL,))
        try:
            sealed = _SUMMARY.validate_json(stored[0][0] if stored else "{}")
        except ValueError:
            return {"pins": "its seal cannot be read"}
        now = {**self._state(), **({"times": self._times()} if times else {})} if sealed else {}
        if now.get("records") != sealed.get("records"):  # their hashes differ anyway
            now = {name: value for name, value in now.items() if name not in ("results", "times", "questions")}
        return {name: f"its {name} {'are fewer' if name in _TABLES else 'changed'} since it finished"
                for name in now.keys() & sealed.keys()
                if (now[name] < sealed[name] if name in _TABLES else now[name] != sealed[name])}

    def close(self) -> None:
        """Commit and close."""
        try:
            self.database.close()
        finally:
            if self._lock is not None:
                self._lock.release()


def lock_run(folder: Path, in_use: str = "another process is working on this run; wait for it, or use another run "
                                        "name") -> FileLock:
    """Lock the folder of a run, which is made if needed. Raises RunError if it is in use or cannot be written."""
    try:
        return hold_file(folder / ".lock")
    except Timeout as error:
        raise RunError(f"{folder}: {in_use}") from error
    except OSError as error:
        raise RunError(f"{folder}, the run folder: {explain_write_error(error)}") from error


def read_run_file(path: Path) -> bytes:
    """Return the bytes of a run's file. Raises OSError if it cannot be read, is not a regular file (reading a pipe
    would block), or is larger than any file that a run writes."""
    if path.exists() and (not path.is_file() or path.stat().st_size > 16 << 20):
        raise OSError(errno.EINVAL, "is not a file of a run")
    return path.read_bytes()


def _file_hash(path: Path) -> str:
    try:
        return hashlib.sha256(read_run_file(path)).hexdigest()
    except OSError:
        return ""


def remove(path: Path) -> None:
    """Remove a file if it exists. Raises RunError if it cannot be removed."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"{path}: cannot remove: {error.strerror}") from error


def write_text(path: Path, content: str) -> None:
    """Replace a file atomically. Raises RunError if it cannot be written."""
    try:
        write_atomically(path, content.encode())
    except OSError as error:
        raise RunError(f"{path}: {explain_write_error(error)}") from error


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Replace a file atomically with rows of JSON Lines."""
    write_text(path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))


def question_json(question: Question) -> str:
    """Return the question as one line of JSON."""
    return _QUESTION.dump_json(question).decode()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
