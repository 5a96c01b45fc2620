"""Write an index: chunk and embed documents, write them to a new folder, and replace the old folder with it."""
from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.errors import DocumentError, IndexFolderError
from ragbed.documents.types import FieldValue
from ragbed.retrieval.building.chunked_documents import BuildJob, ChunkedDocument, LazyEmbedder, chunk_document
from ragbed.retrieval.building.previous_index import PreviousIndex
from ragbed.retrieval.building.source_plan import DocumentStream, SourcePlan, parser_version
from ragbed.retrieval.filters.metadata import field_types
from ragbed.retrieval.storage.cache import check_fit, naming_source
from ragbed.retrieval.storage.folder import replacing, write_errors
from ragbed.retrieval.storage.manifest import CHUNKS, DOCUMENTS, VERSION, Manifest, Skipped, SourceEntry, write_manifest
from ragbed.retrieval.storage.parquet import ChunkWriter, DocumentWriter, canonical
from ragbed.retrieval.types import Matrix, Progress
from ragbed.retrieval.vectors import BuiltVectors, VectorTask


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did, and how long it took."""

    documents: int  # sources in the index
    parsed: int  # sources that were parsed now
    chunks: int
    windows: int  # vectors in the index
    embedded_now: int  # texts that the model embedded in this build
    reused: int  # windows whose vectors came from the cache, the previous index or an equal text
    skipped: tuple[DocumentError, ...]  # sources that could not be read
    how: str  # how the vectors are searched, in one sentence
    seconds: dict[str, float] = field(default_factory=dict)  # seconds by stage
    replaced: int = 0  # sources of the previous index whose content has changed
    removed: int = 0  # sources of the previous index that no longer exist
    hidden: int = 0  # hidden characters left out of the sources parsed now
    unread_pages: Mapping[str, Sequence[int]] = field(default_factory=dict)  # pages without text, of the same sources
    ocr_pages: Mapping[str, Sequence[int]] = field(default_factory=dict)  # pages read by OCR, of the same sources
    unknown_metadata: tuple[str, ...] = ()  # sources of the given metadata that are not in the index
    previous: Manifest | None = None  # of the index in the folder before; None if there was none, or it was damaged


BLOCK = 2_048  # windows to embed together; the embedder sorts them by length
_RAW = "vectors.f32"


class _RawVectors:
    """Rows of a file of float32. Rows are copied, because pages of a mapped file count as used memory."""

    def __init__(self, path: Path, shape: tuple[int, int]) -> None:
        self.shape = shape
        self._path = path

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Matrix:
        found = np.memmap(self._path, np.float32, "r", shape=self.shape)[rows]
        return np.array(found) if isinstance(rows, slice) else np.asarray(found)  # indexing with a list copies already


class IndexWriter:
    """Writes chunks, documents and vectors into a folder, and counts them.

    Raises IndexFolderError, which names the folder `out`, if the folder cannot be written.

    Attributes:
        entries: manifest entries of the sources written so far, by source name.
        metadata: fields that the user gave for these sources, by source name.
        fresh: number of sources that were parsed now.
        windows: number of windows, including those not yet embedded.
    """

    def __init__(self, folder: Path, out: Path, embedder: LazyEmbedder) -> None:
        self._folder = folder
        self._out = out
        self._embedder = embedder
        self.entries: dict[str, SourceEntry] = {}
        self.metadata: dict[str, Mapping[str, FieldValue]] = {}
        self.unread_pages: dict[str, Sequence[int]] = {}
        self.ocr_pages: dict[str, Sequence[int]] = {}
        self.fresh = self.hidden = self.chunks = self.windows = self.embedded = 0
        self._waiting: list[tuple[int, str, str]] = []  # row, source and text
        self._content = hashlib.sha256()
        with write_errors(out):
            self._documents, self._chunks = DocumentWriter(folder / DOCUMENTS), ChunkWriter(folder / CHUNKS)
            self._raw = (folder / _RAW).open("wb")

    def __enter__(self) -> IndexWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        """Close the files. Without `finish` they are incomplete and unusable."""
        self._documents.abandon()
        self._chunks.abandon()
        self._raw.close()

    def add(self, chunked: ChunkedDocument) -> None:
        """Write a document and its chunks. Windows are embedded as soon as they fill a block."""
        first, incoming, document = self.windows, chunked.incoming, chunked.incoming.document
        for part in (document.id, document.source, document.title, chunked.header, canonical(chunked.fields),
                     *(f"{chunk.id} {chunk.pages}" for chunk in chunked.chunks)):
            data = part.encode("utf-8", "surrogatepass")
            self._content.update(f"{len(data)}:".encode() + data)
        with write_errors(self._out):
            self._documents.document(document, chunked.header, chunked.metadata)
            for chunk, count in zip(chunked.chunks, chunked.windows, strict=True):
                self._chunks.chunk(chunk, count)
        parser = None if incoming.parser == parser_version() else incoming.parser
        self.entries[document.source] = SourceEntry(document=document.id, sha256=incoming.sha256, parser=parser)
        if chunked.metadata:
            self.metadata[document.source] = chunked.metadata
        self.fresh += incoming.fresh
        self.hidden += document.hidden
        for kept, pages in ((self.unread_pages, document.unread_pages), (self.ocr_pages, document.ocr_pages)):
            if pages:
                kept[document.source] = pages
        self.chunks += len(chunked.chunks)
        self.windows += sum(chunked.windows)
        if chunked.vectors is not None:
            self._put(range(first, self.windows), chunked.vectors)
        self._waiting.extend((row, document.source, text) for row, text in enumerate(chunked.texts, first))

    def embed(self, report: Callable[[int], None], rest: bool = False) -> None:
        """Embed pending windows in whole blocks; with `rest`, all. Calls `report` with the number embedded."""
        while len(self._waiting) >= (1 if rest else BLOCK):
            block, self._waiting = self._waiting[:BLOCK], self._waiting[BLOCK:]
            done = self.embedded

            def advance(more: int) -> None:
                nonlocal done
                done += more
                report(done)

            if not self._embedder.computes:
                self._put([row for row, *_ in block], np.ones((len(block), self._embedder.dimension), np.float32))
                continue
            with naming_source((source, text) for _, source, text in block):
                vectors = self._embedder.opened.embed_passages([text for *_, text in block], advance)
            check_fit(vectors, self._embedder.dimension, self._embedder.opened.name)
            self._put([row for row, *_ in block], vectors)
            report(self.embedded)

    def finish(self) -> str:
        """Complete the files. Return a hash of the chunks in order and of everything that searches and filters use."""
        with write_errors(self._out):
            self._documents.close()
            self._chunks.close()
            self._raw.close()
        return self._content.hexdigest()[:32]

    @contextmanager
    def vectors(self) -> Iterator[Matrix]:
        """Yield all vectors, float32 of shape (windows, dimension), from their file, which is deleted afterwards."""
        path = self._folder / _RAW
        yield cast("Matrix", _RawVectors(path, (self.windows, self._embedder.dimension)))
        path.unlink()

    def _put(self, rows: list[int] | range, vectors: Matrix) -> None:
        places: NDArray[np.int64] = np.asarray(rows, np.int64)
        width = 4 * self._embedder.dimension
        with write_errors(self._out):
            for run in np.split(np.arange(len(places)), np.flatnonzero(np.diff(places) != 1) + 1):
                if len(run):
                    self._raw.seek(int(places[run[0]]) * width)
                    self._raw.write(np.ascontiguousarray(vectors[run[0]:run[-1] + 1], np.float32).tobytes())
        self.embedded += len(places)


@contextmanager
def _measure(seconds: dict[str, float], stage: str) -> Iterator[None]:
    begun = time.perf_counter()
    try:
        yield
    finally:
        seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - begun


def write_index(job: BuildJob, documents: DocumentStream, progress: Progress) -> BuildReport:
    """Build the index of these documents. Raises IndexFolderError if there is nothing to index, or the folder cannot be
    written. Raises ModelError if the embedder is needed but not on this machine."""
    seconds, added = dict[str, float](), 0
    held = job.previous.remote_vectors if job.previous else None
    with replacing(job.out) as fresh, IndexWriter(fresh, job.out, job.embedder) as writer:
        skipped = _add_all(job, documents, writer, seconds, progress)
        if not writer.chunks and job.shard is None:  # a shard may be empty
            more = f"; and {len(skipped) - 5} more" if len(skipped) > 5 else ""
            why = "; ".join(map(str, skipped[:5])) or "no file of a supported type was found"
            raise IndexFolderError(f"nothing to index: {why}{more}")
        with _measure(seconds, "write"):
            content = writer.finish()
        with _measure(seconds, "index"), writer.vectors() as vectors:
            def advance(more: int) -> None:
                nonlocal added
                added += more
                progress("index", added, writer.windows)

            advance(0)
            kind, why = job.choose(*vectors.shape)
            if job.previous is not None and job.previous.gave_rounded and kind != job.previous.manifest.kind:
                kind, why = job.previous.manifest.kind, "as before, because its vectors are rounded"
            index = kind.build(VectorTask(vectors, why, job.out, job.embedder.identity, held, advance))
        with _measure(seconds, "write"):
            progress("write", 0, 1)
            with write_errors(job.out):
                index.write(fresh)
                write_manifest(_manifest(job, skipped, writer, index, content), fresh)
    index.remove_outdated(held)
    progress("write", 1, 1)
    previous = None if job.previous is None else job.previous.manifest
    old = {} if previous is None else previous.sources
    return BuildReport(
        len(writer.entries), writer.fresh, writer.chunks, writer.windows, job.embedder.embedded,
        max(writer.windows - job.embedder.embedded, 0) if job.embedder.computes else 0, tuple(skipped),
        _describe(job, index), seconds,
        sum(name in old and old[name].sha256 != entry.sha256 for name, entry in writer.entries.items()),
        len(set(old) - set(writer.entries)), writer.hidden, writer.unread_pages,
        writer.ocr_pages, previous=previous)


def _add_all(job: BuildJob, documents: DocumentStream, writer: IndexWriter, seconds: dict[str, float],
          progress: Progress) -> list[DocumentError]:
    skipped: list[DocumentError] = []
    done = 0
    while True:
        with _measure(seconds, "parse"):
            document = next(documents, None)
        if document is None:
            break
        done += 1
        if isinstance(document, DocumentError):
            skipped.append(document)
        else:
            with _measure(seconds, "chunk"):
                writer.add(document if isinstance(document, ChunkedDocument) else chunk_document(job, document))
        with _measure(seconds, "embed"):
            writer.embed(lambda embedded: progress("embed", embedded, None if job.windows is None else max(
                job.windows, writer.windows, embedded + 1)))
        progress("parse", done, job.total)
    with _measure(seconds, "embed"):
        writer.embed(lambda embedded: progress("embed", embedded, writer.windows), rest=True)
    progress("parse", done, done)
    if job.embedder.computes:
        progress("embed", writer.windows, writer.windows)
    return skipped


def _describe(job: BuildJob, index: BuiltVectors) -> str:
    return index.describe() if job.embedder.computes else "no vectors (embedder none): only bm25 can search it"


def _manifest(job: BuildJob, skipped: Sequence[DocumentError], writer: IndexWriter, index: BuiltVectors,
              content: str) -> Manifest:
    reasons = {error.source: error.reason for error in skipped}
    if job.extends and job.previous is not None:
        reasons = {one.source: one.reason for one in job.previous.manifest.skipped
                   if one.source not in writer.entries} | reasons
    return Manifest(
        settings=job.settings, parser=parser_version(), embedder=job.embedder.entry(), kind=index.settings,
        how=_describe(job, index), content=content, documents=len(writer.entries), chunks=writer.chunks,
        windows=len(index),
        sources=writer.entries, skipped=tuple(Skipped(source=name, reason=why) for name, why in reasons.items()),
        shard=job.shard, fields=field_types(writer.metadata))


def is_unchanged(source: SourcePlan, job: BuildJob) -> bool:
    """Tell whether a source has the same chunks and vectors in the previous index."""
    return job.previous is not None and _is_same(source, job.previous) and job.previous.same_windows(
        job.settings, job.embedder.identity)


def _is_same(source: SourcePlan, previous: PreviousIndex) -> bool:
    return source.name in previous.manifest.sources and (
        source.known == source.name or (source.file is None and source.known is None))


def unchanged_report(plan: Sequence[SourcePlan], job: BuildJob) -> BuildReport | None:
    """Return the report of a build that would change nothing, or None if it would change the index."""
    if job.previous is None or not job.out.exists():
        return None
    made, previous = job.previous.manifest, job.previous
    # Skipped sources are tried again, unless the index is extended.
    same = ((made.version, made.settings, made.parser, made.shard) == (
            VERSION, job.settings, parser_version(), job.shard)
            and (job.extends or not made.skipped)
            and job.choose(made.windows, made.embedder.dimension).settings.matches(made.kind)
            and (made.kind.in_folder or previous.remote_vectors is not None)
            and [source.name for source in plan] == list(made.sources)
            and previous.same_windows(job.settings, job.embedder.identity)
            and all(_is_same(source, previous) for source in plan)
            and (not (job.metadata or made.fields) or all(
                canonical(job.metadata_of(source)) == canonical(previous.documents.given.get(entry.document, {}))
                for source, entry in made.sources.items())))
    reused = made.windows if job.embedder.computes else 0
    return BuildReport(made.documents, 0, made.chunks, made.windows, 0, reused, (), made.how,
                       previous=made) if same else None
