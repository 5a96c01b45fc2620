"""What an index will hold: files to read, documents that are given, and what stays as it is.

The folder that an index is to stand in: nothing but an index is ever replaced.

Sources by name, folder or pattern.
"""
from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath

import documents
from documents.errors import IndexFolderError
from documents.sources import SUFFIXES, Source
from documents.types import digest
from retrieval.building.preflight import Before
from retrieval.storage.files import sha256_of
from retrieval.storage.folder import set_aside
from retrieval.storage.manifest import CHUNKS, DOCUMENTS, MANIFEST, VECTORS, is_manifest

OWN_FILES = {MANIFEST, VECTORS, CHUNKS, DOCUMENTS}


def check_place(out: Path) -> None:
    """Raise IndexFolderError where `out` holds something else than an index, or cannot be used."""
    try:
        if out.exists() and not out.is_dir():
            raise IndexFolderError(f"{out} is a file: name a folder for the index")
        for replaceable in (out, set_aside(out)):
            if replaceable.is_dir():
                _check_own(replaceable)
    except OSError as error:
        raise IndexFolderError(f"{out} cannot be used: {error.strerror}; name another folder") from error


def _check_own(folder: Path) -> None:
    """Other things too have a file called manifest.json."""
    names = {path.name for path in folder.iterdir()}
    strange = sorted(names - OWN_FILES)
    if names and not (names == OWN_FILES or is_manifest(folder / MANIFEST)):
        raise IndexFolderError(f"{folder} is not empty and is no index: name another folder")
    if strange:
        raise IndexFolderError(f"{folder} is an index, but also holds {strange[0]}, which would be lost: move it away, "
                               "or name another folder")


def matching(name: str, sources: Iterable[str]) -> Iterator[str]:
    """The sources of that name; where there is none, those below a folder of that name, or that match the pattern."""
    known = list(sources)
    if name in known:
        yield name
        return
    folder = name.rstrip("/") + "/"
    yield from (source for source in known if source.startswith(folder) or fnmatchcase(source, name))


PARSERS = ("beautifulsoup4", "lxml", "markdown-it-py", "pymupdf")

_PARSING = ("parsers/**/*.py", "pdf/**/*.py", "renderings/**/*.py", "decode.py", "numbers.py", "parse.py", "types.py")


@dataclass(frozen=True, slots=True)
class Work:
    """One source of the index to be.

    Attributes:
        source: its name in the index.
        sha256: of its bytes; None where they cannot be read.
        file: where it is read; None where it stays as the index before has it.
        known: a source of the index before that was parsed out of the same bytes.
    """

    source: str
    sha256: str | None
    file: Source | None = None
    known: str | None = None

    @property
    def key(self) -> str:
        """What parsing it depends on."""
        return digest(kind_of(self.source), self.sha256 or "", parser_version())


def plan_files(sources: Sequence[Source], before: Before | None) -> list[Work]:
    """What is to be done for files; those with the bytes and parser of one in the index before need no parsing."""
    known = {} if before is None else {
        (kind_of(source), entry.sha256): source for source, entry in before.manifest.sources.items()
        if before.parser(source) == parser_version()}
    return [Work(source.relative, found := hash_of(source), source,
                 source.relative if _as_before(source.relative, found, before) else
                 known.get((kind_of(source.relative), found or ""))) for source in sources]


def plan_added(sources: Sequence[Source], before: Before) -> list[Work]:
    """As `plan_files`, and what else is in the index before stays; one of the same name is replaced."""
    added = plan_files(sources, before)
    names = {work.source for work in added}
    return sorted([*added, *(work for work in plan_kept(before) if work.source not in names)],
                  key=lambda work: work.source)


def plan_kept(before: Before) -> list[Work]:
    """Everything that is in the index before stays."""
    return [Work(source, entry.sha256) for source, entry in before.manifest.sources.items()]


def plan_removed(names: Sequence[str], before: Before) -> list[Work]:
    """What stays when the sources of these names, folders or patterns are taken out.

    Raises:
        IndexFolderError: a name is of nothing in the index, or nothing would be left.
    """
    gone = {source for name in names for source in _named(name, before)}
    kept = [work for work in plan_kept(before) if work.source not in gone]
    if not kept:
        raise IndexFolderError("nothing would be left in the index: delete its folder, or build it of other sources")
    return kept


def parsing_code() -> list[Path]:
    """The files that decide what a document becomes; not those that find, fetch or cut, or that start processes."""
    (folder,) = map(Path, documents.__path__)
    return sorted(path for pattern in _PARSING for path in folder.glob(pattern))


@cache
def parser_version() -> str:
    """Hash of the code of `documents` that parses, and of the versions of the libraries it parses with."""
    code = [path.read_text(encoding="utf-8") for path in parsing_code()]
    return digest(*code, *(f"{name} {importlib.metadata.version(name)}" for name in PARSERS))


def hash_of(source: Source) -> str | None:
    """The SHA-256 of a file's bytes; None where they cannot be read, and reading it says why."""
    try:
        return None if source.problem else sha256_of(source.path)
    except OSError:
        return None


def kind_of(source: str) -> str:
    """The parser that the suffix of a name picks."""
    return SUFFIXES.get(PurePosixPath(source).suffix.lower(), "")


def _as_before(source: str, sha256: str | None, before: Before | None) -> bool:
    """Of several with the same bytes, one that stays under its name is not taken for another."""
    entry = None if before is None else before.entry(source)
    return (before is not None and entry is not None and entry.sha256 == sha256
            and before.parser(source) == parser_version())


def _named(name: str, before: Before) -> Iterator[str]:
    found = list(matching(name, before.manifest.sources))
    if not found:
        raise IndexFolderError(f"no source of the index is called {name}, lies below it or matches it: name sources as "
                               "`ragbed search` shows them, by their path below the folder that was indexed")
    yield from found
