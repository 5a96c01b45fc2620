"""Building an index: parse, chunk, embed and write, document by document; what was done before is not done again."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from ragbed.documents.errors import IndexFolderError
from ragbed.documents.shards import Shard
from ragbed.documents.sources import find_sources
from ragbed.documents.types import Document, digest
from ragbed.retrieval.building.before import Before, Staging
from ragbed.retrieval.building.estimate import BuildEstimate, estimate
from ragbed.retrieval.building.job import BuildReport, run, unchanged
from ragbed.retrieval.building.pieces import BuildJob, LazyEmbedder
from ragbed.retrieval.building.plan import (
    Work,
    check_place,
    of_documents,
    of_files,
    plan_added,
    plan_files,
    plan_removed,
)
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.filters.metadata import Metadata, check_sources
from ragbed.retrieval.origins import remember
from ragbed.retrieval.settings import IndexSettings
from ragbed.retrieval.storage.folder import alone, settled, tidy
from ragbed.retrieval.storage.manifest import ShardEntry
from ragbed.retrieval.types import Embedder, Progress, silent

__all__ = ["BuildEstimate", "BuildReport", "add_to_index", "build_index", "estimate_index", "index_documents",
           "remove_from_index"]

Estimated = Callable[[BuildEstimate], None]


def build_index(sources: Sequence[str | Path], out: Path, settings: IndexSettings | None = None,
                progress: Progress = silent, embedder: Embedder | None = None,
                metadata: Metadata | None = None, estimated: Estimated | None = None,
                shard: Shard | None = None, wait: bool = False) -> BuildReport:
    """Index files, folders and globs into the folder `out`, replacing the index there, if any.

    Sources whose bytes were indexed before, under whatever name, are not parsed again; texts embedded before are not
    embedded again (where `titled`, the name is part of the text, so that a renamed file is embedded anew); what is
    gone from the sources is gone from the index. Where nothing changed, nothing is written. A kill at any moment
    leaves the old index in place, and what was parsed and embedded so far in the cache, where the same call finds it.

    In memory are, beside the embedder and what faiss builds: the document in hand and a few that are parsed ahead, a
    block of windows, and some 500 bytes a source.

    Args:
        embedder: in place of the one that the settings name.
        metadata: fields of sources, by their relative path.
        estimated: is told what the build will take, before it starts; measuring that is a part of the build.
        shard: only the sources of this part are indexed, in a folder of its own beside `out`, to be merged
            (`retrieval.building.merge`).
        wait: for another process that is building this index, in the place of an error.

    Raises:
        DocumentError: a named path does not exist, or metadata does not fit.
        IndexFolderError: nothing can be indexed, or `out` holds something else, cannot be written, or is being
            built by another process.
        SettingsError: the cache folder cannot be written.
        ModelError: the embedder is not on this machine.
    """
    with _anew(shard.folder(out) if shard else out, settings, embedder, metadata, wait) as job:
        found = find_sources(sources)
        if shard is not None:
            names = [source.relative for source in found]
            check_sources(job.metadata, names)
            found = [source for source in found if digest(source.relative) in shard]  # the id of its document
            own = {source.relative for source in found}
            remember(out, found)  # of the whole: merging sees none of these files
            job = replace(job, metadata={name: said for name, said in job.metadata.items() if name in own},
                          shard=ShardEntry(part=str(shard), sources=digest(*names)))
        return _of_plan(plan_files(found, job.before), job, progress, estimated)


def estimate_index(sources: Sequence[str | Path], out: Path, settings: IndexSettings | None = None,
                   embedder: Embedder | None = None, add: bool = False) -> BuildEstimate:
    """Estimate what `build_index` takes, or `add_to_index` if `add`, measured on a sample that is not done again then;
    raise UserError as that does."""
    with _carried(out, embedder) if add else _anew(out, settings, embedder) as job:
        found = find_sources(sources)
        plan = plan_added(found, job.before) if add and job.before else plan_files(found, job.before)
        return estimate(job, plan, Staging(job.out))


def index_documents(documents: Iterable[Document], out: Path, settings: IndexSettings | None = None,
                    progress: Progress = silent, embedder: Embedder | None = None,
                    metadata: Metadata | None = None) -> BuildReport:
    """Index documents that are parsed already, in their order, one by one, so that they may come from a generator; ids
    and sources stay as they are. Raises DocumentError where two have one source or one id, or metadata is of a source
    that did not come."""
    with _anew(out, settings, embedder, metadata) as job, closing(
            of_documents(documents, job.before, job.metadata)) as arriving:
        total = len(documents) if isinstance(documents, Sequence) else None
        return run(replace(job, total=total), arriving, progress)


def add_to_index(sources: Sequence[str | Path], out: Path, progress: Progress = silent,
                 embedder: Embedder | None = None, metadata: Metadata | None = None,
                 estimated: Estimated | None = None) -> BuildReport:
    """Add sources to an index, in place of those of the same relative path; the rest stays, and so do the settings.
    Metadata may be of sources that are in the index too; one that is not named keeps its own. Raises IndexFolderError
    where there is no whole index, or the embedder is not the one it was made with."""
    with _carried(out, embedder, metadata) as job:
        assert job.before is not None
        return _of_plan(plan_added(find_sources(sources), job.before), job, progress, estimated)


def remove_from_index(names: Sequence[str], out: Path, progress: Progress = silent,
                      embedder: Embedder | None = None) -> BuildReport:
    """Take sources out of an index: by relative path, the folder that they are below, or a pattern. Raises
    IndexFolderError where there is no whole index, nothing has such a name, or nothing would be left."""
    with _carried(out, embedder) as job:
        assert job.before is not None
        return _of_plan(plan_removed(names, job.before), job, progress)


@contextmanager
def _anew(out: Path, settings: IndexSettings | None, embedder: Embedder | None,
          metadata: Metadata | None = None, wait: bool = False) -> Iterator[BuildJob]:
    place, wanted = out.absolute(), settings or IndexSettings()
    wanted.vectors.allow_server()
    with alone(place, wait):
        check_place(place)
        before = None
        with suppress(IndexFolderError):  # none, or none to be trusted: it will be replaced
            before = Before.checked(settled(place))
        opened = LazyEmbedder(lambda: embedder or open_embedder(wanted.embedder), None, place)
        yield BuildJob(place, wanted, before, opened, metadata or {})


@contextmanager
def _carried(out: Path, embedder: Embedder | None, metadata: Metadata | None = None) -> Iterator[BuildJob]:
    place = out.absolute()
    with alone(place):
        check_place(place)
        before = Before.checked(settled(place))
        settings = before.manifest.settings
        opened = LazyEmbedder(lambda: embedder or open_embedder(settings.embedder, place), before.manifest, place)
        yield BuildJob(place, settings, before, opened, metadata or {}, carried=True)


def _of_plan(plan: Sequence[Work], job: BuildJob, progress: Progress,
             estimated: Estimated | None = None) -> BuildReport:
    check_sources(job.metadata, (work.source for work in plan))
    remember(job.out, (work.file for work in plan if work.file))
    job.vectors.check_server()
    staging = Staging(job.out)
    report = unchanged(plan, job)
    if report is not None:
        tidy(job.out)
    else:
        job = replace(job, total=len(plan))
        if estimated is not None and plan:
            expected = estimate(job, plan, staging)
            estimated(expected)
            job = replace(job, windows=expected.windows)
        with closing(of_files(plan, job.before, staging)) as arriving:
            report = run(job, arriving, progress)
    staging.remove()
    return report
