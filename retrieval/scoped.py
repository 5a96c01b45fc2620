"""Retrievers that are opened when they first search: over a whole collection, or over each scope of a pool."""
from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from retrieval.filters.narrowed import narrowed
from retrieval.pool import Pool, Within
from retrieval.retrievers import Kind
from retrieval.types import Aids, Collection, Hit, Retriever

_OPEN = 512
"""Retrievers kept open: a benchmark has a scope for each of its questions, and asks each of them more than once."""


@dataclass(frozen=True, slots=True)
class How:
    """A kind of retriever, and among which chunks it looks.

    Attributes:
        where: conditions on chunks, decided before a search.
        aids: what opening it may need, asked for when it is opened.
    """

    kind: Kind
    where: tuple[str, ...] = ()
    aids: Callable[[], Aids] = Aids

    def open(self, collection: Collection) -> Retriever:
        """The retriever over what of the collection meets the conditions.

        Raises:
            UserError: a model, a package or a field is not to be had.
        """
        return self.kind.open(narrowed(collection, self.where), self.aids())

    def identity(self) -> str:
        """Tells ways of finding apart that find otherwise in equal collections."""
        where = " and ".join(self.where)
        return f"{self.kind.identity()} where {where}" if where else self.kind.identity()


@dataclass(frozen=True)
class Whole:
    """One retriever over a collection. It is opened once, however many threads search first."""

    collection: Collection
    how: How
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` chunks for each query, best first."""
        with self._lock:
            retriever = self._retriever
        return retriever.search(queries, k)

    @cached_property
    def _retriever(self) -> Retriever:
        return self.how.open(self.collection)


class Scoped:
    """One retriever over each scope of a pool: what it finds depends on the scope alone."""

    def __init__(self, pool: Pool, how: How) -> None:
        self.pool = pool
        self._how = how
        self._open: OrderedDict[str, Retriever] = OrderedDict()
        self._lock = threading.Lock()

    def search(self, queries: Sequence[Within], k: int) -> list[list[Hit]]:
        """At most `k` chunks of its scope for each query, best first."""
        if self._how.kind.embeds:  # together, which is faster than scope by scope, and kept from then on
            self.pool.embedder.embed_queries([one.query for one in queries])
        places: dict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(queries):
            places[one.scope].append(place)
        found: dict[int, list[Hit]] = {}
        for scope, at in places.items():
            hits = self._retriever(scope).search([queries[place].query for place in at], k)
            found |= dict(zip(at, hits, strict=True))
        return [found[place] for place in range(len(queries))]

    def _retriever(self, scope: str) -> Retriever:
        with self._lock:
            if scope not in self._open:
                self._open[scope] = self._how.open(self.pool.scope(scope))
                if len(self._open) > _OPEN:
                    self._open.popitem(last=False)
            self._open.move_to_end(scope)
            return self._open[scope]
