"""What a build will take, before it starts: measured on a small sample, which need not be done again."""
from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from documents.processors import processors
from documents.sources import Source
from retrieval.building.plan import Work, kind_of
from retrieval.building.run import Job
from retrieval.building.sample import Measured, embedding, measure
from retrieval.building.staging import Staging
from retrieval.building.writer import BLOCK
from retrieval.memory import peak_memory
from retrieval.vector_choice import choose


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
        free: bytes free on that disk.
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
    free: int
    sampled: int

    def line(self) -> str:
        """One line for a person."""
        parts = ", ".join(f"{stage} {_duration(seconds)}" for stage, seconds in self.seconds.items())
        memory = "" if self.memory is None else f", {_bytes(self.memory)} of memory"
        short = f"; only {_bytes(self.free)} are free" if self.disk + self.building > self.free else ""
        return (f"about {self.windows:,} windows of {self.documents:,} documents ({self.parsing:,} to parse, "
                f"{_bytes(self.size)}; {self.embedding:,} windows to embed): {_duration(sum(self.seconds.values()))} "
                f"({parts}){memory}, {_bytes(self.disk)} on disk and {_bytes(self.building)} more meanwhile{short}")


def estimate(job: Job, plan: Sequence[Work], staging: Staging) -> Estimate:
    """What building the plan will take. The sample's renderings are staged, its vectors are in the cache afterwards.

    Raises:
        ModelError: the embedder is needed and not on this machine.
    """
    new = [work for work in plan if work.file is not None and not _stays(work, job)]
    sizes = {work.source: _size(work.file) for work in new if work.file is not None}
    pending = [work for work in new if work.known is None and work.key not in staging]
    measured = measure(job, new, pending, sizes, staging)
    share, rate = embedding(job, measured.texts)
    old = job.before.manifest if job.before is not None else None
    kept = 0 if old is None else old.windows * (len(plan) - len(new)) // max(old.documents, 1)
    coming = sum(_windows(measured, kind_of(work.source), sizes[work.source]) for work in new)
    windows = int(kept + coming)
    packed = measured.packed / max(sum(measured.bytes.values()), 1) * sum(sizes.values())
    dimension = job.embedder.dimension
    kind = choose(job.settings.vectors, max(windows, 1), dimension).settings
    vectors = kind.size(windows, dimension)
    seconds = {"parsing": sum(measured.parsing.get(kind_of(work.source), 0.0) * sizes[work.source] for work in pending)
               / _workers(len(pending)),
               "cutting": measured.cutting / max(sum(measured.windows.values()), 1) * coming,
               "embedding": rate * share * coming}
    peak = peak_memory(_workers(len(pending)))
    return Estimate(
        len(plan), len(pending), sum(sizes[work.source] for work in pending), windows, round(share * coming), seconds,
        None if peak is None else peak + vectors + BLOCK * 4 * dimension,
        int(vectors + packed + (0 if old is None else kept * 1_000)), int(windows * dimension * 4 + packed),
        _free(job), measured.documents)


def _stays(work: Work, job: Job) -> bool:
    """Whether its chunks and vectors are those of the index before."""
    before = job.before
    if before is None or work.known not in (None, work.source) or before.entry(work.source) is None:
        return False
    made, wanted = before.manifest.settings, job.settings
    same = (made.chunker, made.formats, made.titled) == (wanted.chunker, wanted.formats, wanted.titled)
    return (work.file is None or work.known is not None) and same and (
        before.manifest.embedder.identity == job.embedder.identity)


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
