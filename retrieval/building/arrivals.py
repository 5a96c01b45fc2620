"""The documents of an index as they arrive, one after the other: read now, read before, or given."""
from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath

from documents.errors import DocumentError
from documents.types import Document, digest
from documents.workers import read_documents
from retrieval.building.plan import Work, hash_of, parser_version
from retrieval.building.preflight import Before, Staging
from retrieval.filters.metadata import Metadata, check_sources

_ATTEMPTS = 3
"""How often a file is read that changes meanwhile."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A document on its way into the index.

    Attributes:
        sha256: of what it was made from.
        parser: what made it.
        fresh: parsed now.
        same: the index before holds it under this name, with this rendering.
    """

    document: Document
    sha256: str
    parser: str
    fresh: bool = False
    same: bool = False


Arriving = Generator[Arrival | DocumentError, None, None]


def of_files(plan: Sequence[Work], before: Before | None, staging: Staging) -> Arriving:
    """The documents of a plan, in its order; what is parsed now is staged before it arrives."""
    missing = [work.file for work in plan if work.file and work.known is None and work.key not in staging]
    results: Iterator[Document | DocumentError] = read_documents(missing) if missing else iter(())
    parsed = {source.relative for source in missing}
    for work in plan:
        yield arrived(work, next(results) if work.source in parsed else None, before, staging)


def arrived(work: Work, result: Document | DocumentError | None, before: Before | None,
            staging: Staging) -> Arrival | DocumentError:
    """The document of a plan's source.

    Args:
        result: what was read of it just now; None where it is known, or staged.
    """
    if work.file is None or work.known is not None:
        assert before is not None
        return _kept(work, before)
    staged = staging.get(work.key) if result is None else None
    if staged is not None:
        return Arrival(renamed(staged, work.source), work.sha256 or "", parser_version())
    return _read(work, result or next(read_documents([work.file])), staging)


def of_documents(documents: Iterable[Document], before: Before | None, metadata: Metadata) -> Arriving:
    """Documents that are given, in their order.

    Raises:
        DocumentError: two have one source or one id, or there is metadata of a source that did not come.
    """
    sources: set[str] = set()
    ids: set[str] = set()
    for document in documents:
        if document.source in sources or document.id in ids:
            raise DocumentError(document.source, "another document has this source or id")
        sources.add(document.source)
        ids.add(document.id)
        sha256 = digest(json.dumps(asdict(document)))
        entry = before.entry(document.source) if before is not None else None
        same = (entry is not None and (entry.document, entry.sha256) == (document.id, sha256) and before is not None
                and before.parser(document.source) == parser_version())
        yield Arrival(document, sha256, parser_version(), not same, same)
    check_sources(metadata, sources)


def renamed(document: Document, source: str) -> Document:
    """What parsing the same bytes under another name gives: without a title of its own, the name is the title."""
    if document.source == source:
        return document
    name = PurePosixPath(document.source).name
    title = PurePosixPath(source).name if document.title == name else document.title
    return replace(document, id=digest(source), source=source, title=title)


def _kept(work: Work, before: Before) -> Arrival:
    source = work.known or work.source
    document = before.document(source)
    moved = renamed(document, work.source)
    return Arrival(moved, work.sha256 or "", before.parser(source), same=moved is document)


def _read(work: Work, result: Document | DocumentError, staging: Staging) -> Arrival | DocumentError:
    """What was read, if the bytes are still those whose hash is kept with it: files change while they are read."""
    file = work.file
    assert file is not None
    for _ in range(_ATTEMPTS):
        if isinstance(result, DocumentError):
            return result
        now = hash_of(file)
        if now is not None and now == work.sha256:
            staging.put(work.key, result)
            return Arrival(result, now, parser_version(), fresh=True)
        work = replace(work, sha256=now)
        result = next(read_documents([file]))
    return DocumentError(work.source, "changes while it is read: index it again when it is still")
