"""Estimates what a build takes, before it starts: measured on a small sample, which is not done again."""
from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from pydantic import ByteSize

from ragbed.documents.errors import DocumentError
from ragbed.documents.paths import count_cores
from ragbed.documents.workers import read_documents
from ragbed.retrieval.building.before import Staging
from ragbed.retrieval.building.job import BLOCK, stays
from ragbed.retrieval.building.pieces import BuildJob, cut
from ragbed.retrieval.building.plan import Work, arrived, kind_of
from ragbed.retrieval.memory import peak_memory
from ragbed.retrieval.storage.cache import kept_bytes

FILES = 4  # files of each type that are measured, spread over their sizes
LARGE = 4_000_000  # bytes of a file that is not taken for the sample where there are smaller ones
HEAD = 400_000  # characters of a document that are cut: of a longer one its beginning stands for the rest
WINDOWS = 8  # windows that are embedded and timed, after as many that load the model
PACKED = 0.4  # bytes in the index of a character of a document's renderings and chunks


@dataclass(frozen=True, slots=True)
class BuildEstimate:
    """The time, memory and disk that a build takes, roughly."""

    documents: int  # in the index to be; those that turn out to be unreadable are counted
    parsing: int  # of them, those that are parsed; `size` is that of their files in bytes
    size: int
    windows: int  # vectors in the index
    embedding: int  # of them, those that the model has to embed
    seconds: Mapping[str, float]  # by stage, on this machine as it was while the sample was measured
    memory: int | None  # bytes at the peak, worker processes included; None where the system does not tell
    disk: int  # bytes of the index folder; `building` is what comes to it until the build ends
    building: int
    cache: int  # bytes that come to the cache of embeddings, on whichever disk that is
    free: int  # bytes free on the disk of the index
    sampled: int  # documents that were measured

    def line(self) -> str:
        """Say it in one line."""
        parts = ", ".join(f"{stage} {_duration(seconds)}" for stage, seconds in self.seconds.items())
        memory = "" if self.memory is None else f", {_bytes(self.memory)} of memory"
        short = f"; only {_bytes(self.free)} are free" if self.disk + self.building + self.cache > self.free else ""
        return (f"about {self.windows:,} windows of {self.documents:,} documents ({self.parsing:,} to parse, "
                f"{_bytes(self.size)}; {self.embedding:,} windows to embed): {_duration(sum(self.seconds.values()))} "
                f"({parts}){memory}, {_bytes(self.disk)} on disk, {_bytes(self.building)} more meanwhile, "
                f"{_bytes(self.cache)} in the cache{short}")


def estimate(job: BuildJob, plan: Sequence[Work], staging: Staging) -> BuildEstimate:
    """Measure what building the plan will take. The sample's renderings are staged, its vectors are in the cache then.
    Raises ModelError where the embedder is needed and not on this machine."""
    new = [work for work in plan if work.file is not None and not stays(work, job)]
    sizes = {work.source: _size(work) for work in new}
    pending = {work.source for work in new if work.known is None and work.key not in staging}
    found = to_embed = characters = parsing = 0.0
    sampled, missing = 0, list[str]()
    for kind in sorted({kind_of(work.source) for work in new}):
        works = [work for work in new if kind_of(work.source) == kind]
        unread = [work for work in works if work.source in pending]
        chosen = _spread(unread or works, sizes)
        size = max(sum(sizes[work.source] for work in chosen), 1)
        share, share_unread = (sum(sizes[work.source] for work in those) / size for those in (works, unread))
        results = read_documents([work.file for work in chosen if unread and work.file], workers=1)
        for work in chosen:
            begun = perf_counter()
            arrival = arrived(work, next(results) if unread else None, job.before, staging)
            parsing += (perf_counter() - begun) * share_unread
            if isinstance(arrival, DocumentError):
                continue
            document = arrival.document
            characters += (len(document.html) + 2 * len(document.plain)) * share
            much = max(len(document.plain) / HEAD, 1.0)
            if much > 1:
                arrival = replace(arrival, same=False, document=replace(
                    document, html=document.html[:HEAD], plain=document.plain[:HEAD], pages=()))
            piece = cut(job, arrival)
            fresh = job.embedder.opened.missing(piece.texts)
            found += sum(piece.windows) * share * much
            to_embed += len(fresh) * share * much
            missing += fresh
            sampled += 1
    before = None if job.before is None else job.before.manifest
    kept = before.windows * (len(plan) - len(new)) // max(before.documents, 1) if before else 0
    windows, embedding, dimension = kept + int(found), round(to_embed), job.embedder.dimension
    workers = max(1, min(count_cores(), len(pending)))
    index = job.choose(max(windows, 1), dimension).settings
    vectors, packed, peak = index.size(windows, dimension), int(PACKED * characters), peak_memory(workers)
    seconds = {"parsing": parsing / workers, "embedding": _seconds_a_window(job, missing) * embedding,
               "indexing": index.build_seconds(windows, dimension)}
    place = next(path for path in (job.out, *job.out.parents) if path.exists())
    return BuildEstimate(
        len(plan), len(pending), sum(sizes[source] for source in pending), windows, embedding, seconds,
        None if peak is None else peak + vectors + BLOCK * 4 * dimension, vectors + packed,
        packed + 4 * windows * dimension, embedding * kept_bytes(dimension), shutil.disk_usage(place).free, sampled)


def _seconds_a_window(job: BuildJob, missing: Sequence[str]) -> float:
    embedder, chosen = job.embedder, missing[::max(len(missing) // (2 * WINDOWS), 1)][:2 * WINDOWS]
    if len(chosen) > 1:
        embedder.opened.embed_passages(chosen[:len(chosen) // 2])
    warmed, begun = embedder.embedded, perf_counter()
    if chosen:
        embedder.opened.embed_passages(chosen[len(chosen) // 2:])
    return (perf_counter() - begun) / max(embedder.embedded - warmed, 1)


def _spread(works: Sequence[Work], sizes: Mapping[str, int]) -> list[Work]:
    ordered = sorted(works, key=lambda work: (sizes[work.source], work.source))
    small = [work for work in ordered if 0 < sizes[work.source] <= LARGE] or ordered[:1]
    places = sorted({round((2 * step + 1) / (2 * FILES) * (len(small) - 1)) for step in range(FILES)})
    return [small[place] for place in places]


def _size(work: Work) -> int:
    try:
        return 0 if work.file is None or work.file.problem else work.file.path.stat().st_size
    except OSError:
        return 0


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


def _bytes(size: int) -> str:
    return ByteSize(size).human_readable(decimal=True, separator=" ")
