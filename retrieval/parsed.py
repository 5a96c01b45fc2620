"""The documents of an index: parsed now, or taken from the index before where the bytes are, under whatever name."""
from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath

import documents
from documents.errors import DocumentError, IndexFolderError
from documents.load import read_documents
from documents.sources import SUFFIXES, Source
from documents.types import Document, digest
from retrieval.files import sha256_of
from retrieval.manifest import SourceEntry, check_files, read_manifest

PARSERS = ("beautifulsoup4", "lxml", "markdown-it-py", "pymupdf")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the sources became.

    Attributes:
        documents: in the order of the sources.
        entries: by the source's relative path.
        fresh: how many documents were parsed now.
    """

    documents: list[Document]
    entries: dict[str, SourceEntry]
    skipped: list[DocumentError]
    fresh: int


def parse(sources: Sequence[Source], before: Path, advance: Callable[[int, int], None]) -> Parsed:
    """Documents of the sources; those with the bytes and the parser of the index in `before` come from there.

    Args:
        before: an index folder, which may be missing or damaged.
        advance: is told how many sources are done, and of how many.
    """
    hashes = {source.relative: _hash(source) for source in sources}
    results: dict[str, Document | DocumentError] = dict(_kept(before, hashes))
    advance(len(results), len(sources))
    missing = [source for source in sources if source.relative not in results]
    for source, result in zip(missing, read_documents(missing) if missing else (), strict=True):
        results[source.relative] = result
        advance(len(results), len(sources))
    ordered = [results[source.relative] for source in sources]
    found = [result for result in ordered if isinstance(result, Document)]
    fresh = sum(isinstance(results[source.relative], Document) for source in missing)
    entries = {document.source: SourceEntry(document=document.id, sha256=hashes[document.source] or "")
               for document in found}
    return Parsed(found, entries, [result for result in ordered if isinstance(result, DocumentError)], fresh)


@cache
def parser_version() -> str:
    """Hash of the code of `documents` and the versions of the libraries it parses with."""
    (folder,) = documents.__path__
    code = [path.read_text(encoding="utf-8") for path in sorted(Path(folder).rglob("*.py"))]
    return digest(*code, *(f"{name} {importlib.metadata.version(name)}" for name in PARSERS))


def _hash(source: Source) -> str | None:
    try:
        return None if source.problem else sha256_of(source.path)
    except OSError:
        return None  # read_documents says why it cannot be read


def _kept(before: Path, hashes: dict[str, str | None]) -> dict[str, Document]:
    from retrieval.index import DOCUMENTS
    from retrieval.tables import DocumentTable

    try:
        manifest = read_manifest(before)
        check_files(manifest, before)
    except IndexFolderError:
        return {}  # nothing there, or nothing to trust: it will be replaced
    if manifest.parser != parser_version():
        return {}
    wanted = {_content(source, sha256) for source, sha256 in hashes.items()}
    known: dict[tuple[str, str | None], Document] = {}
    for document in DocumentTable(before / DOCUMENTS):
        content = _content(document.source, manifest.sources[document.source].sha256)
        if content in wanted:
            known[content] = document
    return {source: _renamed(known[_content(source, sha256)], source) for source, sha256 in hashes.items()
            if _content(source, sha256) in known}


def _content(source: str, sha256: str | None) -> tuple[str, str | None]:
    """What parsing depends on: the suffix picks the parser."""
    return SUFFIXES.get(PurePosixPath(source).suffix.lower(), ""), sha256


def _renamed(document: Document, source: str) -> Document:
    """What parsing the same bytes under another name gives: without a title of its own, the name is the title."""
    name = PurePosixPath(document.source).name
    title = PurePosixPath(source).name if document.title == name else document.title
    return replace(document, id=digest(source), source=source, title=title)
