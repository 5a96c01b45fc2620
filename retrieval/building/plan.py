"""Plan an index source by source, and stream its documents, whether parsed now, parsed before, or given."""
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
from ragbed.retrieval.building.chunked_documents import ChunkedDocument
from ragbed.retrieval.building.previous_index import Incoming, ParsedDocuments, PreviousIndex
from ragbed.retrieval.filters.metadata import Metadata, check_sources
from ragbed.retrieval.storage.files import sha256_of
from ragbed.retrieval.storage.folder import backup_of
from ragbed.retrieval.storage.manifest import CHUNKS, DOCUMENTS, MANIFEST, VECTORS, is_manifest

_FILES = {MANIFEST, CHUNKS, DOCUMENTS}
_PARSERS = ("beautifulsoup4", "lxml", "mammoth", "markdown-it-py", "openpyxl", "pymupdf", "python-pptx")
_PARSING_CODE = ("parsers/*.py", "numbers.py", "parse.py", "types.py")
_ATTEMPTS = 3  # attempts to read a file that changes meanwhile


def check_place(out: Path) -> None:
    """Raise IndexFolderError if `out` contains something other than an index, or cannot be used."""
    try:
        if out.exists() and not out.is_dir():
            raise IndexFolderError(f"{out} is a file; name a folder for the index")
        for folder in filter(Path.is_dir, (out, backup_of(out))):
            names = {path.name for path in folder.iterdir()}
            # Other programs also write a file called manifest.json.
            if names and not ({MANIFEST, CHUNKS, DOCUMENTS} <= names or is_manifest(folder / MANIFEST)):
                raise IndexFolderError(f"{folder} is not empty and not an index; name another folder")
            if strange := sorted(name for name in names - _FILES if not name.startswith(VECTORS)):
                raise IndexFolderError(f"{folder} is an index, but also contains {strange[0]}, which would be lost; "
                                       "move it away, or name another folder")
    except OSError as error:
        raise IndexFolderError(f"{out} cannot be used: {error.strerror}; name another folder") from error


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """What to do for one source of the new index."""

    name: str  # name of the source in the index
    sha256: str | None  # hash of its bytes; None if they cannot be read
    file: Source | None = None  # file to read; None if the source stays as it is in the previous index
    known: str | None = None  # a source of the previous index that was parsed from the same bytes

    @property
    def key(self) -> str:
        """Hash of everything that affects parsing."""
        return digest(file_kind(self.name), self.sha256 or "", parser_version())


def match_sources(name: str, sources: Iterable[str]) -> Iterator[str]:
    """Yield the source with this name. If there is none, yield the sources below a folder of this name, or those
    matching it as a pattern."""
    known = list(sources)
    if name in known:
        yield name
        return
    folder = name.rstrip("/") + "/"
    yield from (source for source in known if source.startswith(folder) or fnmatchcase(source, name))


def plan_files(sources: Sequence[Source], previous: PreviousIndex | None) -> list[SourcePlan]:
    """Plan files. Those whose bytes and parser are the same as in the previous index are not parsed again."""
    same = {} if previous is None else {source: entry.sha256 for source, entry in previous.manifest.sources.items()
                                        if previous.parser(source) == parser_version()}
    known = {(file_kind(source), sha256): source for source, sha256 in same.items()}
    # A source that keeps its name matches itself first, even if others have the same bytes.
    return [SourcePlan(name := source.relative, found := file_hash(source), source,
                       name if found and same.get(name) == found else known.get((file_kind(name), found or "")))
            for source in sources]


def plan_added(sources: Sequence[Source], previous: PreviousIndex) -> list[SourcePlan]:
    """Plan files to add. They replace sources of the same name; the other sources of the previous index stay."""
    plans = {source: SourcePlan(source, entry.sha256) for source, entry in previous.manifest.sources.items()}
    plans |= {plan.name: plan for plan in plan_files(sources, previous)}
    return sorted(plans.values(), key=lambda plan: plan.name)


def plan_removed(names: Sequence[str], previous: PreviousIndex) -> list[SourcePlan]:
    """Plan an index without the sources that these names, folders or patterns match. Raises IndexFolderError if a name
    matches nothing, or nothing would be left."""
    kept = dict(previous.manifest.sources)
    for name in names:
        gone = list(match_sources(name, previous.manifest.sources))
        if not gone:
            raise IndexFolderError(f"no source of the index matches {name}; name sources as `ragbed search` shows "
                                   "them, by their path below the indexed folder")
        for source in gone:
            kept.pop(source, None)
    if not kept:
        raise IndexFolderError("nothing would be left in the index; delete its folder, or index other sources")
    return [SourcePlan(source, entry.sha256) for source, entry in kept.items()]


def _parsing_code() -> list[Path]:
    """Return the source files of ragbed that affect parsing, without those that find files, chunk or start processes.
    """
    (folder,) = map(Path, ragbed.documents.__path__)
    return sorted(path for pattern in _PARSING_CODE for path in folder.glob(pattern))


def parser_version() -> str:
    """Return a hash of the parsing code, the versions of its libraries, guests' parsers, and whether hidden text is
    kept."""
    return _parser_version(keep_hidden_text())


@cache
def _parser_version(keeps: bool) -> str:
    code = [path.read_text(encoding="utf-8") for path in _parsing_code()]
    own = (f"{suffix} {target} {_source_of(target)}" for suffix, target in guests.entries("parser").items())
    return digest(str(keeps), *code, *(f"{name} {_version(name)}" for name in _PARSERS), *own)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _source_of(target: str) -> str:
    """Return the code of the module of a "module:attribute" string; empty if it is not a file."""
    found = find_spec(target.partition(":")[0])
    return Path(found.origin).read_bytes().hex() if found and found.origin else ""


def file_hash(source: Source) -> str | None:
    """Return the SHA-256 of a file's bytes; None if they cannot be read."""
    try:
        return None if source.problem else sha256_of(source.path)
    except OSError:
        return None


def file_kind(source: str) -> str:
    """Return the parser for the suffix of a name; empty if there is none."""
    return parsers_by_suffix().get(PurePosixPath(source).suffix.lower(), "")


DocumentStream = Generator[Incoming | ChunkedDocument | DocumentError, None, None]


def stream_files(plan: Sequence[SourcePlan], previous: PreviousIndex | None,
                 parsed: ParsedDocuments) -> DocumentStream:
    """Yield the documents of a plan in order. Newly parsed documents are cached before they are yielded."""
    missing = [source.file for source in plan if source.file and source.known is None and source.key not in parsed
               and source.name not in parsed.errors]
    results: Iterator[Document | DocumentError] = read_documents(missing) if missing else iter(())
    parsing = {file.relative for file in missing}
    for source in plan:
        yield load_document(source, next(results) if source.name in parsing else None, previous, parsed)


def load_document(source: SourcePlan, result: Document | DocumentError | None, previous: PreviousIndex | None,
                  parsed: ParsedDocuments) -> Incoming | DocumentError:
    """Return the document of a planned source; `result` is the result of parsing it now, or None."""
    if source.file is None or source.known is not None:
        assert previous is not None
        name = source.known or source.name
        document = previous.documents[previous.manifest.sources[name].document]
        moved = rename_document(document, source.name)
        return Incoming(moved, source.sha256 or "", previous.parser(name), same=moved is document)
    result = result or parsed.errors.get(source.name)
    cached = parsed.get(source.key) if result is None else None
    if cached is not None:
        return Incoming(rename_document(cached, source.name), source.sha256 or "", parser_version())
    return _read_unchanged(source, result or next(read_documents([source.file])), parsed)


def stream_documents(documents: Iterable[Document], previous: PreviousIndex | None,
                     metadata: Metadata) -> DocumentStream:
    """Yield given documents in order. Raises DocumentError if two have the same source or id, or metadata names a
    source that is not among them."""
    sources: set[str] = set()
    ids: set[str] = set()
    for document in documents:
        if document.source in sources or document.id in ids:
            raise DocumentError(document.source, "another document has this source or id")
        sources.add(document.source)
        ids.add(document.id)
        sha256 = digest(json.dumps(asdict(document)))
        entry = None if previous is None else previous.manifest.sources.get(document.source)
        same = (previous is not None and entry is not None and (entry.document, entry.sha256) == (document.id, sha256)
                and previous.parser(document.source) == parser_version())
        yield Incoming(document, sha256, parser_version(), not same, same)
    check_sources(metadata, sources)


def rename_document(document: Document, source: str) -> Document:
    """Return the document as if its bytes had been parsed under this name: the name replaces a missing title."""
    if document.source == source:
        return document
    name = PurePosixPath(document.source).name
    title = PurePosixPath(source).name if document.title == name else document.title
    return replace(document, id=digest(source), source=source, title=title)


def _read_unchanged(source: SourcePlan, result: Document | DocumentError,
                    parsed: ParsedDocuments) -> Incoming | DocumentError:
    """Return the document if the file still has the hash that is stored with it; otherwise read it again."""
    file = source.file
    assert file is not None
    for _ in range(_ATTEMPTS):
        if isinstance(result, DocumentError):
            parsed.errors[source.name] = result
            return result
        now = file_hash(file)
        if now is not None and now == source.sha256:
            parsed.put(source.key, result)
            return Incoming(result, now, parser_version(), fresh=True)
        source = replace(source, sha256=now)
        result = next(read_documents([file]))
    return DocumentError(source.name, "changes while it is read; index it again later")
