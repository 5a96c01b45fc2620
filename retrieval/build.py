"""Building an index: parse, chunk, embed, write; what was done before is not done again."""
from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from documents.errors import DocumentError, IndexFolderError
from documents.sources import find_sources
from documents.types import Chunk, Document
from retrieval.cache import CachedEmbedder
from retrieval.embedder import Embedder
from retrieval.folder import alone, replaced, set_aside, settled
from retrieval.index import CHUNKS, DOCUMENTS, VECTORS
from retrieval.manifest import MANIFEST, EmbedderEntry, Manifest, Skipped, is_manifest, write_manifest
from retrieval.parsed import Parsed, parse, parser_version
from retrieval.sentence import SentenceEmbedder
from retrieval.settings import IndexSettings
from retrieval.tables import write_chunks, write_documents
from retrieval.vectors import VectorIndex

if TYPE_CHECKING:
    from retrieval.embedder import Matrix

TITLE_CHARACTERS = 120
"""Of a title, what is embedded in front of each chunk: some web pages put a paragraph there."""

NAME_CHARACTERS = 60

OWN_FILES = {MANIFEST, VECTORS, CHUNKS, DOCUMENTS}


class Progress(Protocol):
    """Is told how far a stage (`parse`, `chunk`, `embed`, `write`) has come; `total` None where unknown."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """A progress that shows nothing."""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What building an index did.

    Attributes:
        parsed: sources read now; the other documents' renderings came from the index before.
        windows: vectors in the index.
        embedded_now: distinct texts that the model embedded in this build.
        reused: distinct texts whose vectors were in the cache.
        how: one sentence on how the vectors are searched.
        seconds: by stage.
    """

    documents: int
    parsed: int
    chunks: int
    windows: int
    embedded_now: int
    reused: int
    skipped: tuple[DocumentError, ...]
    how: str
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cut:
    """Chunks, the number of windows of each, and the text of every window as it is embedded."""

    chunks: list[Chunk]
    windows: list[int]
    texts: list[str]


def build_index(sources: Sequence[str | Path], out: Path, settings: IndexSettings | None = None,
                progress: Progress = silent, embedder: Embedder | None = None) -> BuildReport:
    """Index files, folders and globs into the folder `out`, replacing the index there, if any.

    Sources whose bytes were indexed before, under whatever name, are not parsed again; texts embedded before are not
    embedded again (where `titled`, the name is part of the text, so that a renamed file is embedded anew); what is
    gone from the sources is gone from the index. A kill at any moment leaves the old index in place
    and the embeddings made so far in the cache.

    Args:
        embedder: in place of the one that the settings name.

    Raises:
        DocumentError: a named path does not exist.
        IndexFolderError: nothing can be indexed, or `out` holds something else, cannot be written, or is being
            built by another process.
        SettingsError: the cache folder cannot be written.
        ModelError: the embedder is not on this machine.
    """
    with alone(out.absolute()):
        return _build(sources, out.absolute(), settings or IndexSettings(), progress, embedder)


def _build(sources: Sequence[str | Path], out: Path, settings: IndexSettings, progress: Progress,
           embedder: Embedder | None) -> BuildReport:
    _check_out(out)
    seconds: dict[str, float] = {}
    cached = CachedEmbedder(embedder or SentenceEmbedder.named(settings.embedder))
    with _timed(seconds, "parse"):
        parsed = parse(find_sources(sources), settled(out), lambda done, total: progress("parse", done, total))
    with _timed(seconds, "chunk"):
        cut = _cut(parsed.documents, settings, cached, progress)
    if not cut.chunks:
        raise IndexFolderError(_nothing(parsed.skipped))
    with _timed(seconds, "embed"):
        vectors = embed_texts(cut.texts, cached, progress)
    with _timed(seconds, "write"):
        progress("write", 0, 1)
        index = VectorIndex.build(vectors, settings.vectors)
        _write(out, parsed, cut, index, settings, cached)
        progress("write", 1, 1)
    return BuildReport(len(parsed.documents), parsed.fresh, len(cut.chunks), len(cut.texts), cached.embedded,
                       cached.reused, tuple(parsed.skipped), index.describe(), seconds)


def _check_out(out: Path) -> None:
    try:
        if out.exists() and not out.is_dir():
            raise IndexFolderError(f"{out} is a file: name a folder for the index")
        for replaceable in (out, set_aside(out)):
            if replaceable.is_dir():
                _check_own(replaceable)
    except OSError as error:
        raise IndexFolderError(f"{out} cannot be used: {error.strerror}; name another folder") from error


def _check_own(folder: Path) -> None:
    """Nothing but an index is ever replaced: other things too have a file called manifest.json."""
    names = {path.name for path in folder.iterdir()}
    strange = sorted(names - OWN_FILES)
    if names and not (names == OWN_FILES or is_manifest(folder / MANIFEST)):
        raise IndexFolderError(f"{folder} is not empty and is no index: name another folder")
    if strange:
        raise IndexFolderError(f"{folder} is an index, but also holds {strange[0]}, which would be lost: move it away, "
                               "or name another folder")


def _nothing(skipped: Sequence[DocumentError]) -> str:
    if not skipped:
        return "nothing to index: no HTML, PDF, text or Markdown file was found"
    shown = "; ".join(map(str, skipped[:5])) + (f"; and {len(skipped) - 5} more" if len(skipped) > 5 else "")
    return f"nothing to index: {shown}"


def _cut(documents: Sequence[Document], settings: IndexSettings, embedder: Embedder, progress: Progress) -> Cut:
    cut = Cut([], [], [])
    for done, document in enumerate(documents, 1):
        header = _header(document, embedder) if settings.titled else ""
        chunks = [chunk for format in settings.formats for chunk in settings.chunker.chunk(document, format)]
        contents = [chunk.content for chunk in chunks]
        spans = embedder.windows(contents, header)
        cut.chunks.extend(chunks)
        cut.windows.extend(map(len, spans))
        cut.texts.extend(header + content[start:end] for content, windows in zip(contents, spans, strict=True)
                         for start, end in windows)
        progress("chunk", done, len(documents))
    return cut


def _header(document: Document, embedder: Embedder) -> str:
    """The file's name, as words, and the title: of many filings the title is a mere number, or their authority's name.

    On FinanceBench the gold page is among the first 10 for 18 of 22 questions; for 16 with the name only where the
    title has no words.
    """
    name = re.sub(r"[\W_]+", " ", Path(document.source).stem)[:NAME_CHARACTERS].strip()
    title = document.title[:TITLE_CHARACTERS].strip()
    header = title if name.casefold() in title.casefold() else f"{name}: {title}"
    # At most a quarter of the window: a Korean character alone can be three tokens.
    while header and len(embedder.windows([4 * f"{header}\n"])[0]) > 1:
        header = header[:len(header) * 7 // 8].strip()
    return f"{header}\n"


def embed_texts(texts: Sequence[str], embedder: CachedEmbedder, progress: Progress) -> Matrix:
    """Unit vectors of passages, float32 of shape (texts, dimension), telling of the stage `embed`."""
    total, done = len(set(texts)), 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        progress("embed", done, total)

    return embedder.embed_passages(texts, advance)


def _write(out: Path, parsed: Parsed, cut: Cut, index: VectorIndex, settings: IndexSettings,
           embedder: Embedder) -> None:
    manifest = Manifest(
        settings=settings, parser=parser_version(),
        embedder=EmbedderEntry(name=embedder.name, identity=embedder.identity, dimension=index.dimension,
                               window=embedder.window),
        kind=index.settings, how=index.describe(), documents=len(parsed.documents), chunks=len(cut.chunks),
        windows=len(index), sources=parsed.entries,
        skipped=tuple(Skipped(source=error.source, reason=error.reason) for error in parsed.skipped))
    with replaced(out) as fresh:
        index.write(fresh / VECTORS)
        write_chunks(fresh / CHUNKS, cut.chunks, cut.windows)
        write_documents(fresh / DOCUMENTS, parsed.documents)
        write_manifest(manifest, fresh)


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - begun
