"""What a run takes out of indexes and pools, by their content: kept as it is taken, and given again by a replay. A
replay opens neither index nor embedder. What it would search is known by the pins of the run that it replays."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from ragbed.agents.search import FoundHits, Request, SearchStore, StoredRetriever
from ragbed.experiments.question import Gold
from ragbed.retrieval.index import Index, content_of_index
from ragbed.retrieval.pool import Within

IndexKey = tuple[str | None, str | None]


_CALLED = {"index": "the index of {} in {}", "chunks": "the chunks that {} searches", "embedder": "the embedder of {}",
           "how": "how {} finds"}


def pin(of: Literal["index", "chunks", "embedder", "how"], *names: str | None) -> str:
    """Return what something that is searched is called: the index of a retriever and format, the chunks of a pool, its
    embedder, or the way in which a retriever finds."""
    return _CALLED[of].format(*names)


class Recording:
    """What is taken out of indexes, which are there by retriever and format as far as they are open. In a replay `pins`
    are the contents of what was searched, by what it is called; None elsewhere."""

    def __init__(self, indexes: Mapping[IndexKey, Index], source_of: Callable[[str], str]) -> None:
        self.searches = SearchStore(source_of)
        self.pins: Mapping[str, str] | None = None
        self._indexes = indexes

    def content(self, key: IndexKey) -> str:
        """Return a hash of what the index holds; empty where a replay does not know it, so that nothing is kept."""
        index = self._indexes.get(key)
        return (self.pins or {}).get(pin("index", *key), "") if index is None else content_of_index(index.manifest)

    def of_index(self, key: IndexKey, request: Request, make: Callable[[Index], FoundHits]) -> FoundHits:
        """Return what is kept of a request to an index, else what is made now; ReplayMiss if neither can be."""
        index = self._indexes.get(key)
        return self.searches.taken({"of": self.content(key), **request},
                                   None if index is None else lambda: make(index), pin("index", *key))

    def searched(self, key: IndexKey, how: str) -> StoredRetriever[str]:
        """Return how searches of an index are kept, by the retriever's identity."""
        content = self.content(key)
        return StoredRetriever(self.searches, pin("index", *key),
                            lambda query, k: {"of": content, "query": query, "k": k, "how": how})

    def pooled(self, name: str, content: Callable[[str], str], how: str) -> StoredRetriever[Within]:
        """Return how searches of a pool are kept: by the chunks of the scope alone, whatever else the pool holds.
        `content` returns a hash of a scope's chunks in their order, which decides between equal ones, and of the
        embedder."""
        return StoredRetriever(self.searches, pin("chunks", name), lambda asked, k: {
            "of": content(asked.scope), "query": asked.query, "k": k, "how": how})


def as_json(gold: Iterable[Gold]) -> list[list[object]]:
    """Gold items as a request names them: by their place alone."""
    return [[item.document, item.chunk, item.format, item.start, item.end, item.page] for item in gold]
