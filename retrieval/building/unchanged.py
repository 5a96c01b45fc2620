"""What of the index before stays as it is: a source, or all of it, so that nothing is written."""
from __future__ import annotations

from collections.abc import Sequence

from retrieval.building.before import Before
from retrieval.building.plan import Work, parser_version
from retrieval.building.run import BuildReport, Job
from retrieval.storage.manifest import VERSION
from retrieval.storage.table_writers import canonical
from retrieval.vector_choice import choose


def stays(work: Work, job: Job) -> bool:
    """Whether the chunks and vectors of a source are those of the index before."""
    before = job.before
    return (before is not None and before.entry(work.source) is not None
            and (work.known == work.source or (work.file is None and work.known is None))
            and before.alike(job.settings, job.embedder.identity))


def unchanged(plan: Sequence[Work], job: Job) -> BuildReport | None:
    """What is to be said where building the plan would make the index that stands there; None where it would not."""
    before = job.before
    if before is None or not job.out.exists() or not _same_making(job, before):
        return None
    manifest = before.manifest
    if [work.source for work in plan] != list(manifest.sources) or not all(stays(work, job) for work in plan):
        return None
    if not all(_said_before(work.source, job, before) for work in plan):
        return None
    return BuildReport(manifest.documents, 0, manifest.chunks, manifest.windows, 0, manifest.windows, (), manifest.how)


def _same_making(job: Job, before: Before) -> bool:
    """Why some were skipped is found out anew, unless the index is carried on."""
    made = before.manifest
    return ((made.version, made.settings, made.parser) == (VERSION, job.settings, parser_version())
            and (job.carried or not made.skipped)
            and made.kind == choose(job.settings.vectors, made.windows, made.embedder.dimension).settings)


def _said_before(source: str, job: Job, before: Before) -> bool:
    """Whether the metadata of a source is what it was."""
    said = before.metadata(before.manifest.sources[source].document)
    return canonical(job.metadata.get(source, said if job.carried else {})) == canonical(said)
