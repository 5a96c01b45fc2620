"""Find the files to read: expand files, folders and globs into a sorted list of sources."""
from __future__ import annotations

import glob
import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, takewhile
from pathlib import Path, PurePath

from ragbed import guests
from ragbed.documents.errors import DocumentError

SUFFIXES: dict[str, str] = {
    ".html": "html", ".htm": "html", ".xhtml": "html",
    ".pdf": "pdf",
    ".txt": "text", ".text": "text",
    ".md": "markdown", ".markdown": "markdown", ".mdown": "markdown", ".mkd": "markdown", ".mdx": "markdown",
    ".qmd": "markdown", ".rmd": "markdown",
}
"""ragbed's own parser for each file suffix (lower case)."""

MAX_BYTES = 100_000_000  # per file, or per record of a file of records
_MAX_ID = 200  # characters of a record's id
_RECORD = re.compile(r"(\.[^./#]+)#[^/]*$")
_INDEX_FILES = frozenset(("manifest.json", "documents.parquet", "chunks.parquet"))  # what every index holds
_LINKED_FOLDER = "a link to a folder, which is not followed"


@cache
def parsers_by_suffix() -> dict[str, str]:
    """Return the parser for each suffix: a kind, as in `SUFFIXES`, or the "module:attribute" of a guest's parser. A
    guest may replace a parser of ragbed. Raises SettingsError if two guests add the same suffix."""
    return {**SUFFIXES, **{suffix.lower(): target for suffix, target in guests.entries("parser").items()}}


@dataclass(frozen=True, slots=True)
class Record:
    """A document in a file of records, such as a line of JSON Lines.

    Attributes:
        name: its id, or its place in the file; unique in the file.
        start, end: its first byte, and the byte after its last.
        stated: whether the record itself states the id.
    """

    name: str
    start: int
    end: int
    stated: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read, or a record of one.

    Attributes:
        relative: path below the folder that was given, with forward slashes and in NFC, so that ids do not depend on
            the machine. Parent folders are added to tell equal paths in two given folders apart.
        problem: why the file will not be read, if that is known already; `read_documents` reports it.
        span: first byte of a record, and the byte after its last; None for a whole file. The name of a record is that
            of its file, `#` and the record's id.
        id: id of the document; None for a hash of `relative`.
        ocr: whether to recognise the text of pages that are pictures.
    """

    path: Path
    relative: str
    problem: str | None = None
    span: tuple[int, int] | None = None
    id: str | None = None
    ocr: bool = False


def find_sources(sources: Sequence[str | Path], ocr: bool = False) -> list[Source]:
    """Return the files that `sources` name, sorted by relative path.

    A file of records, such as JSON Lines, becomes one source per record. Folders are searched recursively; hidden
    entries, unknown suffixes and folders that hold an index are skipped. Inside a folder, or below the fixed part of a
    glob, a link is followed only to a file in that folder. Other links, unreadable folders, and folders that match a
    glob are listed with a `problem`. A file named directly is always listed. With `ocr`, scanned pages will be read by
    text recognition.

    Raises:
        DocumentError: a path is empty, does not exist or is an index, a folder cannot be read, or a glob matches
            nothing.
    """
    given = [sources] if isinstance(sources, str | Path) else sources
    found = [source for one in given for source in _expand(one)]
    if len(given) > 1 or any(glob.has_magic(str(one)) for one in given):  # a folder names no file twice
        found = list({os.path.abspath(source.path): source for source in reversed(found)}.values())
    readers, readable = guests.entries("records"), guests.entries("ocr") if ocr else ()
    records = chain.from_iterable(_split_records(source, readers) for source in _resolve_collisions(found))
    found_sources = [replace(source, ocr=True) if ocr and suffix_of(source.relative).lower() in readable else source
                     for source in sorted(records, key=lambda source: source.relative)]
    return drop_taken_ids(found_sources, set())


def drop_taken_ids(sources: Iterable[Source], taken: set[str]) -> list[Source]:
    """Return the sources, without the id of those whose id another document has."""
    result: list[Source] = []
    for source in sources:
        free = source.id is None or source.id not in taken
        taken |= {source.id} if source.id is not None else set()
        result.append(source if free else replace(source, id=None))
    return result


def _split_records(source: Source, readers: Mapping[str, str]) -> Iterator[Source]:
    """Yield the records of a file of records; otherwise the source itself."""
    target = readers.get(suffix_of(source.relative).lower())
    if target is None or source.problem is not None:
        yield source
        return
    empty = True
    try:
        for record in guests.load(target)(source.path):
            empty = False
            name = record.name.replace("%", "%25").replace("/", "%2F")[:_MAX_ID]
            yield Source(source.path, f"{source.relative}#{_normalize_path(name)}", None, (record.start, record.end),
                         record.name if record.stated and len(record.name) <= _MAX_ID else None)
    except OSError as error:
        yield replace(source, problem=f"cannot be read: {error.strerror}")
        return
    if empty:
        yield source


def suffix_of(name: str | PurePath) -> str:
    """Return the suffix of a file's name, or of the file of a record, as in `corpus.jsonl#4983`."""
    name = name if isinstance(name, str) else name.name
    record = _RECORD.search(name) if "#" in name else None
    if record and record[1].lower() in guests.entries("records"):
        return record[1]
    stem, _, end = name[name.rfind("/") + 1:].rpartition(".")  # `PurePath.suffix` takes ten times as long
    return f".{end}" if stem and end else ""


def is_record(name: str) -> bool:
    """Return whether a source's name is that of a record in a file."""
    return suffix_of(name) != PurePath(name).suffix


def unread_files(sources: Sequence[str | Path]) -> list[str]:
    """Return the sorted relative paths of visible files that `find_sources` skips for their unknown type."""
    folders = [path for given in sources if os.path.isdir(path := Path(os.path.expanduser(given)))]
    return sorted({source.relative for folder in folders for source in _folder(folder, _has_unknown_type)
                   if _has_unknown_type(source.path)})


def unknown_type(name: str | PurePath) -> str | None:
    """Describe what is wrong with a name's suffix; return None if a parser reads it."""
    suffix = suffix_of(name)
    if suffix.lower() in parsers_by_suffix():
        return None
    return f"unknown type {suffix or 'without a suffix'}; known are {', '.join(parsers_by_suffix())}"


def _expand(given: str | Path) -> Iterator[Source]:
    if not str(given):
        raise DocumentError("''", "an empty name; name a file or a folder")
    path = Path(os.path.expanduser(given))
    if os.path.isdir(path):
        yield from _folder(path)
    elif os.path.lexists(path):
        yield _make_source(path, path.name)
    elif glob.has_magic(str(path)):
        yield from _glob(path)
    else:
        raise DocumentError(str(given), "no such file or folder")


def _glob(pattern: Path) -> Iterator[Source]:
    try:
        matches = [Path(match) for match in sorted(glob.glob(str(pattern), recursive=True))]
    except RecursionError:
        raise DocumentError(str(pattern), "folders are nested too deep for a pattern; name the folder itself") from None
    if not matches:
        raise DocumentError(str(pattern), "matches no file")
    fixed = list(takewhile(lambda part: not glob.has_magic(part), pattern.parts))
    base = Path(*fixed) if fixed else Path()
    inside = os.path.realpath(base)
    entered = {parent for match in matches for parent in match.parents}
    for match in matches:
        relative = str(match.relative_to(base))
        above = match.parents[:len(match.relative_to(base).parts) - 1]
        linked = next((parent for parent in reversed(above) if parent.is_symlink()), None)
        if linked is not None:
            yield Source(linked, _normalize_path(str(linked.relative_to(base))), _LINKED_FOLDER)
        elif match.is_symlink():
            yield from _link(match, _normalize_path(relative), inside, lambda _: True)
        elif not match.is_dir():
            yield _make_source(match, relative)
        elif match not in entered and match != base:
            yield Source(match, _normalize_path(relative), "a folder; to search it, name it without a pattern")


def _make_source(path: Path, relative: str) -> Source:
    return Source(path, _normalize_path(relative), _find_problem(path) or unknown_type(path))


def _find_problem(path: _Entry) -> str | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return "a link to a file that does not exist"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not stat.S_ISREG(found.st_mode):
        return "not a regular file"
    large = found.st_size > MAX_BYTES and suffix_of(path.name).lower() not in guests.entries("records")
    return f"larger than the limit of {MAX_BYTES:,} bytes" if large else None


_Entry = Path | os.DirEntry[str]


def _is_wanted(path: _Entry) -> bool:
    """Tell whether to read a folder's entry: it has a known type, and is not a pipe or device."""
    return unknown_type(path.name) is None and _find_problem(path) != "not a regular file"


def _has_unknown_type(path: _Entry) -> bool:
    return unknown_type(path.name) is not None and path.is_file()


def _folder(root: Path, wanted: Callable[[_Entry], bool] = _is_wanted) -> Iterator[Source]:
    inside = os.path.realpath(root)
    waiting = [(str(root), "")]  # `os.walk` is recursive, so it fails in deeply nested folders
    while waiting:
        folder, above = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
            if not above:
                raise DocumentError(str(root), problem) from error
            yield Source(Path(folder), _normalize_path(above[:-1]), problem)
            continue
        if {entry.name for entry in entries} >= _INDEX_FILES:  # `ragbed index . --out idx` must not read itself
            if not above:
                raise DocumentError(str(root), "an index, not a folder of documents; name the documents")
            continue
        for entry in (one for one in entries if not one.name.startswith(".")):
            relative = above + entry.name
            if entry.is_symlink():
                yield from _link(Path(entry.path), _normalize_path(relative), inside, wanted)
            elif entry.is_dir():
                waiting.append((entry.path, relative + os.sep))
            elif wanted(entry):
                yield Source(Path(entry.path), _normalize_path(relative), _find_problem(entry))


def _link(path: Path, relative: str, inside: str, wanted: Callable[[_Entry], bool]) -> Iterator[Source]:
    target = os.path.realpath(path)
    if os.path.isdir(target):
        yield Source(path, relative, _LINKED_FOLDER)
    elif (problem := unknown_type(path)) is not None:
        if wanted(path):
            yield Source(path, relative, problem)
    elif not os.path.exists(target):
        yield Source(path, relative, "a link to a file that does not exist")
    elif os.path.commonpath([target, inside]) != inside:
        yield Source(path, relative, "a link that leads outside the folder, which is not followed")
    elif wanted(path):
        yield Source(path, relative, _find_problem(path))


def _normalize_path(relative: str) -> str:
    shown = os.fsencode(relative).decode("utf-8", "backslashreplace")
    return unicodedata.normalize("NFC", re.sub(r"\\", "/", shown) if os.sep == "\\" else shown)


def _resolve_collisions(sources: Iterable[Source]) -> list[Source]:
    result = list(sources)
    for _ in range(256):
        counts = Counter(source.relative for source in result)
        if max(counts.values(), default=0) < 2:
            break
        for place, source in enumerate(result):
            if counts[source.relative] > 1:  # add one more parent folder
                parts = Path(os.path.abspath(source.path)).parts[-source.relative.count("/") - 2:]
                result[place] = replace(source, relative=_normalize_path("/".join(parts).lstrip("/")))
    return result
