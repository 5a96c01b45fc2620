"""What a run searched and how fast: beside its figures, and in no summary, since times differ from day to day."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

from agents.search import Searcher
from documents.types import Chunk
from experiments.metrics import Extent, precision_omega
from experiments.question import Question
from experiments.running.recording import IndexKey
from experiments.running.resources import Resources
from retrieval.types import Progress


@dataclass(frozen=True, slots=True)
class Searching:
    """What a cell searched.

    Attributes:
        chunks: that were searched; None where a replay did not open them.
        characters: of a chunk, on average, without a header that it repeats.
        omega: the mean precision over characters, were exactly the chunks found that hold gold; None without gold
            characters.
        first: seconds of the first search, which loads and builds what it needs.
        rate: queries a second in the searches after it; where there was one search, in that.
    """

    chunks: int | None = None
    characters: float | None = None
    omega: float | None = None
    first: float | None = None
    rate: float | None = None

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


@dataclass(slots=True)
class Stages:
    """How long each stage of building took, told on to another."""

    on: Progress
    seconds: dict[str, float] = field(default_factory=dict)
    _at: float = field(default_factory=perf_counter)

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        now = perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._at
        self.on(stage, done, total)
        self._at = perf_counter()


def searching_of(resources: Resources) -> dict[IndexKey, Searching]:
    """What was searched, by the name of what found it and by format, which chunks that questions bring have not."""
    questions = resources.benchmark.questions
    indexed = {key: _searching(_chunks(resources, key), questions, searcher)
               for key, searcher in resources.searchers.items()}
    return indexed | {(name, None): _searching(one.pool.chunks if one.pool is not None else (), questions, one.searcher)
                      for name, one in resources.pools.items()}


def _chunks(resources: Resources, key: IndexKey) -> Sequence[Chunk]:
    index = resources.indexes.get(key)
    return index.chunks if index is not None else ()


def _searching(chunks: Sequence[Chunk], questions: Sequence[Question], searcher: Searcher[Any]) -> Searching:
    first, rate = searcher.times.first, searcher.times.rate
    if not chunks:
        return Searching(first=first, rate=rate)
    lengths = [chunk.end - chunk.start for chunk in chunks]
    return Searching(len(chunks), sum(lengths) / len(lengths), _omega(chunks, questions), first, rate)


def _omega(chunks: Sequence[Chunk], questions: Sequence[Question]) -> float | None:
    extents: dict[tuple[str, str], list[Extent]] = {}
    for chunk in chunks:
        extents.setdefault((chunk.document, chunk.format), []).append(
            Extent(chunk.document, chunk.format, chunk.start, chunk.end))
    found = [precision_omega([one for place in {(gold.document, gold.format) for gold in marked}
                              for one in extents.get(place, ())], marked)
             for marked in map(_marked, questions) if marked]
    return sum(found) / len(found) if found else None


def _marked(question: Question) -> list[Extent]:
    """The gold of a question that is spans of characters, and no chunks."""
    return [Extent(item.document, item.format, item.start, item.end) for item in question.gold
            if item.chunk is None and item.format is not None and item.start is not None and item.end is not None]


def seconds_said(stages: Mapping[str, float]) -> str:
    """The stages in words; empty where nothing was built."""
    return ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in stages.items() if seconds >= 0.05)
