"""Build, extend and estimate an index: parse, chunk, embed and write. Finished work is never repeated."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from ragbed.documents.errors import IndexFolderError
from ragbed.documents.shards import Shard
from ragbed.documents.sources import find_sources
from ragbed.documents.types import Document, digest
from ragbed.retrieval.building.chunked_documents import BuildJob, LazyEmbedder
from ragbed.retrieval.building.estimate import BuildEstimate, estimate
from ragbed.retrieval.building.index_writer import BuildReport, unchanged_report, write_index
from ragbed.retrieval.building.plan import (
    SourcePlan,
    check_place,
    plan_added,
    plan_files,
    plan_removed,
    stream_documents,
    stream_files,
)
from ragbed.retrieval.building.previous_index import ParsedDocuments, PreviousIndex
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.filters.metadata import Metadata, check_sources
from ragbed.retrieval.settings import IndexSettings
from ragbed.retrieval.source_paths import remember_folders
from ragbed.retrieval.storage.folder import current_folder, exclusive, remove_leftovers
from ragbed.retrieval.storage.manifest import ShardEntry
from ragbed.retrieval.types import Embedder, Progress, silent

__all__ = ["BuildEstimate", "BuildReport", "add_to_index", "build_index", "estimate_index", "index_documents",
           "remove_from_index"]

OnEstimate = Callable[[BuildEstimate], None]


def build_index(sources: Sequence[str | Path], out: Path, settings: IndexSettings | None = None,
                progress: Progress = silent, embedder: Embedder | None = None,
                metadata: Metadata | None = None, on_estimate: OnEstimate | None = None,
                shard: Shard | None = None, wait: bool = False) -> BuildReport:
    """Index files, folders and globs into the folder `out`, replacing an index there.

        build_index(["reports/"], Path("idx"))

    Sources whose bytes were indexed before, under any name, are not parsed again. Texts that were embedded before are
    not embedded again. (With `titled`, the name is part of the text, so a renamed file is embedded again.) Missing
    sources are removed from the index. If nothing changed, nothing is written. A kill at any moment leaves the old
    index in place. Parsed and embedded parts stay in the cache for the next call.

    Memory use: the embedder, faiss's index, one document and a few parsed ahead, a block of windows, and about 500
    bytes per source.

    Args:
        embedder: used instead of the one in the settings.
        metadata: fields of sources, by relative path.
        on_estimate: called with the estimate before the build starts; its measurements are reused by the build.
        shard: index only the sources of this shard, into its own folder next to `out`.
        wait: wait for another process that is building this index, instead of raising an error.

    Raises:
        DocumentError: a named path does not exist, or metadata does not fit.
        IndexFolderError: nothing can be indexed, or `out` contains something else, cannot be written, or is being
            built by another process.
        SettingsError: the cache folder cannot be written.
        ModelError: the embedder is not on this machine.
    """
    with _new_job(shard.folder(out) if shard else out, settings, embedder, metadata, wait) as job:
        found = find_sources(sources)
        if shard is not None:
            names = [source.relative for source in found]
            check_sources(job.metadata, names)
            found = [source for source in found if digest(source.relative) in shard]  # id of the source's document
            own = {source.relative for source in found}
            remember_folders(out, found)  # all folders, because merging does not see them
            job = replace(job, metadata={name: fields for name, fields in job.metadata.items() if name in own},
                          shard=ShardEntry(part=str(shard), sources=digest(*names)))
        return _build_plan(plan_files(found, job.previous), job, progress, on_estimate)


def estimate_index(sources: Sequence[str | Path], out: Path, settings: IndexSettings | None = None,
                   embedder: Embedder | None = None, add: bool = False) -> BuildEstimate:
    """Estimate the cost of `build_index`, or of `add_to_index` with `add`. Measures a sample, whose results the build
    reuses. Raises the same errors."""
    with _extending_job(out, embedder) if add else _new_job(out, settings, embedder) as job:
        found = find_sources(sources)
        plan = plan_added(found, job.previous) if add and job.previous else plan_files(found, job.previous)
        return estimate(job, plan, ParsedDocuments(job.out))


def index_documents(documents: Iterable[Document], out: Path, settings: IndexSettings | None = None,
                    progress: Progress = silent, embedder: Embedder | None = None,
                    metadata: Metadata | None = None) -> BuildReport:
    """Index documents that are already parsed, such as from a generator. Keeps their order, ids and sources. Raises
    DocumentError if two have the same source or id, or metadata names an unknown source."""
    with _new_job(out, settings, embedder, metadata) as job, closing(
            stream_documents(documents, job.previous, job.metadata)) as stream:
        total = len(documents) if isinstance(documents, Sequence) else None
        return write_index(replace(job, total=total), stream, progress)


def add_to_index(sources: Sequence[str | Path], out: Path, progress: Progress = silent,
                 embedder: Embedder | None = None, metadata: Metadata | None = None,
                 on_estimate: OnEstimate | None = None) -> BuildReport:
    """Add sources to an index, replacing those with the same relative path. Settings and other sources stay. Metadata
    may also name sources already in the index; other sources keep their metadata. Raises IndexFolderError if there is
    no complete index, or it was made with another embedder."""
    with _extending_job(out, embedder, metadata) as job:
        assert job.previous is not None
        return _build_plan(plan_added(find_sources(sources), job.previous), job, progress, on_estimate)


def remove_from_index(names: Sequence[str], out: Path, progress: Progress = silent,
                      embedder: Embedder | None = None) -> BuildReport:
    """Remove sources from an index: by relative path, folder or pattern. Raises IndexFolderError if there is no
    complete index, a name matches nothing, or nothing would be left."""
    with _extending_job(out, embedder) as job:
        assert job.previous is not None
        return _build_plan(plan_removed(names, job.previous), job, progress)


@contextmanager
def _new_job(out: Path, settings: IndexSettings | None, embedder: Embedder | None,
             metadata: Metadata | None = None, wait: bool = False) -> Iterator[BuildJob]:
    place, wanted = out.absolute(), settings or IndexSettings()
    wanted.vectors.allow_server()
    with exclusive(place, wait):
        check_place(place)
        previous = None
        with suppress(IndexFolderError):  # there is no index, or a damaged one, which is replaced
            previous = PreviousIndex.open(current_folder(place))
        opened = LazyEmbedder(lambda: embedder or open_embedder(wanted.embedder), None, place)
        yield BuildJob(place, wanted, previous, opened, metadata or {})


@contextmanager
def _extending_job(out: Path, embedder: Embedder | None, metadata: Metadata | None = None) -> Iterator[BuildJob]:
    place = out.absolute()
    with exclusive(place):
        check_place(place)
        previous = PreviousIndex.open(current_folder(place))
        settings = previous.manifest.settings
        opened = LazyEmbedder(lambda: embedder or open_embedder(settings.embedder, place), previous.manifest, place)
        yield BuildJob(place, settings, previous, opened, metadata or {}, extends=True)


def _build_plan(plan: Sequence[SourcePlan], job: BuildJob, progress: Progress,
                on_estimate: OnEstimate | None = None) -> BuildReport:
    check_sources(job.metadata, (source.name for source in plan))
    remember_folders(job.out, (source.file for source in plan if source.file))
    job.vectors.check_server()
    parsed = ParsedDocuments(job.out)
    report = unchanged_report(plan, job)
    if report is not None:
        remove_leftovers(job.out)
    else:
        job = replace(job, total=len(plan))
        if on_estimate is not None and plan:
            expected = estimate(job, plan, parsed)
            on_estimate(expected)
            job = replace(job, windows=expected.windows)
        with closing(stream_files(plan, job.previous, parsed)) as stream:
            report = write_index(job, stream, progress)
    parsed.remove()
    return report
