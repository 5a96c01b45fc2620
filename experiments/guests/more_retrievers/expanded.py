"""Parent-section retrieval: search small chunks, and return the sections or windows around them."""
from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from ragbed.documents.chunkers.sections import find_breaks, last_break, outline
from ragbed.documents.chunkers.spans import Span, next_safe_cut, safe_cut
from ragbed.documents.types import Chunk, Document, Format, digest
from ragbed.retrieval.types import Collection, Hit, RerankerDeps, Retriever, RetrieverKind, distinct

if TYPE_CHECKING:
    from ragbed.retrieval.types import RetrieverSettings

_LEVEL = re.compile(r"(?:<h([1-6])\b)|(#{1,6}) ")


def nested_sections(text: str, format: Format) -> list[Span]:
    """Return nested spans: the whole text, the part before the first heading, and each heading's section."""
    spans = [(0, len(text))]
    open_sections: list[tuple[int, int]] = []
    for block in outline(text, format):
        if block.kind != "heading":
            continue
        if len(spans) == 1 and not open_sections:
            spans.append((0, block.start))
        match = _LEVEL.match(text, block.start)
        level = 1 if match is None else int(match[1]) if match[1] else len(match[2])
        while open_sections and open_sections[-1][0] >= level:
            spans.append((open_sections.pop()[1], block.start))
        open_sections.append((level, block.start))
    spans.extend((start, len(text)) for _, start in open_sections)
    return list(dict.fromkeys(span for span in spans if span[0] < span[1]))


def find_parent(text: str, format: Format, nested: Sequence[Span], span: Span, within: Span, prefix: str,
                largest: int) -> Span:
    """Return the largest section around a span, or a window in the smallest section if none fits.

    Args:
        nested: the text's sections, nested in each other.
        within: limits of the result.
        prefix: text in front of the span, such as a repeated table header. It counts, unless the result contains it.
        largest: maximum number of characters. A longer span is returned as it is.
    """
    around = sorted((max(start, within[0]), min(end, within[1])) for start, end in nested
                    if start <= span[0] and span[1] <= end)
    fitting = [each for each in around if each[1] - each[0] + (0 if prefix in text[each[0]:span[0]] else len(prefix))
               <= largest]
    if fitting:
        return max(fitting, key=lambda each: each[1] - each[0])
    within = min(around, key=lambda each: each[1] - each[0])
    size = largest - len(prefix)
    spare = size - (span[1] - span[0])
    if spare <= 0:
        return span
    end = min(within[1], max(within[0], span[0] - spare // 2) + size)
    start = max(within[0], end - size)
    return (start if start == within[0] else _first(text, format, start, span[0]),
            end if end == within[1] else max(last_break(text, (span[1] + end) // 2, end, format), span[1]))


def free_range(span: Span, taken: Iterable[Span], length: int) -> Span:
    """Return how far a span can be widened in a text of this length without overlapping the taken spans."""
    first, last = 0, length
    for start, end in taken:
        if start < span[0]:
            first = max(first, min(end, span[0]))
        if end > span[1]:
            last = min(last, max(start, span[1]))
    return first, last


def _first(text: str, format: Format, start: int, limit: int) -> int:
    for ends in find_breaks(text, start - 1, (start + limit) // 2):
        for end in ends:
            if safe_cut(text, end, format) == end:
                return end
    return min(next_safe_cut(text, start, format), limit)


_HITS_PER_PARENT = 4  # hits to request at first per wanted parent, because several may be in one parent
_MAX_DOCUMENTS = 64  # documents to cache the sections of


class Expanded(RetrieverKind):
    """Finds chunks by another retriever and returns the sections that contain them.

    The parent of a chunk is the largest section of its document, in its format, with at most `largest` characters. If
    even the smallest section is longer, or there are no headings, it is a window around the chunk. Parents do not
    overlap, never include chunks that a filter excludes, and always contain their whole chunk. A parent has the score
    of its best chunk.

    Attributes:
        of: finds the chunks.
        largest: maximum characters of a parent. A longer chunk is its own parent.
    """

    kind: Literal["expanded"] = "expanded"
    of: RetrieverSettings = Field("dense", validate_default=True)
    largest: int = Field(3_000, ge=1)

    @property
    def embeds(self) -> bool:
        return self.of.embeds

    def open(self, collection: Collection, deps: RerankerDeps) -> ExpandedRetriever:
        return ExpandedRetriever(self.of.open(collection, deps), collection, self)

    def identity(self) -> str:
        return f"expanded {digest(str(self.largest), self.of.identity())}"


@dataclass(frozen=True, slots=True)
class _Parent:
    chunk: Chunk
    hit: Hit
    ranks: list[int]

    def contains(self, chunk: Chunk) -> bool:
        own = self.chunk
        return ((own.document, own.format) == (chunk.document, chunk.format) and own.start <= chunk.start
                and chunk.end <= own.end and chunk.prefix in own.content)


@dataclass(frozen=True)
class ExpandedRetriever:
    """Replaces the hits of `inner` with their parents."""

    inner: Retriever
    collection: Collection
    settings: Expanded

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        found: list[list[Hit]] = [[] for _ in queries]
        left = list(range(len(queries))) if k > 0 else []
        reach = min(_HITS_PER_PARENT * k, len(self.collection.chunks))
        while left:
            hits = dict(zip(left, self.inner.search([queries[at] for at in left], reach), strict=True))
            for at in left:
                found[at] = self._parents(distinct(hits[at]))[:k]
            left = [at for at in left if len(found[at]) < k and len(hits[at]) == reach < len(self.collection.chunks)]
            reach = min(_HITS_PER_PARENT * reach, len(self.collection.chunks))
        return found

    def _parents(self, hits: Sequence[Hit]) -> list[Hit]:
        made: list[_Parent] = []
        for rank, hit in enumerate(hits, 1):
            container = next((one for one in made if one.contains(hit.chunk)), None)
            if container:
                container.ranks.append(rank)
            else:
                made.append(_Parent(self._parent(hit.chunk, [one.chunk for one in made]), hit, [rank]))
        return [Hit(one.chunk, one.hit.score, rank,
                    f"expanded({self.settings.of.kind} {', '.join(map(str, one.ranks))})")
                for rank, one in enumerate(made, 1)]

    def _parent(self, chunk: Chunk, taken: Sequence[Chunk]) -> Chunk:
        try:
            document, nested = self._outline(chunk.document, chunk.format)
        except KeyError:
            return chunk
        text, span = document.text(chunk.format), (chunk.start, chunk.end)
        if chunk.content != chunk.prefix + text[chunk.start:chunk.end]:
            return chunk
        place = chunk.document, chunk.format
        kept = [(one.start, one.end) for one in taken if (one.document, one.format) == place]
        within = free_range(span, [*kept, *self._excluded_spans.get(place, ())], len(text))
        start, end = find_parent(text, chunk.format, nested, span, within, chunk.prefix, self.settings.largest)
        if (start, end) == span:
            return chunk
        prefix = "" if chunk.prefix in text[start:chunk.start] else chunk.prefix
        return Chunk.of(document, chunk.format, start, end, prefix)

    @cached_property
    def _outline(self) -> Callable[[str, Format], tuple[Document, list[Span]]]:
        @lru_cache(_MAX_DOCUMENTS)
        def outlined(id: str, format: Format) -> tuple[Document, list[Span]]:
            document = self.collection.document(id)
            return document, nested_sections(document.text(format), format)

        return outlined

    @cached_property
    def _excluded_spans(self) -> Mapping[tuple[str, Format], Sequence[Span]]:
        spans: dict[tuple[str, Format], list[Span]] = defaultdict(list)
        among = self.collection.among
        for chunk, kept in zip(self.collection.chunks, among, strict=True) if among is not None else ():
            if not kept:
                spans[chunk.document, chunk.format].append((chunk.start, chunk.end))
        return spans
