"""Estimate the time, memory and disk of a build from a small sample, whose results the build reuses."""
from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from pydantic import ByteSize

from ragbed.documents.errors import DocumentError
from ragbed.documents.paths import count_cores
from ragbed.documents.workers import read_documents
from ragbed.retrieval.building.chunked_documents import BuildJob, chunk_document
from ragbed.retrieval.building.index_writer import BLOCK, is_unchanged
from ragbed.retrieval.building.plan import SourcePlan, file_kind, load_document
from ragbed.retrieval.building.previous_index import ParsedDocuments
from ragbed.retrieval.memory import peak_memory
from ragbed.retrieval.storage.cache import stored_bytes

_FILES = 4  # files of each type to measure, spread over their sizes
_LARGE = 4_000_000  # bytes; larger files are not sampled if there are smaller ones
_HEAD = 400_000  # characters to chunk of a document, whose beginning represents the rest
_WINDOWS = 8  # windows to embed and time, after as many to load the model
_PACKED = 0.4  # bytes in the index per character of a document's renderings and chunks


@dataclass(frozen=True, slots=True)
class BuildEstimate:
    """Estimated time, memory and disk of a build. Sizes are in bytes."""

    documents: int  # sources in the new index, including any that turn out to be unreadable
    parsing: int  # documents to parse
    size: int  # bytes of the files to parse
    windows: int  # vectors in the index
    embedding: int  # windows that the model has to embed
    seconds: Mapping[str, float]  # seconds by stage, on this machine with its current load
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
        return (f"about {self.windows:,} windows of {self.documents:,} documents ({self.parsing:,} to parse, "
                f"{_bytes(self.size)}; {self.embedding:,} windows to embed): {_duration(sum(self.seconds.values()))} "
                f"({parts}){memory}, {_bytes(self.disk)} on disk, {_bytes(self.building)} more during the build, "
                f"{_bytes(self.cache)} in the cache{short}")


def estimate(job: BuildJob, plan: Sequence[SourcePlan], parsed: ParsedDocuments) -> BuildEstimate:
    """Measure a sample of the plan. Its documents and vectors are cached for the build. Raises ModelError if the
    embedder is needed but not on this machine."""
    new = [source for source in plan if source.file is not None and not is_unchanged(source, job)]
    sizes = {source.name: _size(source) for source in new}
    pending = {source.name for source in new if source.known is None and source.key not in parsed}
    found = to_embed = characters = parsing = 0.0
    sampled, missing = 0, list[str]()
    for kind in sorted({file_kind(source.name) for source in new}):
        alike = [source for source in new if file_kind(source.name) == kind]
        unread = [source for source in alike if source.name in pending]
        chosen = _spread(unread or alike, sizes)
        size = max(sum(sizes[source.name] for source in chosen), 1)
        share, share_unread = (sum(sizes[source.name] for source in those) / size for those in (alike, unread))
        results = read_documents([source.file for source in chosen if unread and source.file], workers=1)
        for source in chosen:
            started = perf_counter()
            incoming = load_document(source, next(results) if unread else None, job.previous, parsed)
            parsing += (perf_counter() - started) * share_unread
            if isinstance(incoming, DocumentError):
                continue
            document = incoming.document
            characters += (len(document.html) + 2 * len(document.plain)) * share
            factor = max(len(document.plain) / _HEAD, 1.0)
            if factor > 1:
                incoming = replace(incoming, same=False, document=replace(
                    document, html=document.html[:_HEAD], plain=document.plain[:_HEAD], pages=()))
            chunked = chunk_document(job, incoming)
            fresh = job.embedder.opened.missing(chunked.texts)
            found += sum(chunked.windows) * share * factor
            to_embed += len(fresh) * share * factor
            missing += fresh
            sampled += 1
    made = None if job.previous is None else job.previous.manifest
    kept = made.windows * (len(plan) - len(new)) // max(made.documents, 1) if made else 0
    windows, embedding, dimension = kept + int(found), round(to_embed), job.embedder.dimension
    workers = max(1, min(count_cores(), len(pending)))
    index = job.choose(max(windows, 1), dimension).settings
    vectors, packed, peak = index.size(windows, dimension), int(_PACKED * characters), peak_memory(workers)
    seconds = {"parsing": parsing / workers, "embedding": _seconds_per_window(job, missing) * embedding,
               "indexing": index.build_seconds(windows, dimension)}
    place = next(path for path in (job.out, *job.out.parents) if path.exists())
    return BuildEstimate(
        len(plan), len(pending), sum(sizes[source] for source in pending), windows, embedding, seconds,
        None if peak is None else peak + vectors + BLOCK * 4 * dimension, vectors + packed,
        packed + 4 * windows * dimension, embedding * stored_bytes(dimension), shutil.disk_usage(place).free, sampled)


def _seconds_per_window(job: BuildJob, missing: Sequence[str]) -> float:
    embedder, chosen = job.embedder, missing[::max(len(missing) // (2 * _WINDOWS), 1)][:2 * _WINDOWS]
    if len(chosen) > 1:
        embedder.opened.embed_passages(chosen[:len(chosen) // 2])
    warmed, started = embedder.embedded, perf_counter()
    if chosen:
        embedder.opened.embed_passages(chosen[len(chosen) // 2:])
    return (perf_counter() - started) / max(embedder.embedded - warmed, 1)


def _spread(sources: Sequence[SourcePlan], sizes: Mapping[str, int]) -> list[SourcePlan]:
    ordered = sorted(sources, key=lambda source: (sizes[source.name], source.name))
    small = [source for source in ordered if 0 < sizes[source.name] <= _LARGE] or ordered[:1]
    places = sorted({round((2 * step + 1) / (2 * _FILES) * (len(small) - 1)) for step in range(_FILES)})
    return [small[place] for place in places]


def _size(source: SourcePlan) -> int:
    try:
        return 0 if source.file is None or source.file.problem else source.file.path.stat().st_size
    except OSError:
        return 0


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


def _bytes(size: int) -> str:
    return ByteSize(size).human_readable(decimal=True, separator=" ")
