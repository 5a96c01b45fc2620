"""A cassette: the calls and searches of a run in one file that can be committed, looked at and replayed elsewhere.

gzip over JSON Lines. First what it is and of which run; then every text once, the calls, the searches; last how many of
each there are, and a SHA-256 over all lines before. Equal content makes equal bytes.
"""
from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from pydantic import ValidationError

from agents.cassette_lines import KINDS, MAGIC, VERSION, Call, End, Head, Line, Search, Text, format_for, kept, packed
from agents.database import Database, text_hash
from agents.search import request_key
from documents.errors import RunError
from retrieval.storage.files import why_unwritten

LONGEST = 32 << 20  # bytes of a line
# Unpacked bytes: a file of this many times its size is made to fill a disk; small ones may be all repetition.
TIMES, FREE = 100, 256 << 20
_LEVEL = 6
_AGAIN = "get the file again, or export the run again"


@dataclass(frozen=True, slots=True)
class Cassette:
    """A cassette that was read to its end, and is whole.

    Attributes:
        ragbed: version of the ragbed that wrote it.
        about: what it says of its run.
        counts: of texts, calls and searches.
        hash: SHA-256 over its lines.
    """

    path: Path
    ragbed: str
    about: Mapping[str, Any]
    counts: Mapping[str, int]
    hash: str

    @classmethod
    def open(cls, path: Path) -> Cassette:
        """The cassette in a file.

        Raises:
            RunError: there is none, it is damaged or of a newer ragbed, or it is made to fill memory or disk.
        """
        reading = _Reading(path)
        for _ in reading.lines():
            pass
        assert reading.head is not None
        assert reading.end is not None
        return cls(path, reading.head.ragbed, reading.head.run, dict(reading.end.end.items()), reading.end.sha256)

    def lines(self) -> Iterator[Text | Call | Search]:
        """Texts, calls and searches, in that order; RunError where the file is no longer what was opened."""
        reading = _Reading(self.path)
        for line in reading.lines():
            if isinstance(line, Text | Call | Search):
                yield line
        if reading.end is None or reading.end.sha256 != self.hash:
            raise RunError(f"{self.path}: changed while it was read; give the command again")

    def read_into(self, database: Database) -> None:
        """Put everything into a database that has the journal's tables."""
        for line in self.lines():
            if isinstance(line, Text):
                database.put_text(line.content)
            else:
                database.put(line.statement, line.row())


class _Reading:
    """One reading of a file, line by line, which trusts none of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.head: Head | None = None
        self.end: End | None = None
        self._state, self._counts = hashlib.sha256(), Counter[str]()
        self._texts: set[str] = set()
        self._number = 0

    def lines(self) -> Iterator[Line]:
        """Every line, once it was checked."""
        try:
            with self.path.open("rb") as file, gzip.open(file) as unpacked:
                yield from map(self._taken, self._split(unpacked, room(self.path.stat().st_size)))
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise self._no_cassette() if self.head is None else self._damaged("it is cut short or altered") from error
        except OSError as error:
            raise RunError(f"{self.path}: {error.strerror or error}") from error
        if self.end is None:
            raise self._no_cassette() if self.head is None else self._damaged("it is cut short")

    def _split(self, unpacked: gzip.GzipFile, left: int) -> Iterator[bytes]:
        while data := unpacked.readline(LONGEST + 1):
            left -= len(data)
            if len(data) > LONGEST or left < 0:
                raise RunError(f"{self.path}: unpacks to more than any run would keep, so it is not read")
            yield data

    def _taken(self, data: bytes) -> Line:
        self._number += 1
        line = self._parsed(data)
        if self.head is None and not isinstance(line, Head):
            raise self._no_cassette()
        if (self.head is not None and isinstance(line, Head)) or self.end is not None:
            raise self._damaged(f"line {self._number} has no place there")
        if isinstance(line, Head):
            self.head = line
        elif isinstance(line, End):
            self._check_end(line)
        elif isinstance(line, Text | Call | Search):
            self._check(line)
        self._state.update(data)
        self._counts[line.counted] += 1
        return line

    def _parsed(self, data: bytes) -> Line:
        try:
            fields = json.loads(data)
            kind = KINDS[next(iter(fields))]
            if self.head is None:
                self._check_head(fields)
            return kind.model_validate(fields)
        except (ValueError, TypeError, KeyError, StopIteration, RecursionError) as error:
            if self.head is None:
                raise self._no_cassette() from error
            said = _first(error) if isinstance(error, ValidationError) else "not readable"
            raise self._damaged(f"line {self._number}: {said}") from error

    def _check_head(self, fields: Any) -> None:
        version = fields.get("version")
        if fields.get("cassette") == MAGIC and isinstance(version, int) and version > VERSION:
            raise RunError(f"{self.path}: was written by a newer ragbed, in format {version}; this one reads formats "
                           f"up to {VERSION}: upgrade ragbed to replay it")

    def _check(self, line: Text | Call | Search) -> None:
        if isinstance(line, Text):
            if text_hash(line.content) != line.text:
                raise self._damaged(f"line {self._number}: the text is not the one of its hash")
            self._texts.add(line.text)
            return
        if isinstance(line, Search) and request_key(line.request) != line.search:
            raise self._damaged(f"line {self._number}: the search is not the one of its key")
        if isinstance(line, Call) and (line.reply is None) == (line.failure is None):
            raise self._damaged(f"line {self._number}: a call has either a reply or a failure")
        if missing := next((text for text in line.texts if text not in self._texts), None):
            raise self._damaged(f"line {self._number}: the text {missing} is missing")

    def _check_end(self, line: End) -> None:
        if line.sha256 != self._state.hexdigest() or any(self._counts[name] != count
                                                         for name, count in line.end.items()):
            raise self._damaged("its lines are not those that were written")
        self.end = line

    def _damaged(self, why: str) -> RunError:
        return RunError(f"{self.path}: a damaged cassette: {why}; {_AGAIN}")

    def _no_cassette(self) -> RunError:
        return RunError(f"{self.path} is no cassette: make one with `ragbed cassette export RUN`")


def is_cassette(path: Path) -> bool:
    """Whether the file begins as a cassette does, of whatever version, whole or damaged."""
    try:
        with path.open("rb") as file, gzip.open(file) as unpacked:
            fields = json.loads(unpacked.readline(LONGEST))
    except (OSError, EOFError, ValueError, RecursionError, zlib.error):
        return False
    return isinstance(fields, dict) and fields.get("cassette") == MAGIC


def write_cassette(path: Path, ragbed: str, about: Mapping[str, Any], database: Database) -> Counter[str]:
    """Write the calls and searches that a database's tables hold, and the texts that these need.

    Returns:
        how many of each were written.

    Raises:
        RunError: the file cannot be written, or could not be read again.
    """
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        with database.snapshot(), partial.open("xb") as file:
            head = {"cassette": MAGIC, "version": format_for(database), "ragbed": ragbed, "run": about}
            counts = _write(file, head, database)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        raise RunError(f"{path}: {why_unwritten(error)}") from error
    finally:
        partial.unlink(missing_ok=True)
    return counts


def _write(file: BinaryIO, head: Mapping[str, Any], database: Database) -> Counter[str]:
    counts: Counter[str] = Counter(texts=0, calls=0, searches=0)
    state, size = hashlib.sha256(), 0
    with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as out:  # without name and time, which would differ
        first = packed(head)
        out.write(first)
        state.update(first)
        for name, fields in kept(database):
            data = packed(fields)
            if len(data) > LONGEST:
                raise RunError(f"{database.path}: holds a text or reply of {len(data)} bytes, longer than a cassette's "
                               "lines may be")
            counts[name] += 1
            size += len(data)
            state.update(data)
            out.write(data)
        out.write(packed({"end": counts, "sha256": state.hexdigest()}))
    if size > room(file.tell()):
        raise RunError(f"{database.path}: repeats itself so much that its cassette would be taken for one that is made "
                       "to fill a disk")
    return counts


def room(size: int) -> int:
    """The most bytes that a file of so many may unpack to."""
    return TIMES * size + FREE


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
