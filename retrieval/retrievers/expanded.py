"""Parent sections: small chunks are searched, and the sections around them are shown."""
from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from documents.chunkers.spans import Span
from documents.types import Chunk, Document, Format, digest
from retrieval.hits import distinct
from retrieval.retrievers.base import Kind
from retrieval.retrievers.parents import free, parent, sections
from retrieval.types import Aids, Collection, Hit, Retriever

if TYPE_CHECKING:
    from retrieval.retrievers.base import RetrieverSettings

_FIRST = 4  # hits asked for a parent that is wanted; several lie in one
_DOCUMENTS = 64  # kept with their sections, those used last


class Expanded(Kind):
    """Finds chunks by another retriever and gives the sections that they stand in, `k` of them.

    The parent of a chunk is the largest section of its document, in its format, that holds it within `largest`
    characters; where even the smallest is longer, or there are no headings, a window around the chunk. A chunk that an
    earlier parent holds adds none, a parent stops where another begins, and one is never less than its chunk, with the
    table header that the chunk repeats. What a filter excludes is not shown either. A parent has the rank and score
    of the best chunk in it.

    Attributes:
        of: what finds the chunks.
        largest: in characters. A chunk that is longer is its own parent.
    """

    kind: Literal["expanded"] = "expanded"
    of: RetrieverSettings = Field("dense", validate_default=True)
    largest: int = Field(3_000, ge=1)

    @property
    def embeds(self) -> bool:
        return self.of.embeds

    def open(self, collection: Collection, aids: Aids) -> ExpandedRetriever:
        return ExpandedRetriever(self.of.open(collection, aids), collection, self)

    def identity(self) -> str:
        return f"expanded {digest(str(self.largest), self.of.identity())}"


class _Outlined(NamedTuple):
    text: str
    sections: Sequence[Span]


@dataclass(frozen=True, slots=True)
class _Parent:
    """A parent, the best hit in it, and the ranks of all."""

    chunk: Chunk
    hit: Hit
    ranks: list[int]

    def holds(self, chunk: Chunk) -> bool:
        own = self.chunk
        return ((own.document, own.format) == (chunk.document, chunk.format) and own.start <= chunk.start
                and chunk.end <= own.end and chunk.prefix in own.content)


@dataclass(frozen=True)
class ExpandedRetriever:
    """Widens what `inner` finds in a collection."""

    inner: Retriever
    collection: Collection
    settings: Expanded
    _known: OrderedDict[tuple[str, Format], tuple[Document, _Outlined]] = field(default_factory=OrderedDict)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Raises what the inner search raises. That is widened until there are `k` parents."""
        found: list[list[Hit]] = [[] for _ in queries]
        left = list(range(len(queries))) if k > 0 else []
        reach = min(_FIRST * k, len(self.collection.chunks))
        while left:
            hits = dict(zip(left, self.inner.search([queries[at] for at in left], reach), strict=True))
            for at in left:
                found[at] = self._parents(distinct(hits[at]))[:k]
            left = [at for at in left if len(found[at]) < k and len(hits[at]) == reach < len(self.collection.chunks)]
            reach = min(_FIRST * reach, len(self.collection.chunks))
        return found

    def _parents(self, hits: Sequence[Hit]) -> list[Hit]:
        made: list[_Parent] = []
        for rank, hit in enumerate(hits, 1):
            holder = next((one for one in made if one.holds(hit.chunk)), None)
            if holder:
                holder.ranks.append(rank)
            else:
                made.append(_Parent(self._parent(hit.chunk, [one.chunk for one in made]), hit, [rank]))
        return [Hit(one.chunk, one.hit.score, rank,
                    f"expanded({self.settings.of.kind} {', '.join(map(str, one.ranks))})")
                for rank, one in enumerate(made, 1)]

    def _parent(self, chunk: Chunk, taken: Sequence[Chunk]) -> Chunk:
        """The chunk itself where its document is not known, or does not have it where it says."""
        try:
            document, outlined = self._outlined(chunk.document, chunk.format)
        except KeyError:
            return chunk
        span = chunk.start, chunk.end
        if chunk.content != chunk.prefix + outlined.text[chunk.start:chunk.end]:
            return chunk
        place = chunk.document, chunk.format
        kept = [(one.start, one.end) for one in taken if (one.document, one.format) == place]
        within = free(span, [*kept, *self._excluded.get(place, ())], len(outlined.text))
        start, end = parent(outlined.text, chunk.format, outlined.sections, span, within, chunk.prefix,
                            self.settings.largest)
        if (start, end) == span:
            return chunk
        prefix = "" if chunk.prefix in outlined.text[start:chunk.start] else chunk.prefix
        return Chunk.of(document, chunk.format, start, end, prefix)

    def _outlined(self, id: str, format: Format) -> tuple[Document, _Outlined]:
        known = self._known.pop((id, format), None)
        if known is None:
            document = self.collection.document(id)
            text = document.text(format)
            known = document, _Outlined(text, sections(text, format))
        self._known[id, format] = known
        while len(self._known) > _DOCUMENTS:
            self._known.popitem(last=False)
        return known

    @cached_property
    def _excluded(self) -> Mapping[tuple[str, Format], Sequence[Span]]:
        """The spans of chunks that may not be found."""
        spans: dict[tuple[str, Format], list[Span]] = defaultdict(list)
        among = self.collection.among
        for chunk, kept in zip(self.collection.chunks, among, strict=True) if among is not None else ():
            if not kept:
                spans[chunk.document, chunk.format].append((chunk.start, chunk.end))
        return spans
