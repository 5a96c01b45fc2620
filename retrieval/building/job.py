"""One build: documents arrive, are cut, embedded and written, and the folder takes the place of the one before."""
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
from ragbed.retrieval.building.pieces import BuildJob, LazyEmbedder, Piece, cut
from ragbed.retrieval.building.plan import Arriving, Work, parser_version
from ragbed.retrieval.filters.metadata import types_of
from ragbed.retrieval.storage.cache import check_fit
from ragbed.retrieval.storage.folder import replaced, writing
from ragbed.retrieval.storage.manifest import (
    CHUNKS,
    DOCUMENTS,
    VERSION,
    Manifest,
    Skipped,
    SourceEntry,
    write_manifest,
)
from ragbed.retrieval.storage.parquet import ChunkWriter, DocumentWriter, canonical
from ragbed.retrieval.types import FieldValue, Matrix, Progress
from ragbed.retrieval.vector_settings import BuiltVectors, VectorTask


@dataclass(frozen=True, slots=True)
class BuildReport:
    """Report of a build.

    Attributes:
        parsed: sources read now; the other documents' renderings came from the index before, or from a killed build.
        windows: vectors in the index.
        embedded_now: texts that the model embedded in this build.
        reused: the other windows: their vectors were in the cache or in the index before, or are those of equal text.
        how: one sentence on how the vectors are searched.
        seconds: by stage.
        replaced: sources of the index before whose content is another now.
        removed: sources of the index before that are gone.
        hidden: characters that were left out of the sources read now, since no reader can see them.
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
    replaced: int = 0
    removed: int = 0
    hidden: int = 0


BLOCK = 2_048  # windows embedded together: of similar length within a block, since the embedder sorts them
RAW = "vectors.f32"


class RawVectors:
    """The rows of a file of float32, given as copies: pages of a file that stays mapped count as memory in use."""

    def __init__(self, path: Path, shape: tuple[int, int]) -> None:
        self.shape = shape
        self._path = path

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Matrix:
        found = np.memmap(self._path, np.float32, "r", shape=self.shape)[rows]
        return np.array(found) if isinstance(rows, slice) else np.asarray(found)  # by a list of rows, it is one already


class Writer:
    """Writes chunks, documents and raw vectors into a folder, and counts them: windows also while they wait to be
    embedded. Entries and metadata are of the sources written so far, by name; `fresh` of them were parsed now. Raises
    IndexFolderError, which calls the folder `out`, where it cannot be written."""

    def __init__(self, folder: Path, out: Path, embedder: LazyEmbedder) -> None:
        self._folder = folder
        self._out = out
        self._embedder = embedder
        self.entries: dict[str, SourceEntry] = {}
        self.metadata: dict[str, Mapping[str, FieldValue]] = {}
        self.fresh = self.hidden = self.chunks = self.windows = self.embedded = 0
        self._waiting: list[tuple[int, str]] = []
        self._content = hashlib.sha256()
        with writing(out):
            self._documents, self._chunks = DocumentWriter(folder / DOCUMENTS), ChunkWriter(folder / CHUNKS)
            self._raw = (folder / RAW).open("wb")

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        """Let go of the files; what `finish` did not complete is of no use."""
        self._documents.abandon()
        self._chunks.abandon()
        self._raw.close()

    def add(self, piece: Piece) -> None:
        """Write a document and its chunks; its windows are embedded when a block of them has come together."""
        first, arrival, document = self.windows, piece.arrival, piece.arrival.document
        for part in (document.id, document.source, document.title, piece.header, canonical(piece.metadata),
                     *(f"{chunk.id} {chunk.pages}" for chunk in piece.chunks)):
            data = part.encode("utf-8", "surrogatepass")
            self._content.update(f"{len(data)}:".encode() + data)
        with writing(self._out):
            self._documents.document(document, piece.header, piece.metadata)
            for chunk, count in zip(piece.chunks, piece.windows, strict=True):
                self._chunks.chunk(chunk, count)
        parser = None if arrival.parser == parser_version() else arrival.parser
        self.entries[document.source] = SourceEntry(document=document.id, sha256=arrival.sha256, parser=parser)
        if piece.metadata:
            self.metadata[document.source] = piece.metadata
        self.fresh += arrival.fresh
        self.hidden += document.hidden
        self.chunks += len(piece.chunks)
        self.windows += sum(piece.windows)
        if piece.vectors is not None:
            self._put(range(first, self.windows), piece.vectors)
        self._waiting.extend(enumerate(piece.texts, first))

    def embed(self, told: Callable[[int], None], rest: bool = False) -> None:
        """Embed what waits in whole blocks, and at last the rest. `told`: is told how many windows are embedded."""
        while len(self._waiting) >= (1 if rest else BLOCK):
            block, self._waiting = self._waiting[:BLOCK], self._waiting[BLOCK:]
            done = self.embedded

            def advance(more: int) -> None:
                nonlocal done
                done += more
                told(done)

            vectors = self._embedder.opened.embed_passages([text for _, text in block], advance)
            check_fit(vectors, self._embedder.dimension, self._embedder.opened.name)
            self._put([row for row, _ in block], vectors)
            told(self.embedded)

    def finish(self) -> str:
        """Complete the files; a hash of the chunks in their order, and of what they are searched and filtered by."""
        with writing(self._out):
            self._documents.close()
            self._chunks.close()
            self._raw.close()
        return self._content.hexdigest()[:32]

    @contextmanager
    def vectors(self) -> Iterator[Matrix]:
        """Yield all vectors, float32 of shape (windows, dimension), read from their file, which is gone afterwards."""
        path = self._folder / RAW
        yield cast("Matrix", RawVectors(path, (self.windows, self._embedder.dimension)))
        path.unlink()

    def _put(self, rows: list[int] | range, vectors: Matrix) -> None:
        places: NDArray[np.int64] = np.asarray(rows, np.int64)
        width = 4 * self._embedder.dimension
        with writing(self._out):
            for run in np.split(np.arange(len(places)), np.flatnonzero(np.diff(places) != 1) + 1):
                if len(run):
                    self._raw.seek(int(places[run[0]]) * width)
                    self._raw.write(np.ascontiguousarray(vectors[run[0]:run[-1] + 1], np.float32).tobytes())
        self.embedded += len(places)


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Add what the body takes to the stage; stages take turns."""
    begun = time.perf_counter()
    try:
        yield
    finally:
        seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - begun


def run(job: BuildJob, arriving: Arriving, progress: Progress) -> BuildReport:
    """Build the index of the documents that arrive. Raises IndexFolderError where there is nothing to index or the
    folder cannot be written, and ModelError where the embedder is needed and not on this machine."""
    seconds, added = dict[str, float](), 0
    held = job.before.stored if job.before else None
    with replaced(job.out) as fresh, Writer(fresh, job.out, job.embedder) as writer:
        skipped = _fill(job, arriving, writer, seconds, progress)
        if not writer.chunks and job.shard is None:  # a shard may have nothing
            more = f"; and {len(skipped) - 5} more" if len(skipped) > 5 else ""
            why = "; ".join(map(str, skipped[:5])) or "no file was found of a kind that is read here"
            raise IndexFolderError(f"nothing to index: {why}{more}")
        with _timed(seconds, "write"):
            content = writer.finish()
        with _timed(seconds, "index"), writer.vectors() as vectors:
            def advance(more: int) -> None:
                nonlocal added
                added += more
                progress("index", added, writer.windows)

            advance(0)
            kind, why = job.choose(*vectors.shape)
            index = kind.build(VectorTask(vectors, why, job.out, job.embedder.identity, held, advance))
        with _timed(seconds, "write"):
            progress("write", 0, 1)
            with writing(job.out):
                index.write(fresh)
                write_manifest(_manifest(job, skipped, writer, index, content), fresh)
    index.remove_outdated(held)
    progress("write", 1, 1)
    old = {} if job.before is None else job.before.manifest.sources
    return BuildReport(
        len(writer.entries), writer.fresh, writer.chunks, writer.windows, job.embedder.embedded,
        max(writer.windows - job.embedder.embedded, 0), tuple(skipped), index.describe(), seconds,
        sum(name in old and old[name].sha256 != entry.sha256 for name, entry in writer.entries.items()),
        len(set(old) - set(writer.entries)), writer.hidden)


def _fill(job: BuildJob, arriving: Arriving, writer: Writer, seconds: dict[str, float],
          progress: Progress) -> list[DocumentError]:
    """Write what arrives; what cannot be read is returned."""
    skipped: list[DocumentError] = []
    done = 0
    while True:
        with _timed(seconds, "parse"):
            arrival = next(arriving, None)
        if arrival is None:
            break
        done += 1
        if isinstance(arrival, DocumentError):
            skipped.append(arrival)
        else:
            with _timed(seconds, "chunk"):
                writer.add(arrival if isinstance(arrival, Piece) else cut(job, arrival))
        with _timed(seconds, "embed"):
            writer.embed(lambda embedded: progress("embed", embedded, None if job.windows is None else max(
                job.windows, writer.windows, embedded + 1)))
        progress("parse", done, job.total)
    with _timed(seconds, "embed"):
        writer.embed(lambda embedded: progress("embed", embedded, writer.windows), rest=True)
    progress("parse", done, done)
    progress("embed", writer.windows, writer.windows)
    return skipped


def _manifest(job: BuildJob, skipped: Sequence[DocumentError], writer: Writer, index: BuiltVectors,
              content: str) -> Manifest:
    reasons = {error.source: error.reason for error in skipped}
    if job.carried and job.before is not None:
        reasons = {one.source: one.reason for one in job.before.manifest.skipped
                   if one.source not in writer.entries} | reasons
    return Manifest(
        settings=job.settings, parser=parser_version(), embedder=job.embedder.entry(), kind=index.settings,
        how=index.describe(), content=content, documents=len(writer.entries), chunks=writer.chunks, windows=len(index),
        sources=writer.entries, skipped=tuple(Skipped(source=name, reason=why) for name, why in reasons.items()),
        shard=job.shard, fields=types_of(writer.metadata))


def stays(work: Work, job: BuildJob) -> bool:
    """Tell whether the chunks and vectors of a source are those of the index before."""
    before = job.before
    return (before is not None and work.source in before.manifest.sources
            and (work.known == work.source or (work.file is None and work.known is None))
            and before.alike(job.settings, job.embedder.identity))


def unchanged(plan: Sequence[Work], job: BuildJob) -> BuildReport | None:
    """Report a build of the plan that would make the index that stands there; None where it would make another."""
    if job.before is None or not job.out.exists():
        return None
    made, metadata = job.before.manifest, job.before.documents.metadata
    # Why some were skipped is found out anew, unless the index is carried on.
    same = ((made.version, made.settings, made.parser, made.shard) == (
            VERSION, job.settings, parser_version(), job.shard)
            and (job.carried or not made.skipped)
            and job.choose(made.windows, made.embedder.dimension).settings.matches(made.kind)
            and (made.kind.in_folder or job.before.stored is not None)
            and [work.source for work in plan] == list(made.sources) and all(stays(work, job) for work in plan)
            and all(canonical(job.metadata_of(source)) == canonical(metadata.get(entry.document, {}))
                    for source, entry in made.sources.items()))
    return BuildReport(made.documents, 0, made.chunks, made.windows, 0, made.windows, (), made.how) if same else None
