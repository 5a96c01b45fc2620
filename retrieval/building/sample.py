"""The sample that an estimate is measured on: a few files of each type, read, cut and embedded as in a build."""
from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from documents.load import read_documents
from documents.types import Document
from retrieval.building.arrivals import Arrival, arrived
from retrieval.building.pieces import Cutter
from retrieval.building.plan import Work, kind_of
from retrieval.building.run import Job
from retrieval.building.staging import Staging

SAMPLE = 4
"""Files of each type that are measured, spread over their sizes."""

LARGE = 4_000_000
"""Bytes of a file that is not taken for the sample where there are smaller ones."""

WINDOWS = 64
WARMING = 8
"""Windows that are embedded, and how many of them before the clock starts: the first calls load the model."""

STARTING = 0.5
"""Seconds that a parsing process takes to start."""


@dataclass(slots=True)
class Measured:
    """Sums over the sample, by type of file where it matters.

    Attributes:
        parsing: seconds a byte in one process.
        cutting: seconds.
        packed: bytes of the documents and their chunks in the index.
        texts: of the windows.
    """

    bytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    windows: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    parsing: dict[str, float] = field(default_factory=dict)
    cutting: float = 0.0
    packed: int = 0
    texts: list[str] = field(default_factory=list)
    documents: int = 0


def measure(job: Job, new: Sequence[Work], pending: Sequence[Work], sizes: Mapping[str, int],
            staging: Staging) -> Measured:
    """Read and cut a few of the files; those that are pending, where there are such of their type."""
    measured = Measured()
    cutter = Cutter(job.settings, job.embedder, job.before, {})
    for kind in sorted({kind_of(work.source) for work in new}):
        works = _spread(_of(kind, pending) or _of(kind, new), sizes)
        for work, arrival in _arrivals(kind, works, job, sizes, staging, measured):
            begun = perf_counter()
            piece = cutter.cut(arrival)
            measured.cutting += perf_counter() - begun
            measured.documents += 1
            measured.bytes[kind] += sizes[work.source]
            measured.windows[kind] += sum(piece.windows)
            measured.packed += _packed(arrival.document)
            measured.texts += piece.texts
    return measured


def _arrivals(kind: str, works: Sequence[Work], job: Job, sizes: Mapping[str, int], staging: Staging,
              measured: Measured) -> Iterator[tuple[Work, Arrival]]:
    """The documents of the sample; where they are parsed for it, how long that takes for each byte is noted."""
    fresh = [work for work in works if work.known is None and work.key not in staging]
    results = read_documents([work.file for work in fresh if work.file is not None], workers=1) if fresh else iter(())
    begun = perf_counter()
    taken: list[tuple[float, int]] = []
    for work in works:
        result = next(results) if work in fresh else None
        taken.append((perf_counter() - begun, sizes[work.source]))
        arrival = arrived(work, result, job.before, staging)
        if isinstance(arrival, Arrival):
            yield work, arrival
        begun = perf_counter()
    if fresh:
        timed = taken[1:] or [(max(taken[0][0] - STARTING, taken[0][0] / 10), taken[0][1])]
        measured.parsing[kind] = sum(seconds for seconds, _ in timed) / max(sum(size for _, size in timed), 1)


def embedding(job: Job, texts: Sequence[str]) -> tuple[float, float]:
    """The share of windows that the model has to embed, and the seconds for each."""
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return 1.0, 0.0
    chosen = distinct[::max(len(distinct) // WINDOWS, 1)][:WINDOWS]
    embedder = job.embedder.opened
    before = embedder.embedded
    embedder.embed_passages(chosen[:WARMING])
    warmed, begun = embedder.embedded, perf_counter()
    embedder.embed_passages(chosen[WARMING:])
    seconds, timed = perf_counter() - begun, embedder.embedded - warmed
    return (embedder.embedded - before) / len(chosen), seconds / timed if timed else 0.0


def _of(kind: str, works: Sequence[Work]) -> list[Work]:
    return [work for work in works if kind_of(work.source) == kind]


def _spread(works: Sequence[Work], sizes: Mapping[str, int]) -> list[Work]:
    """A few of them, from small to large."""
    ordered = sorted(works, key=lambda work: (sizes[work.source], work.source))
    small = [work for work in ordered if 0 < sizes[work.source] <= LARGE] or ordered[:1]
    places = sorted({round((2 * step + 1) / (2 * SAMPLE) * (len(small) - 1)) for step in range(SAMPLE)})
    return [small[place] for place in places]


def _packed(document: Document) -> int:
    """Bytes of a document and its chunks in the index, about."""
    return len(zlib.compress((document.html + 2 * document.plain).encode("utf-8", "surrogatepass"), 1))
