"""One build: documents arrive, are cut, embedded and written, and the folder takes the place of the one before."""
from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from documents.errors import DocumentError, IndexFolderError
from retrieval.building.pieces import BuildJob, cut
from retrieval.building.plan import Arriving, Work, parser_version
from retrieval.building.writer import Writer
from retrieval.filters.metadata import types_of
from retrieval.storage.folder import replaced, writing
from retrieval.storage.manifest import VECTORS, VERSION, Manifest, Skipped, write_manifest
from retrieval.storage.parquet import canonical
from retrieval.types import Progress
from retrieval.vector_settings import choose
from retrieval.vectors import VectorIndex


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


def run(job: BuildJob, arriving: Arriving, progress: Progress) -> BuildReport:
    """Build the index of the documents that arrive.

    Raises:
        IndexFolderError: there is nothing to index, or the folder cannot be written.
        ModelError: the embedder is needed and not on this machine.
    """
    clock, added = Clock(), 0
    with replaced(job.out) as fresh, Writer(fresh, job.out, job.embedder) as writer:
        skipped = _fill(job, arriving, writer, clock, progress)
        if not writer.chunks:
            more = f"; and {len(skipped) - 5} more" if len(skipped) > 5 else ""
            why = "; ".join(map(str, skipped[:5])) or "no HTML, PDF, text or Markdown file was found"
            raise IndexFolderError(f"nothing to index: {why}{more}")
        with clock.timed("write"):
            content = writer.finish()
        with clock.timed("index"), writer.vectors() as vectors:
            def advance(more: int) -> None:
                nonlocal added
                added += more
                progress("index", added, writer.windows)

            advance(0)
            index = VectorIndex.build(vectors, job.settings.vectors, advance)
        with clock.timed("write"):
            progress("write", 0, 1)
            with writing(job.out):
                index.write(fresh / VECTORS)
                write_manifest(_manifest(job, skipped, writer, index, content), fresh)
    progress("write", 1, 1)
    old = {} if job.before is None else job.before.manifest.sources
    return BuildReport(
        len(writer.entries), writer.fresh, writer.chunks, writer.windows, job.embedder.embedded,
        max(writer.windows - job.embedder.embedded, 0), tuple(skipped), index.describe(), clock.seconds,
        sum(name in old and old[name].sha256 != entry.sha256 for name, entry in writer.entries.items()),
        len(set(old) - set(writer.entries)))


def _fill(job: BuildJob, arriving: Arriving, writer: Writer, clock: Clock, progress: Progress) -> list[DocumentError]:
    """Write what arrives; what cannot be read is returned."""
    skipped: list[DocumentError] = []
    done = 0
    while True:
        with clock.timed("parse"):
            arrival = next(arriving, None)
        if arrival is None:
            break
        done += 1
        if isinstance(arrival, DocumentError):
            skipped.append(arrival)
        else:
            with clock.timed("chunk"):
                writer.add(cut(job, arrival))
        with clock.timed("embed"):
            writer.embed(lambda embedded: progress("embed", embedded, None if job.windows is None else max(
                job.windows, writer.windows, embedded + 1)))
        progress("parse", done, job.total)
    with clock.timed("embed"):
        writer.embed(lambda embedded: progress("embed", embedded, writer.windows), rest=True)
    progress("parse", done, done)
    progress("embed", writer.windows, writer.windows)
    return skipped


def _manifest(job: BuildJob, skipped: Sequence[DocumentError], writer: Writer, index: VectorIndex,
              content: str) -> Manifest:
    reasons = {error.source: error.reason for error in skipped}
    if job.carried and job.before is not None:
        reasons = {one.source: one.reason for one in job.before.manifest.skipped
                   if one.source not in writer.entries} | reasons
    return Manifest(
        settings=job.settings, parser=parser_version(), embedder=job.embedder.entry(), kind=index.settings,
        how=index.describe(), content=content, documents=len(writer.entries), chunks=writer.chunks, windows=len(index),
        sources=writer.entries, skipped=tuple(Skipped(source=name, reason=why) for name, why in reasons.items()),
        fields=types_of(writer.metadata))


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
    same = ((made.version, made.settings, made.parser) == (VERSION, job.settings, parser_version())
            and (job.carried or not made.skipped)
            and made.kind == choose(job.settings.vectors, made.windows, made.embedder.dimension).settings
            and [work.source for work in plan] == list(made.sources) and all(stays(work, job) for work in plan)
            and all(canonical(job.metadata_of(source)) == canonical(metadata.get(entry.document, {}))
                    for source, entry in made.sources.items()))
    return BuildReport(made.documents, 0, made.chunks, made.windows, 0, made.windows, (), made.how) if same else None
