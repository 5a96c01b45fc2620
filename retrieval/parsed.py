"""The documents of an index: parsed now, or taken from the index before where the bytes are the same."""
from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import documents
from documents.errors import DocumentError, IndexFolderError
from documents.load import read_documents
from documents.sources import Source
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
        results[source.relative] = _filled(result)
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
    same = {source for source, entry in manifest.sources.items() if entry.sha256 == hashes.get(source)}
    return {document.source: document for document in DocumentTable(before / DOCUMENTS) if document.source in same}


def _filled(result: Document | DocumentError) -> Document | DocumentError:
    if isinstance(result, Document) and not result.plain.strip():
        return DocumentError(result.source, "holds no text")
    return result
