"""One retriever over each scope of a pool."""
from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Sequence

from retrieval.pool import Pool, Within
from retrieval.retrievers import Kind
from retrieval.types import Aids, Hit, Retriever

_OPEN = 512
"""Retrievers kept open: a benchmark has a scope for each of its questions, and asks each of them more than once."""


class Scoped:
    """Opens a retriever over a scope when that is first searched: what it finds depends on the scope alone."""

    def __init__(self, pool: Pool, kind: Kind, aids: Aids) -> None:
        self.pool = pool
        self._kind, self._aids = kind, aids
        self._open: OrderedDict[str, Retriever] = OrderedDict()

    def search(self, queries: Sequence[Within], k: int) -> list[list[Hit]]:
        """At most `k` chunks of its scope for each query, best first."""
        if self._kind.embeds:  # together, which is faster than scope by scope, and kept from then on
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
        if scope not in self._open:
            self._open[scope] = self._kind.open(self.pool.scope(scope), self._aids)
            if len(self._open) > _OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(scope)
        return self._open[scope]
