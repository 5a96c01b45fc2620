"""Plans what an index holds, source by source, and gives its documents: read now, read before, or given."""
from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

import ragbed.documents
from ragbed import guests
from ragbed.documents.errors import DocumentError, IndexFolderError
from ragbed.documents.paths import keep_hidden_text
from ragbed.documents.sources import Source, parsers_by_suffix
from ragbed.documents.types import Document, digest
from ragbed.documents.workers import read_documents
from ragbed.retrieval.building.before import Arrival, Before, Staging
from ragbed.retrieval.building.pieces import Piece
from ragbed.retrieval.filters.metadata import Metadata, check_sources
from ragbed.retrieval.storage.files import sha256_of
from ragbed.retrieval.storage.folder import set_aside
from ragbed.retrieval.storage.manifest import CHUNKS, DOCUMENTS, MANIFEST, VECTORS, is_manifest

OWN_FILES = {MANIFEST, CHUNKS, DOCUMENTS}


def check_place(out: Path) -> None:
    """Raise IndexFolderError where `out` holds something else than an index, or cannot be used."""
    try:
        if out.exists() and not out.is_dir():
            raise IndexFolderError(f"{out} is a file: name a folder for the index")
        for folder in filter(Path.is_dir, (out, set_aside(out))):
            names = {path.name for path in folder.iterdir()}
            # Other things too have a file called manifest.json.
            if names and not ({MANIFEST, CHUNKS, DOCUMENTS} <= names or is_manifest(folder / MANIFEST)):
                raise IndexFolderError(f"{folder} is not empty and is no index: name another folder")
            if strange := sorted(name for name in names - OWN_FILES if not name.startswith(VECTORS)):
                raise IndexFolderError(f"{folder} is an index, but also holds {strange[0]}, which would be lost: move "
                                       "it away, or name another folder")
    except OSError as error:
        raise IndexFolderError(f"{out} cannot be used: {error.strerror}; name another folder") from error


def matching(name: str, sources: Iterable[str]) -> Iterator[str]:
    """Return the sources of that name; where there is none, those in a folder of that name, or matching the pattern."""
    known = list(sources)
    if name in known:
        yield name
        return
    folder = name.rstrip("/") + "/"
    yield from (source for source in known if source.startswith(folder) or fnmatchcase(source, name))


PARSERS = ("beautifulsoup4", "lxml", "mammoth", "markdown-it-py", "openpyxl", "pymupdf", "python-pptx")

_PARSING = ("parsers/*.py", "numbers.py", "parse.py", "types.py")


@dataclass(frozen=True, slots=True)
class Work:
    """One source of the index to be."""

    source: str  # its name in the index
    sha256: str | None  # of its bytes; None where they cannot be read
    file: Source | None = None  # where it is read; None where it stays as the index before has it
    known: str | None = None  # a source of the index before that was parsed out of the same bytes

    @property
    def key(self) -> str:
        """A hash of all that parsing it depends on."""
        return digest(kind_of(self.source), self.sha256 or "", parser_version())


def plan_files(sources: Sequence[Source], before: Before | None) -> list[Work]:
    """Plan what is done for files; those with the bytes and parser of one in the index before need no parsing."""
    same = {} if before is None else {source: entry.sha256 for source, entry in before.manifest.sources.items()
                                      if before.parser(source) == parser_version()}
    known = {(kind_of(source), sha256): source for source, sha256 in same.items()}
    # A source that, of several with the same bytes, stays under its name is not taken for another.
    return [Work(name := source.relative, found := hash_of(source), source,
                 name if found and same.get(name) == found else known.get((kind_of(name), found or "")))
            for source in sources]


def plan_added(sources: Sequence[Source], before: Before) -> list[Work]:
    """Plan as `plan_files` does; what else is in the index before stays, and one of the same name is replaced."""
    works = {source: Work(source, entry.sha256) for source, entry in before.manifest.sources.items()}
    works |= {work.source: work for work in plan_files(sources, before)}
    return sorted(works.values(), key=lambda work: work.source)


def plan_removed(names: Sequence[str], before: Before) -> list[Work]:
    """Plan what stays when the sources of these names, folders or patterns are taken out. Raises IndexFolderError where
    a name is of nothing in the index, or nothing would be left."""
    kept = dict(before.manifest.sources)
    for name in names:
        gone = list(matching(name, before.manifest.sources))
        if not gone:
            raise IndexFolderError(f"no source of the index is called {name}, lies below it or matches it: name "
                                   "sources as `ragbed search` shows them, by their path below the folder that was "
                                   "indexed")
        for source in gone:
            kept.pop(source, None)
    if not kept:
        raise IndexFolderError("nothing would be left in the index: delete its folder, or build it of other sources")
    return [Work(source, entry.sha256) for source, entry in kept.items()]


def parsing_code() -> list[Path]:
    """Return the files that decide what a document becomes, not those that find, fetch or cut, or start processes."""
    (folder,) = map(Path, ragbed.documents.__path__)
    return sorted(path for pattern in _PARSING for path in folder.glob(pattern))


def parser_version() -> str:
    """Hash of the code of `documents` that parses, of the versions of the libraries it parses with, and of whether what
    no reader can see is kept."""
    return _parser_version(keep_hidden_text())


@cache
def _parser_version(keeps: bool) -> str:
    code = [path.read_text(encoding="utf-8") for path in parsing_code()]
    own = (f"{suffix} {target} {_source_of(target)}" for suffix, target in guests.entries("parser").items())
    return digest(str(keeps), *code, *(f"{name} {_version(name)}" for name in PARSERS), *own)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _source_of(target: str) -> str:
    """Return the code of the module that a "module:attribute" names, as far as it is a file."""
    found = find_spec(target.partition(":")[0])
    return Path(found.origin).read_bytes().hex() if found and found.origin else ""


def hash_of(source: Source) -> str | None:
    """Return the SHA-256 of a file's bytes; None where they cannot be read, and reading it says why."""
    try:
        return None if source.problem else sha256_of(source.path)
    except OSError:
        return None


def kind_of(source: str) -> str:
    """Return the parser that the suffix of a name picks."""
    return parsers_by_suffix().get(PurePosixPath(source).suffix.lower(), "")


_ATTEMPTS = 3  # how often a file is read that changes meanwhile


Arriving = Generator[Arrival | Piece | DocumentError, None, None]


def of_files(plan: Sequence[Work], before: Before | None, staging: Staging) -> Arriving:
    """Return the documents of a plan, in its order; what is parsed now is staged before it arrives."""
    missing = [work.file for work in plan if work.file and work.known is None and work.key not in staging
               and work.source not in staging.refused]
    results: Iterator[Document | DocumentError] = read_documents(missing) if missing else iter(())
    parsed = {source.relative for source in missing}
    for work in plan:
        yield arrived(work, next(results) if work.source in parsed else None, before, staging)


def arrived(work: Work, result: Document | DocumentError | None, before: Before | None,
            staging: Staging) -> Arrival | DocumentError:
    """Return the document of a plan's source: `result`, if it was read just now, else None."""
    if work.file is None or work.known is not None:
        assert before is not None
        source = work.known or work.source
        document = before.documents[before.manifest.sources[source].document]
        moved = renamed(document, work.source)
        return Arrival(moved, work.sha256 or "", before.parser(source), same=moved is document)
    result = result or staging.refused.get(work.source)
    staged = staging.get(work.key) if result is None else None
    if staged is not None:
        return Arrival(renamed(staged, work.source), work.sha256 or "", parser_version())
    return _read(work, result or next(read_documents([work.file])), staging)


def of_documents(documents: Iterable[Document], before: Before | None, metadata: Metadata) -> Arriving:
    """Yield given documents, in their order. Raises DocumentError where two have one source or one id, or there is
    metadata of a source that did not come."""
    sources: set[str] = set()
    ids: set[str] = set()
    for document in documents:
        if document.source in sources or document.id in ids:
            raise DocumentError(document.source, "another document has this source or id")
        sources.add(document.source)
        ids.add(document.id)
        sha256 = digest(json.dumps(asdict(document)))
        entry = None if before is None else before.manifest.sources.get(document.source)
        same = (before is not None and entry is not None and (entry.document, entry.sha256) == (document.id, sha256)
                and before.parser(document.source) == parser_version())
        yield Arrival(document, sha256, parser_version(), not same, same)
    check_sources(metadata, sources)


def renamed(document: Document, source: str) -> Document:
    """Return what parsing the same bytes under another name gives: without an own title, the name is the title."""
    if document.source == source:
        return document
    name = PurePosixPath(document.source).name
    title = PurePosixPath(source).name if document.title == name else document.title
    return replace(document, id=digest(source), source=source, title=title)


def _read(work: Work, result: Document | DocumentError, staging: Staging) -> Arrival | DocumentError:
    """The document, if the bytes are still those whose hash is kept with it: files change while they are read."""
    file = work.file
    assert file is not None
    for _ in range(_ATTEMPTS):
        if isinstance(result, DocumentError):
            staging.refused[work.source] = result
            return result
        now = hash_of(file)
        if now is not None and now == work.sha256:
            staging.put(work.key, result)
            return Arrival(result, now, parser_version(), fresh=True)
        work = replace(work, sha256=now)
        result = next(read_documents([file]))
    return DocumentError(work.source, "changes while it is read: index it again when it is still")
