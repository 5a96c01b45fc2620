"""What a build will take, before it starts: measured on a small sample, which need not be done again.

About how long vectors take to be indexed, by what their kind of index computes, at rates that were measured.
"""
from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from documents.places import processors
from documents.sources import Source
from retrieval.building.plan import Work, kind_of
from retrieval.building.preflight import Staging
from retrieval.building.run import Job, stays
from retrieval.building.sample import Measured, embedding, measure
from retrieval.building.writer import BLOCK
from retrieval.memory import peak_memory
from retrieval.storage.cache import kept_bytes
from retrieval.vector_settings import Decided, Hnsw, Ivf, IvfPq, choose
from retrieval.vectors import LEAST, ROUNDS, SAMPLE

PRODUCTS = 5.5e10
"""Multiplications a second on one core, of vectors with centres: 40,000 vectors of 384 numbers and their 1,600 centres
took 4.4 seconds of a core."""

LINK = 3e-4
"""Seconds that linking a vector of 384 numbers into a graph takes on one core: 0.1 ms in one of 8,000 that fits the
processor's own memory, 0.18 ms in one of 24,000; it goes on growing, slowly."""


def indexing(kind: Decided, count: int, dimension: int) -> float:
    """Seconds that learning from so many vectors and adding them takes, on as many cores as it uses.

    Args:
        kind: with everything filled in.
    """
    if isinstance(kind, Hnsw):
        return count * LINK * kind.ef_build / 100 * dimension / 384 / min(kind.threads, processors())
    if not isinstance(kind, Ivf | IvfPq):
        return 0.0
    lists, pieces = kind.lists or 1, LEAST if isinstance(kind, IvfPq) else 0
    learnt = min(max(SAMPLE * lists, LEAST * LEAST), count)
    shared = (learnt * ROUNDS * lists + count * (lists + pieces)) / processors()
    return (shared + learnt * ROUNDS * pieces) * dimension / PRODUCTS  # pieces are learnt on one core


_KEPT = 1_000
"""Bytes of a window's text and its document in the index, of those that are not looked at again."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a build will take, roughly.

    Attributes:
        documents: in the index to be; those that turn out to be unreadable are counted.
        parsing: of them, those that are parsed; `size` is that of their files in bytes.
        windows: vectors in the index.
        embedding: of them, those that the model has to embed.
        seconds: by stage, on this machine as it was while the sample was measured.
        memory: bytes at the peak, worker processes included; None where the system does not tell.
        disk: bytes of the index folder; `building` is what comes to it until the build ends.
        cache: bytes that come to the cache of embeddings, on whichever disk that is.
        free: bytes free on the disk of the index.
        sampled: documents that were measured.
    """

    documents: int
    parsing: int
    size: int
    windows: int
    embedding: int
    seconds: Mapping[str, float]
    memory: int | None
    disk: int
    building: int
    cache: int
    free: int
    sampled: int

    def line(self) -> str:
        """One line for a person."""
        parts = ", ".join(f"{stage} {_duration(seconds)}" for stage, seconds in self.seconds.items())
        memory = "" if self.memory is None else f", {_bytes(self.memory)} of memory"
        short = f"; only {_bytes(self.free)} are free" if self.disk + self.building + self.cache > self.free else ""
        return (f"about {self.windows:,} windows of {self.documents:,} documents ({self.parsing:,} to parse, "
                f"{_bytes(self.size)}; {self.embedding:,} windows to embed): {_duration(sum(self.seconds.values()))} "
                f"({parts}){memory}, {_bytes(self.disk)} on disk, {_bytes(self.building)} more meanwhile, "
                f"{_bytes(self.cache)} in the cache{short}")


def estimate(job: Job, plan: Sequence[Work], staging: Staging) -> Estimate:
    """What building the plan will take. The sample's renderings are staged, its vectors are in the cache afterwards.

    Raises:
        ModelError: the embedder is needed and not on this machine.
    """
    new = [work for work in plan if work.file is not None and not stays(work, job)]
    sizes = {work.source: _size(work.file) for work in new if work.file is not None}
    pending = [work for work in new if work.known is None and work.key not in staging]
    measured = measure(job, new, pending, sizes, staging)
    rate = embedding(job, measured.texts)
    old = job.before.manifest if job.before is not None else None
    kept = 0 if old is None else old.windows * (len(plan) - len(new)) // max(old.documents, 1)
    cut = [(kind_of(work.source), _windows(measured, kind_of(work.source), sizes[work.source])) for work in new]
    coming, to_embed = sum(count for _, count in cut), sum(measured.missing[kind] * count for kind, count in cut)
    windows, embedded, dimension = int(kept + coming), round(to_embed), job.embedder.dimension
    kind = choose(job.settings.vectors, max(windows, 1), dimension).settings
    vectors = kind.size(windows, dimension)
    seconds = {**_seconds(measured, pending, sizes, coming), "embedding": rate * to_embed,
               "indexing": indexing(kind, windows, dimension)}
    disk, building = _disk(measured, sizes, vectors, kept if old is not None else 0, 4 * windows * dimension)
    return Estimate(
        len(plan), len(pending), sum(sizes[work.source] for work in pending), windows, embedded, seconds,
        _memory(_workers(len(pending)), vectors, dimension), disk, building, embedded * kept_bytes(dimension),
        _free(job), measured.documents)


def _seconds(measured: Measured, pending: Sequence[Work], sizes: Mapping[str, int], coming: float) -> dict[str, float]:
    """Of what happens to documents before their windows are embedded."""
    parsing = sum(measured.parsing.get(kind_of(work.source), 0.0) * sizes[work.source] for work in pending)
    return {"parsing": parsing / _workers(len(pending)),
            "cutting": measured.cutting / max(sum(measured.windows.values()), 1) * coming}


def _memory(workers: int, vectors: int, dimension: int) -> int | None:
    peak = peak_memory(workers)
    return None if peak is None else peak + vectors + BLOCK * 4 * dimension


def _disk(measured: Measured, sizes: Mapping[str, int], vectors: int, kept: int, raw: int) -> tuple[int, int]:
    """Bytes of the index folder, and those that come to it while it is built."""
    packed = measured.packed / max(sum(measured.bytes.values()), 1) * sum(sizes.values())
    return int(vectors + packed + kept * _KEPT), int(raw + packed)


def _windows(measured: Measured, kind: str, size: int) -> float:
    return measured.windows[kind] / max(measured.bytes[kind], 1) * size


def _size(file: Source) -> int:
    try:
        return 0 if file.problem else file.path.stat().st_size
    except OSError:
        return 0


def _workers(files: int) -> int:
    return max(1, min(processors(), files))


def _free(job: Job) -> int:
    place = next(path for path in (job.out, *job.out.parents) if path.exists())
    return shutil.disk_usage(place).free


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


def _bytes(size: int) -> str:
    if size >= 1_000_000_000:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.0f} MB" if size >= 1_000_000 else f"{size / 1e3:.0f} kB"
