"""Matching shown evidence to gold: which passages are gold, at what level, and how much gold was in view."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from documents.types import Chunk, Document
from experiments.question import Gold, distinct
from strategies.types import Passage

Level = Literal["chunk", "span", "page", "document"]
LEVELS: tuple[Level, ...] = ("chunk", "span", "page", "document")


@dataclass(frozen=True, slots=True)
class GoldView:
    """What of a question's gold its evidence showed.

    Attributes:
        levels: per evidence number, the finest level at which it is gold, or None.
        hits: per evidence number, the indices of the gold items that it holds.
        total: number of distinct gold items, shown or not.
        grades: their relevance, where any is not 1; else empty.
        repeats: the evidence numbers of further chunks of a document that was found before, where all gold is whole
            documents. A ranking of documents goes by the best chunk of each (MaxP: Dai and Callan, "Deeper Text
            Understanding for IR with Contextual Neural Language Modeling", SIGIR 2019), so they take no rank.
    """

    levels: Mapping[int, Level | None]
    hits: Mapping[int, frozenset[int]]
    total: int
    grades: tuple[int, ...] = ()
    repeats: frozenset[int] = frozenset()

    @property
    def in_view(self) -> frozenset[int]:
        """Indices of the gold items that at least one passage holds."""
        return frozenset[int]().union(*self.hits.values())

    def gold_among(self, numbers: Iterable[int]) -> bool | None:
        """Whether any of the evidence of these numbers holds gold; None where the question has none."""
        return any(self.hits[number] for number in numbers) if self.total else None


def match(gold: Sequence[Gold], evidence: Iterable[Passage], source_of: Callable[[str], str],
          itself: str | None = None) -> GoldView:
    """Match every passage with every gold item.

    A chunk is gold if it is the gold chunk, else if it overlaps the gold span, else the gold page, else stands in
    the gold document; a coarser level counts only where the finer one is not known of both sides.

    Args:
        source_of: document id to its source path, since a gold item may name either.
        itself: a document that is the query, and takes no rank.
    """
    items = distinct(gold)
    whole = bool(items) and all((item.chunk, item.start, item.page) == (None, None, None) for item in items)
    levels: dict[int, Level | None] = {}
    hits: dict[int, frozenset[int]] = {}
    repeats: set[int] = set()
    seen: set[str] = set()
    for passage in evidence:
        if whole and (passage.chunk.document in seen or passage.chunk.document == itself):
            repeats.add(passage.number)
        seen.add(passage.chunk.document)
        source = source_of(passage.chunk.document)
        found = {index: level for index, item in enumerate(items)
                 if (level := _level(item, passage.chunk, source)) is not None}
        levels[passage.number] = min(found.values(), key=LEVELS.index, default=None)
        hits[passage.number] = frozenset(found)
    grades = tuple(item.relevance for item in items)
    return GoldView(levels, hits, len(items), grades if set(grades) - {1} else (), frozenset(repeats))


def _level(gold: Gold, chunk: Chunk, source: str) -> Level | None:
    if gold.chunk is not None and gold.chunk == chunk.id:
        return "chunk"
    if gold.document not in (chunk.document, source):
        return None
    if gold.start is not None and gold.end is not None and gold.format == chunk.format:
        return "span" if chunk.start < gold.end and gold.start < chunk.end else None
    if gold.page is not None and chunk.pages is not None:
        return "page" if chunk.pages[0] <= gold.page <= chunk.pages[1] else None
    return None if gold.chunk is not None and gold.start is None and gold.page is None else "document"


def by_source(gold: Iterable[Gold], own: Mapping[str, Document]) -> tuple[Gold, ...]:
    """The gold as an index can hold it: of one of the benchmark's own chunks, its source is all that both know.

    Args:
        own: the benchmark's documents, by id.
    """
    return tuple(Gold(own[item.document].source, relevance=item.relevance) if item.document in own else item
                 for item in gold)


def missing_documents(gold: Iterable[Gold], known: Collection[str]) -> tuple[str, ...]:
    """Gold documents that are neither a known document id nor a known source path: most likely mistyped.

    Args:
        known: ids and source paths of everything indexed.
    """
    named = (item.document for item in gold if item.document)
    return tuple(name for name in dict.fromkeys(named) if name not in known)
