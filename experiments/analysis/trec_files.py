"""Reading and writing TREC runs: a line for each document found, `query Q0 document rank score tag`."""
from __future__ import annotations

import ctypes
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from documents.errors import BenchmarkError, SettingsError
from documents.places import local
from retrieval.storage.files import why_unwritten, write_atomically

Rankings = Mapping[str, Sequence[str]]
"""Ids of documents by query, best first."""

_COLUMNS = 6
_LONGEST = 1 << 16  # characters of a line
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?")


def read_run(file: Path) -> Rankings:
    """Return the rankings of a run, `.gz` or plain: by score, as trec_eval takes them, and not by the column `rank`;
    of equal scores the document whose id is the greater comes first, as there.

    Raises:
        BenchmarkError: the file cannot be read, or a line does not fit.
    """
    found: dict[str, dict[str, float]] = {}
    place = local(file)
    if place.exists() and not place.is_file():
        raise BenchmarkError(f"{file}: is no regular file; write the run into one")
    for number, line in _lines(place):
        columns = line.split()
        if len(columns) != _COLUMNS or not _NUMBER.fullmatch(columns[4]) or not math.isfinite(float(columns[4])):
            raise BenchmarkError(f"{file}, line {number}: expected query, Q0, document, rank, score and tag, "
                                 f"found {line.strip()[:60]!r}")
        query, document = columns[0], columns[2]
        if document in found.setdefault(query, {}):
            raise BenchmarkError(f"{file}, line {number}: the document {document} is ranked twice for the query "
                                 f"{query}")
        # As trec_eval keeps scores: what is equal in single precision is a tie.
        found[query][document] = ctypes.c_float(float(columns[4])).value
    if not found:
        raise BenchmarkError(f"{file}: no line in it")
    return {query: sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)
            for query, scores in found.items()}


def write_run(file: Path, rankings: Rankings, tag: str) -> None:
    """Write the rankings, compressed where the name ends in `.gz`. Scores fall by one with each rank.

    Raises:
        SettingsError: an id holds space, which no line of a run can, or the file cannot be written.
    """
    text = "".join(_written(rankings, re.sub(r"\s+", "-", tag.strip()) or "ragbed")).encode()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, gzip.compress(text, mtime=0) if file.suffix == ".gz" else text)
    except OSError as error:
        raise SettingsError(f"{file}: {why_unwritten(error)}") from error


def _written(rankings: Rankings, tag: str) -> Iterator[str]:
    for query, documents in rankings.items():
        for rank, document in enumerate(documents, start=1):
            for id in (query, document):
                if not id or re.search(r"\s", id):
                    raise SettingsError(f"the id {id[:60]!r} is empty or holds space, so a TREC run cannot name it; "
                                        "leave out --runs")
            yield f"{query} Q0 {document} {rank} {len(documents) + 1 - rank} {tag}\n"


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream, \
                io.TextIOWrapper(stream, encoding="utf-8-sig", newline="\n") as lines:
            number = 0
            while line := lines.readline(_LONGEST):
                number += 1
                if len(line) == _LONGEST:
                    raise BenchmarkError(f"{file}, line {number}: longer than {_LONGEST:,} characters, so no line of a "
                                         "TREC run")
                if line.strip():
                    yield number, line
    except (OSError, EOFError, zlib.error) as error:
        raise BenchmarkError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except UnicodeDecodeError as error:
        raise BenchmarkError(f"{file}: cannot be read as text in UTF-8: {error}") from error
