"""Plan what to do for each source of an index, and stream the documents, which are parsed now, cached, or given."""
from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from importlib.util import find_spec, resolve_name
from pathlib import Path, PurePosixPath

from ragbed import guests
from ragbed.documents.errors import DocumentError, IndexFolderError
from ragbed.documents.parsers import clean_html
from ragbed.documents.paths import keep_hidden_text
from ragbed.documents.sources import Source, drop_taken_ids, parsers_by_suffix, suffix_of
from ragbed.documents.types import Document, digest
from ragbed.documents.workers import read_documents
from ragbed.retrieval.building.chunked_documents import ChunkedDocument
from ragbed.retrieval.building.previous_index import Incoming, ParsedDocuments, PreviousIndex
from ragbed.retrieval.filters.metadata import Metadata, unknown_sources
from ragbed.retrieval.storage.files import sha256_of, sha256_of_span
from ragbed.retrieval.storage.folder import backup_of
from ragbed.retrieval.storage.manifest import CHUNKS, DOCUMENTS, MANIFEST, VECTORS, is_manifest

_FILES = {MANIFEST, CHUNKS, DOCUMENTS}
_PARSERS = ("beautifulsoup4", "lxml", "mammoth", "markdown-it-py", "openpyxl", "olefile", "pymupdf", "python-pptx",
            "rapidocr-onnxruntime", "striprtf")
_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+)?import\s+(\([^)]*\)|[^\n;#]+)", re.MULTILINE)
_ATTEMPTS = 3  # attempts to read a file that changes while it is read


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
    known: str | None = None  # source of the previous index with the same bytes

    @property
    def key(self) -> str:
        """Hash of everything that affects parsing."""
        return digest(file_kind(self.name), self.sha256 or "", parser_version(self.file is not None and self.file.ocr))


def match_sources(name: str, sources: Iterable[str]) -> Iterator[str]:
    """Yield the source with this name. If there is none, yield the sources in this folder, or that match this
    pattern."""
    known = list(sources)
    if name in known:
        yield name
        return
    inside = (name.rstrip("/") + "/", f"{name}#")  # of a folder, or of a file of records
    yield from (source for source in known if source.startswith(inside) or fnmatchcase(source, name))


def plan_files(sources: Sequence[Source], previous: PreviousIndex | None) -> list[SourcePlan]:
    """Plan which files to parse: those whose bytes or parser differ from the previous index."""
    recognised = {source.relative for source in sources if source.ocr}
    versions = {ocr: parser_version(ocr) for ocr in (False, True)}
    same = {} if previous is None else {
        source: entry.sha256 for source, entry in previous.manifest.sources.items()
        if (entry.parser or previous.manifest.parser) == versions[source in recognised]}
    known = {(file_kind(source), sha256): source for source, sha256 in same.items()}
    # A source with the same name is matched first, even if others have the same bytes.
    return [SourcePlan(name := source.relative, found := file_hash(source), source,
                       name if found and same.get(name) == found else known.get((file_kind(name), found or "")))
            for source in sources]


def plan_added(sources: Sequence[Source], previous: PreviousIndex) -> list[SourcePlan]:
    """Plan files to add. They replace sources of the same name; the other sources of the previous index stay."""
    plans = {source: SourcePlan(source, entry.sha256) for source, entry in previous.manifest.sources.items()}
    new = {source.relative for source in sources}
    taken = {entry.document for source, entry in previous.manifest.sources.items() if source not in new}
    plans |= {plan.name: plan for plan in plan_files(drop_taken_ids(sources, taken), previous)}
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


def parser_version(ocr: bool = False) -> str:
    """Return a hash of everything that determines how files are parsed: code, library versions, guests' parsers,
    whether hidden text is kept, and whether text in pictures is recognised."""
    version = _parser_version(keep_hidden_text())
    return digest(version, "ocr") if ocr else version


@cache
def _parser_version(keeps: bool) -> str:
    own = {suffix: target for slot in ("parser", "ocr") for suffix, target in guests.entries(slot).items()}
    parsers = [f"ragbed.documents.parsers.{path.stem}" for path in Path(clean_html.__file__).parent.glob("*.py")]
    code = dict[str, str]()
    for target in ("ragbed.documents.parse", *parsers, *own.values()):
        _collect_code(target.partition(":")[0], code)
    return digest(str(keeps), *(f"{name} {_version(name)}" for name in _PARSERS), *map(" ".join, sorted(own.items())),
                  *map(" ".join, sorted(code.items())))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _collect_code(module: str, code: dict[str, str]) -> None:
    """Add the hash of a module's code to `code`, and those of the modules that it imports from its package or folder.
    """
    try:
        found = find_spec(module)
    except (ImportError, ValueError):  # the name of a class or a function
        return
    path = Path(found.origin) if found and found.origin else Path()
    if not found or module in code or module == "ragbed.guests" or path.suffix != ".py":
        return
    content = path.read_bytes()
    code[module] = sha256(content).hexdigest()
    for origin, listed in _IMPORT.findall(content.decode("utf-8", "replace")):
        package = resolve_name(origin, found.parent) if origin.startswith(".") else origin
        names = [one.split()[0] for one in listed.strip("()").split(",") if one.strip()]
        for name in (package, *(f"{package}.{one}".lstrip(".") for one in names)):
            top = name.partition(".")[0]
            if top == module.partition(".")[0] or (not found.parent and (path.parent / f"{top}.py").is_file()):
                _collect_code(name, code)


def file_hash(source: Source) -> str | None:
    """Return the SHA-256 of a file's bytes; None if they cannot be read."""
    try:
        if source.problem:
            return None
        return sha256_of(source.path) if source.span is None else sha256_of_span(source.path, *source.span)
    except OSError:
        return None


def file_kind(source: str) -> str:
    """Return the parser for the suffix of a name; empty if there is none."""
    return parsers_by_suffix().get(suffix_of(source).lower(), "")


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
    """Return the document of a planned source. `result` is the result of parsing, or None if it was not parsed now."""
    if source.file is None or source.known is not None:
        assert previous is not None
        name = source.known or source.name
        document = previous.documents[previous.manifest.sources[name].document]
        moved = rename_document(document, source.name, source.file.id if source.file else document.id)
        return Incoming(moved, source.sha256 or "", previous.parser(name), same=moved is document)
    result = result or parsed.errors.get(source.name)
    cached = parsed.get(source.key) if result is None else None
    if cached is not None:
        return Incoming(rename_document(cached, source.name, source.file.id), source.sha256 or "",
                        parser_version(source.file.ocr), fresh=source.key in parsed.added)
    return _read_unchanged(source, result or next(read_documents([source.file])), parsed)


def stream_documents(documents: Iterable[Document], previous: PreviousIndex | None,
                     metadata: Metadata) -> DocumentStream:
    """Yield documents that the caller has parsed, in order. Raises DocumentError if two have the same source or id, or
    metadata names a source that is not among them."""
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
    if lost := unknown_sources(metadata, sources):
        raise DocumentError("metadata", f"source {lost[0]} is not among the documents")


def rename_document(document: Document, source: str, id: str | None = None) -> Document:
    """Return the document with another source name, which also serves as its title if it has none, and another id."""
    if document.source == source and document.id == (id or digest(source)):
        return document
    name = PurePosixPath(document.source).name
    title = PurePosixPath(source).name if document.title == name else document.title
    return replace(document, id=id or digest(source), source=source, title=title)


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
            return Incoming(result, now, parser_version(file.ocr), fresh=True)
        source = replace(source, sha256=now)
        result = next(read_documents([file]))
    return DocumentError(source.name, "keeps changing while it is read; index it again later")
