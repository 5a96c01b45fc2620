"""Build, extend and estimate an index: parse, chunk, embed and write. A killed build continues with the results so
far."""
from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter

from pydantic import ByteSize

from ragbed.documents.errors import DocumentError, IndexFolderError
from ragbed.documents.paths import count_cores
from ragbed.documents.shards import Shard
from ragbed.documents.sources import Source, find_sources, suffix_of
from ragbed.documents.types import Document, digest
from ragbed.documents.workers import read_documents
from ragbed.retrieval.building.chunked_documents import BuildJob, ChunkedDocument, LazyEmbedder, chunk_document
from ragbed.retrieval.building.index_writer import BLOCK, BuildReport, is_unchanged, unchanged_report, write_index
from ragbed.retrieval.building.previous_index import ParsedDocuments, PreviousIndex
from ragbed.retrieval.building.source_plan import (
    SourcePlan,
    check_place,
    file_hash,
    file_kind,
    load_document,
    plan_added,
    plan_files,
    plan_removed,
    stream_documents,
    stream_files,
)
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.filters.metadata import Metadata, unknown_sources
from ragbed.retrieval.index_settings import IndexSettings
from ragbed.retrieval.memory import peak_memory
from ragbed.retrieval.source_paths import remember_folders
from ragbed.retrieval.storage.cache import naming_source, stored_bytes
from ragbed.retrieval.storage.folder import current_folder, exclusive, remove_leftovers
from ragbed.retrieval.storage.manifest import ShardEntry, read_manifest
from ragbed.retrieval.types import Embedder, Progress, silent

__all__ = ["BuildEstimate", "BuildReport", "add_to_index", "build_index", "estimate_index", "index_documents",
           "outdated_sources", "remove_from_index"]

@dataclass(frozen=True, slots=True)
class BuildEstimate:
    """Estimated time, memory and disk of a build. Sizes are in bytes."""

    documents: int  # sources in the new index, including any that turn out to be unreadable
    parsing: int  # documents to parse
    size: int  # bytes of the files to parse
    windows: int  # vectors in the index
    embedding: int  # windows that the model has to embed
    seconds: Mapping[str, float]  # by stage, on this machine with its current load; no `embedding` without embedder
    memory: int | None  # peak memory, including worker processes; None if the system does not report it
    disk: int  # size of the index folder
    building: int  # temporary space needed on the same disk until the build ends
    cache: int  # added to the cache of embeddings
    free: int  # free space on the disk of the index
    sampled: int  # documents that were measured

    def line(self) -> str:
        """Return the estimate in one line."""
        parts = ", ".join(f"{stage} {_duration(seconds)}" for stage, seconds in self.seconds.items())
        memory = "" if self.memory is None else f", {_bytes(self.memory)} of memory"
        short = f"; only {_bytes(self.free)} are free" if self.disk + self.building + self.cache > self.free else ""
        embedded = "embedding" in self.seconds
        windows = f"; {self.embedding:,} windows to embed" if embedded else ""
        cached = f", {_bytes(self.cache)} in the cache" if embedded else ""
        return (f"about {self.windows:,} windows of {self.documents:,} documents ({self.parsing:,} to parse, "
                f"{_bytes(self.size)}{windows}): {_duration(sum(self.seconds.values()))} ({parts}){memory}, "
                f"{_bytes(self.disk)} on disk, {_bytes(self.building)} more during the build{cached}{short}")


OnEstimate = Callable[[BuildEstimate], None]


def build_index(sources: Sequence[str | Path], out: str | Path, settings: IndexSettings | None = None,
                progress: Progress = silent, embedder: Embedder | None = None,
                metadata: Metadata | None = None, on_estimate: OnEstimate | None = None,
                shard: Shard | None = None, wait: bool = False) -> BuildReport:
    """Index files, folders and globs into the folder `out`, replacing an index there.

        build_index(["reports/"], "idx")

    Unchanged files are not parsed or embedded again, even under a new name. (With `titled`, the name is part of the
    embedded text, so a renamed file is embedded again.) Sources that no longer exist are removed from the index. If
    nothing changed, nothing is written. If the process is killed, the old index stays, and the next call reuses parsed
    documents and vectors.

    Memory holds the embedder, the FAISS index, a few documents, a block of windows, and about 500 bytes per source.

    Args:
        embedder: used instead of the one in the settings.
        metadata: fields of sources, by relative path.
        on_estimate: called with the estimate before the build starts.
        shard: index only the sources of this shard, into its own folder next to `out`.
        wait: wait for another process that is building this index, instead of raising an error.

    Raises:
        DocumentError: a named path does not exist, or metadata does not fit.
        IndexFolderError: nothing can be indexed, or `out` contains something else, cannot be written, or is being
            built by another process.
        SettingsError: the cache folder cannot be written.
        ModelError: the embedder is not on this machine.
    """
    with _new_job(shard.folder(Path(out)) if shard else out, settings, embedder, metadata, wait) as job:
        found = find_sources(sources, job.settings.ocr)
        if shard is not None:
            names = [source.relative for source in found]
            unknown = unknown_sources(job.metadata, names)
            found = [source for source in found if digest(source.relative) in shard]  # id of the source's document
            own = {source.relative for source in found}
            remember_folders(Path(out), found)  # all sources, because a merge of shards has no folders to search
            job = replace(job, metadata={name: fields for name, fields in job.metadata.items() if name in own},
                          shard=ShardEntry(part=str(shard), sources=digest(*names)))
        report = _build_plan(plan_files(found, job.previous), job, progress, on_estimate)
        return replace(report, unknown_metadata=unknown) if shard is not None else report


def estimate_index(sources: Sequence[str | Path], out: str | Path, settings: IndexSettings | None = None,
                   embedder: Embedder | None = None, add: bool = False) -> BuildEstimate:
    """Estimate the cost of `build_index`, or of `add_to_index` with `add`. Parses and embeds a sample of the sources;
    the build reuses these results. Raises the same errors as `build_index`."""
    with _extending_job(out, embedder) if add else _new_job(out, settings, embedder) as job:
        found = find_sources(sources, job.settings.ocr)
        plan = plan_added(found, job.previous) if add and job.previous else plan_files(found, job.previous)
        return estimate(job, plan, ParsedDocuments(job.out))


def index_documents(documents: Iterable[Document], out: str | Path, settings: IndexSettings | None = None,
                    progress: Progress = silent, embedder: Embedder | None = None,
                    metadata: Metadata | None = None) -> BuildReport:
    """Index documents that are already parsed, for example from a generator. Their order, ids and sources are kept.
    Raises DocumentError if two have the same source or id, or metadata names an unknown source."""
    with _new_job(out, settings, embedder, metadata) as job, closing(
            stream_documents(documents, job.previous, job.metadata)) as stream:
        total = len(documents) if isinstance(documents, Sequence) else None
        return write_index(replace(job, total=total), stream, progress)


def add_to_index(sources: Sequence[str | Path], out: str | Path, progress: Progress = silent,
                 embedder: Embedder | None = None, metadata: Metadata | None = None,
                 on_estimate: OnEstimate | None = None) -> BuildReport:
    """Add sources to an index, and replace those with the same relative path. The index's settings and other sources
    stay. Metadata may also name sources that are already in the index. Other sources keep their metadata. Raises
    IndexFolderError if there is no complete index, or it was made with another embedder."""
    with _extending_job(out, embedder, metadata) as job:
        assert job.previous is not None
        plan = plan_added(find_sources(sources, job.settings.ocr), job.previous)
        return _build_plan(plan, job, progress, on_estimate)


def remove_from_index(names: Sequence[str], out: str | Path, progress: Progress = silent,
                      embedder: Embedder | None = None) -> BuildReport:
    """Remove sources from an index: by relative path, folder or pattern. Raises IndexFolderError if there is no
    complete index, a name matches nothing, or nothing would be left."""
    with _extending_job(out, embedder) as job:
        assert job.previous is not None
        return _build_plan(plan_removed(names, job.previous), job, progress)


def outdated_sources(sources: Sequence[str | Path], out: str | Path) -> dict[str, str]:
    """Compare sources with an index: return what differs, "changed", "added" or "deleted", by source."""
    known = read_manifest(current_folder(Path(out).absolute()))
    made = {name: entry.sha256 for name, entry in known.sources.items()} | {one.source: None for one in known.skipped}
    here = {source.relative: source for source in find_sources(sources)}
    changes = {name: "added" if name not in made else "changed" for name, source in here.items()
               if name not in made or (made[name] is not None and made[name] != file_hash(source))}
    return changes | {name: "deleted" for name in made if name not in here}


@contextmanager
def _new_job(out: str | Path, settings: IndexSettings | None, embedder: Embedder | None,
             metadata: Metadata | None = None, wait: bool = False) -> Iterator[BuildJob]:
    place, wanted = Path(out).absolute(), settings or IndexSettings()
    wanted.vectors.allow_server()
    with exclusive(place, wait):
        check_place(place)
        previous = None
        with suppress(IndexFolderError):  # no index, or a damaged one, which is replaced
            previous = PreviousIndex.open(current_folder(place))
        opened = LazyEmbedder(lambda: embedder or open_embedder(wanted.embedder), None, place)
        yield BuildJob(place, wanted, previous, opened, metadata or {})


@contextmanager
def _extending_job(out: str | Path, embedder: Embedder | None, metadata: Metadata | None = None) -> Iterator[BuildJob]:
    place = Path(out).absolute()
    with exclusive(place):
        check_place(place)
        previous = PreviousIndex.open(current_folder(place))
        settings = previous.manifest.settings
        opened = LazyEmbedder(lambda: embedder or open_embedder(settings.embedder, place), previous.manifest, place)
        yield BuildJob(place, settings, previous, opened, metadata or {}, extends=True)


def _build_plan(plan: Sequence[SourcePlan], job: BuildJob, progress: Progress,
                on_estimate: OnEstimate | None = None) -> BuildReport:
    unknown = unknown_sources(job.metadata, (source.name for source in plan))
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
    return replace(report, unknown_metadata=unknown)


_FILES = 4  # files of each type and group to measure, spread over their sizes
_TINY = 10  # a file this many times smaller than the average of its type is in the group of small files
_LARGE = 4_000_000  # bytes; larger files are not sampled if there are smaller ones
_HEAD = 400_000  # characters at the beginning of a document to chunk, as a sample of it
_WINDOWS = 8  # windows to embed and time; the same number is embedded first, to load the model
_PACKED = 0.4  # bytes in the index per character of a document's renderings and chunks


def estimate(job: BuildJob, plan: Sequence[SourcePlan], parsed: ParsedDocuments) -> BuildEstimate:
    """Measure a sample of the plan. Its documents and vectors are cached for the build. Raises ModelError if the
    embedder is needed but not on this machine."""
    new = [source for source in plan if source.file is not None and not is_unchanged(source, job)]
    sizes = {source.name: _size(source) for source in new}
    pending = {source.name for source in new if source.known is None and source.key not in parsed}
    found = to_embed = characters = parsing = 0.0
    sampled, missing = 0, dict[str, str]()
    for alike in _group_by_size(new, sizes):
        sample = [one for one in _measure_group(alike, sizes, pending, job, parsed) if one.chunked is not None]
        measured = sum(sizes[one.source.name] for one in sample) or 1
        share = sum(sizes[source.name] for source in alike) / measured
        if sample:  # the first file takes longer, because libraries are loaded
            parsing += median(one.seconds / sizes[one.source.name] for one in sample) * sum(
                sizes[source.name] for source in alike if source.name in pending)
        for one in sample:
            assert one.chunked is not None
            characters += one.characters * share
            found += sum(one.chunked.windows) * share * one.factor
            if job.embedder.computes:
                fresh = job.embedder.opened.missing(one.chunked.texts)
                to_embed += len(fresh) * share * one.factor
                missing |= dict.fromkeys(fresh, one.source.name)
        sampled += len(sample)
    made = None if job.previous is None else job.previous.manifest
    kept = made.windows * (len(plan) - len(new)) // max(made.documents, 1) if made else 0
    windows, embedding, dimension = kept + int(found), round(to_embed), job.embedder.dimension
    workers = max(1, min(count_cores(), len(pending)))
    index = job.choose(max(windows, 1), dimension).settings
    vectors, packed, peak = index.size(windows, dimension), int(_PACKED * characters), peak_memory(workers)
    seconds = {"parsing": parsing / workers}
    if job.embedder.computes:
        seconds |= {"embedding": _seconds_per_window(job, missing) * embedding,
                    "indexing": index.build_seconds(windows, dimension)}
    place = next(path for path in (job.out, *job.out.parents) if path.exists())
    return BuildEstimate(
        len(plan), len(pending), sum(sizes[source] for source in pending), windows, embedding, seconds,
        None if peak is None else peak + vectors + BLOCK * 4 * dimension, vectors + packed,
        packed + 4 * windows * dimension, embedding * stored_bytes(dimension), shutil.disk_usage(place).free, sampled)


def _seconds_per_window(job: BuildJob, missing: Mapping[str, str]) -> float:
    """Embed a sample of the texts, and return the seconds per text. `missing` maps each text to its source."""
    embedder, chosen = job.embedder, list(missing)[::max(len(missing) // (2 * _WINDOWS), 1)][:2 * _WINDOWS]
    with naming_source((source, text) for text, source in missing.items()):
        if len(chosen) > 1:
            embedder.opened.embed_passages(chosen[:len(chosen) // 2])
        warmed, started = embedder.embedded, perf_counter()
        if chosen:
            embedder.opened.embed_passages(chosen[len(chosen) // 2:])
        return (perf_counter() - started) / max(embedder.embedded - warmed, 1)


def _group_by_size(sources: Sequence[SourcePlan], sizes: Mapping[str, int]) -> Iterator[list[SourcePlan]]:
    """Yield the sources of each type in two groups, small and large ones, because the cost of a tiny file says nothing
    about a large one. Empty and unreadable files cost nothing and are left out."""
    for kind in sorted({file_kind(source.name) for source in sources}):
        alike = [source for source in sources if file_kind(source.name) == kind and sizes[source.name]]
        limit = sum(sizes[source.name] for source in alike) / max(len(alike), 1) / _TINY
        for tiny in (True, False):
            if group := [source for source in alike if (sizes[source.name] < limit) == tiny]:
                yield group


@dataclass(frozen=True, slots=True)
class _Sampled:
    source: SourcePlan
    chunked: ChunkedDocument | None  # None if the file cannot be read
    seconds: float  # to parse it
    characters: int = 0  # of its renderings, and of its text again for chunks
    factor: float = 1.0  # by which the document exceeds what was chunked


def _measure_group(alike: Sequence[SourcePlan], sizes: Mapping[str, int], pending: Collection[str], job: BuildJob,
                   parsed: ParsedDocuments) -> list[_Sampled]:
    """Read and chunk a sample of files of about one size. If none of it can be read, try another sample once."""
    left, result = [source for source in alike if source.name in pending] or list(alike), list[_Sampled]()
    for _ in range(2):
        chosen = _spread(left, sizes)
        unread = [source.file for source in chosen if source.name in pending and source.file]
        with closing(_read_sample(unread)) as results:
            result = [_measure_one(source, results if unread else None, job, parsed) for source in chosen]
        left = [source for source in left if source not in chosen]
        if not left or any(one.chunked for one in result):
            break
    return result


def _read_sample(files: Sequence[Source]) -> Generator[Document | DocumentError, None, None]:
    """Yield the documents of files. The worker reads an empty file first, so that its start is not measured."""
    empty = [Source(Path(os.devnull), f"empty{suffix_of(file.relative)}") for file in files[:1]]
    results = read_documents([*empty, *files], workers=1)
    next(results, None)
    yield from results


def _measure_one(source: SourcePlan, results: Iterator[Document | DocumentError] | None, job: BuildJob,
                 parsed: ParsedDocuments) -> _Sampled:
    started = perf_counter()
    incoming = load_document(source, next(results) if results else None, job.previous, parsed)
    seconds = perf_counter() - started
    if isinstance(incoming, DocumentError):
        return _Sampled(source, None, seconds)
    document = incoming.document
    characters, factor = len(document.html) + 2 * len(document.plain), max(len(document.plain) / _HEAD, 1.0)
    if factor > 1:
        incoming = replace(incoming, same=False, document=replace(
            document, html=document.html[:_HEAD], plain=document.plain[:_HEAD], pages=()))
    return _Sampled(source, chunk_document(job, incoming), seconds, characters, factor)


def _spread(sources: Sequence[SourcePlan], sizes: Mapping[str, int]) -> list[SourcePlan]:
    ordered = sorted(sources, key=lambda source: (sizes[source.name], source.name))
    small = [source for source in ordered if sizes[source.name] <= _LARGE] or ordered[:1]
    places = sorted({round((2 * step + 1) / (2 * _FILES) * (len(small) - 1)) for step in range(_FILES)})
    return [small[place] for place in places]


def _size(source: SourcePlan) -> int:
    try:
        if source.file is None or source.file.problem:
            return 0
        first, end = source.file.span or (0, source.file.path.stat().st_size)
        return end - first
    except OSError:
        return 0


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


def _bytes(size: int) -> str:
    return ByteSize(size).human_readable(decimal=True, separator=" ")
