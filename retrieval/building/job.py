"""One build: documents arrive, are cut, embedded and written, and the folder takes the place of the one before."""
from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from documents.errors import DocumentError, IndexFolderError
from retrieval.building.before import Arrival, Before
from retrieval.building.pieces import Cutter, LazyEmbedder
from retrieval.building.plan import Arriving, Work, parser_version
from retrieval.building.writer import Writer
from retrieval.filters.metadata import Metadata, types_of
from retrieval.settings import IndexSettings
from retrieval.storage.folder import replaced, writing
from retrieval.storage.manifest import VECTORS, VERSION, Manifest, Skipped, SourceEntry, write_manifest
from retrieval.storage.parquet import canonical
from retrieval.types import FieldValue, Progress
from retrieval.vector_settings import choose
from retrieval.vectors import VectorIndex

if TYPE_CHECKING:
    from retrieval.types import Matrix

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


@dataclass(frozen=True, slots=True)
class BuildJob:
    """A build: its place, settings and embedder, and the index before.

    Attributes:
        before: the index that stands there; None where none can be used.
        carried: the index before is carried on: what it says of documents, and what it skipped, stays.
        total: how many documents will arrive; None where unknown.
        windows: how many are expected; None where unknown.
    """

    out: Path
    settings: IndexSettings
    before: Before | None
    embedder: LazyEmbedder
    metadata: Metadata
    carried: bool = False
    total: int | None = None
    windows: int | None = None


class Clock:
    """Seconds by stage; stages take turns."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add what the body takes to the stage."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - begun


@dataclass(slots=True)
class Filled:
    """Sums over the documents that arrived."""

    entries: dict[str, SourceEntry] = field(default_factory=dict)
    skipped: list[DocumentError] = field(default_factory=list)
    metadata: dict[str, dict[str, FieldValue]] = field(default_factory=dict)
    fresh: int = 0


def run(job: BuildJob, arriving: Arriving, progress: Progress) -> BuildReport:
    """Build the index of the documents that arrive.

    Raises:
        IndexFolderError: there is nothing to index, or the folder cannot be written.
        ModelError: the embedder is needed and not on this machine.
    """
    clock = Clock()
    with replaced(job.out) as fresh, Writer(fresh, job.out, job.embedder) as writer:
        filled = _fill(job, arriving, writer, clock, progress)
        if not writer.chunks:
            raise IndexFolderError(_nothing(filled.skipped))
        with clock.timed("write"):
            content = writer.finish()
        with clock.timed("index"), writer.vectors() as vectors:
            index = _indexed(vectors, job, progress)
        with clock.timed("write"):
            progress("write", 0, 1)
            with writing(job.out):
                index.write(fresh / VECTORS)
                write_manifest(_manifest(job, filled, writer, index, content), fresh)
    progress("write", 1, 1)
    old = {} if job.before is None else job.before.manifest.sources
    return BuildReport(
        writer.documents, filled.fresh, writer.chunks, writer.windows, job.embedder.embedded,
        max(writer.windows - job.embedder.embedded, 0), tuple(filled.skipped), index.describe(), clock.seconds,
        sum(name in old and old[name].sha256 != entry.sha256 for name, entry in filled.entries.items()),
        len(set(old) - set(filled.entries)))


def _indexed(vectors: Matrix, job: BuildJob, progress: Progress) -> VectorIndex:
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        progress("index", done, len(vectors))

    progress("index", done, len(vectors))
    return VectorIndex.build(vectors, job.settings.vectors, advance)


def _fill(job: BuildJob, arriving: Arriving, writer: Writer, clock: Clock, progress: Progress) -> Filled:
    filled = Filled()
    cutter = Cutter(job.settings, job.embedder, job.before, job.metadata, job.carried)
    done = 0
    while True:
        with clock.timed("parse"):
            arrival = next(arriving, None)
        if arrival is None:
            break
        done += 1
        if isinstance(arrival, DocumentError):
            filled.skipped.append(arrival)
        else:
            with clock.timed("chunk"):
                _take(arrival, cutter, writer, filled)
        with clock.timed("embed"):
            writer.embed(lambda embedded: progress("embed", embedded, None if job.windows is None else max(
                job.windows, writer.windows, embedded + 1)))
        progress("parse", done, job.total)
    with clock.timed("embed"):
        writer.embed(lambda embedded: progress("embed", embedded, writer.windows), rest=True)
    progress("parse", done, done)
    progress("embed", writer.windows, writer.windows)
    return filled


def _take(arrival: Arrival, cutter: Cutter, writer: Writer, filled: Filled) -> None:
    piece = cutter.cut(arrival)
    writer.add(piece)
    document = arrival.document
    other = None if arrival.parser == parser_version() else arrival.parser
    filled.entries[document.source] = SourceEntry(document=document.id, sha256=arrival.sha256, parser=other)
    filled.fresh += arrival.fresh
    if piece.metadata:
        filled.metadata[document.source] = dict(piece.metadata)


def _manifest(job: BuildJob, filled: Filled, writer: Writer, index: VectorIndex, content: str) -> Manifest:
    skipped = {error.source: error.reason for error in filled.skipped}
    if job.carried and job.before is not None:
        skipped = {one.source: one.reason for one in job.before.manifest.skipped
                   if one.source not in filled.entries} | skipped
    return Manifest(
        settings=job.settings, parser=parser_version(), embedder=job.embedder.entry(), kind=index.settings,
        how=index.describe(), content=content, documents=writer.documents, chunks=writer.chunks, windows=len(index),
        sources=filled.entries, skipped=tuple(Skipped(source=name, reason=why) for name, why in skipped.items()),
        fields=types_of(filled.metadata))


def _nothing(skipped: list[DocumentError]) -> str:
    if not skipped:
        return "nothing to index: no HTML, PDF, text or Markdown file was found"
    shown = "; ".join(map(str, skipped[:5])) + (f"; and {len(skipped) - 5} more" if len(skipped) > 5 else "")
    return f"nothing to index: {shown}"


def stays(work: Work, job: BuildJob) -> bool:
    """Tell whether the chunks and vectors of a source are those of the index before."""
    before = job.before
    return (before is not None and before.entry(work.source) is not None
            and (work.known == work.source or (work.file is None and work.known is None))
            and before.alike(job.settings, job.embedder.identity))


def unchanged(plan: Sequence[Work], job: BuildJob) -> BuildReport | None:
    """Report a build of the plan that would make the index that stands there; None where it would make another."""
    before = job.before
    if before is None or not job.out.exists() or not _same_making(job, before):
        return None
    manifest = before.manifest
    if [work.source for work in plan] != list(manifest.sources) or not all(stays(work, job) for work in plan):
        return None
    if not all(_said_before(work.source, job, before) for work in plan):
        return None
    return BuildReport(manifest.documents, 0, manifest.chunks, manifest.windows, 0, manifest.windows, (), manifest.how)


def _same_making(job: BuildJob, before: Before) -> bool:
    """Why some were skipped is found out anew, unless the index is carried on."""
    made = before.manifest
    return ((made.version, made.settings, made.parser) == (VERSION, job.settings, parser_version())
            and (job.carried or not made.skipped)
            and made.kind == choose(job.settings.vectors, made.windows, made.embedder.dimension).settings)


def _said_before(source: str, job: BuildJob, before: Before) -> bool:
    said = before.metadata(before.manifest.sources[source].document)
    return canonical(job.metadata.get(source, said if job.carried else {})) == canonical(said)
