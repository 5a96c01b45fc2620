"""The sample that an estimate is measured on: a few files of each type, read, cut and embedded as in a build."""
from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from documents.types import Document
from documents.workers import read_documents
from retrieval.building.arrivals import Arrival, arrived
from retrieval.building.pieces import Cutter
from retrieval.building.plan import Work, kind_of
from retrieval.building.preflight import Staging
from retrieval.building.run import Job

SAMPLE = 4
"""Files of each type that are measured, spread over their sizes."""

LARGE = 4_000_000
"""Bytes of a file that is not taken for the sample where there are smaller ones."""

WINDOWS = 64
WARMING = 8
"""Windows that are embedded, and how many of them before the clock starts: the first calls load the model."""

COUNTED = 64
COUNTING = 2.0
"""Files of a type, and seconds, for counting which windows are embedded already, where none of its files is parsed."""

STARTING = 0.5
"""Seconds that a parsing process takes to start."""


@dataclass(slots=True)
class Measured:
    """Sums over the sample, by type of file where it matters.

    Attributes:
        parsing: seconds a byte in one process.
        cutting: seconds.
        packed: bytes of the documents and their chunks in the index.
        missing: the share of the windows that the model has to embed.
        texts: of those windows, each once.
    """

    bytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    windows: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    parsing: dict[str, float] = field(default_factory=dict)
    cutting: float = 0.0
    packed: int = 0
    missing: dict[str, float] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    documents: int = 0


def measure(job: Job, new: Sequence[Work], pending: Sequence[Work], sizes: Mapping[str, int],
            staging: Staging) -> Measured:
    """Read and cut a few of the files; those that are pending, where there are such of their type."""
    measured = Measured()
    cutter = Cutter(job.settings, job.embedder, job.before, {})
    for kind in sorted({kind_of(work.source) for work in new}):
        unread, texts = _of(kind, pending), list[str]()
        works = _spread(unread or _of(kind, new), sizes)
        for work, arrival in _arrivals(kind, works, job, sizes, staging, measured):
            begun = perf_counter()
            piece = cutter.cut(arrival)
            measured.cutting += perf_counter() - begun
            measured.documents += 1
            measured.bytes[kind] += sizes[work.source]
            measured.windows[kind] += sum(piece.windows)
            measured.packed += _packed(arrival.document)
            texts += piece.texts
        if not unread:
            texts += _others(_of(kind, new), works, job, cutter, staging)
        missing = job.embedder.opened.missing(texts) if texts else []
        measured.missing[kind] = len(missing) / max(len(set(texts)), 1)
        measured.texts += missing
    return measured


def _others(new: Sequence[Work], drawn: Sequence[Work], job: Job, cutter: Cutter, staging: Staging) -> list[str]:
    """Windows of files that need no parsing, beside those drawn: an estimate before this one drew the same files, and
    embedded their windows, which then say nothing of the rest."""
    begun, texts = perf_counter(), list[str]()
    for work in sorted(set(new) - set(drawn), key=lambda work: work.key)[:COUNTED]:
        if perf_counter() - begun > COUNTING:
            break
        arrival = arrived(work, None, job.before, staging)
        if isinstance(arrival, Arrival):
            texts += cutter.cut(arrival).texts
    return texts


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


def embedding(job: Job, texts: Sequence[str]) -> float:
    """Seconds for each window that the model has to embed; `texts` are of such, each once."""
    if not texts:
        return 0.0
    chosen = texts[::max(len(texts) // WINDOWS, 1)][:WINDOWS]
    warming = min(WARMING, len(chosen) // 2)
    embedder = job.embedder.opened
    embedder.embed_passages(chosen[:warming])
    warmed, begun = embedder.embedded, perf_counter()
    embedder.embed_passages(chosen[warming:])
    seconds, timed = perf_counter() - begun, embedder.embedded - warmed
    return seconds / timed if timed else 0.0


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
