"""What a run takes out of indexes and pools, by their content: kept as it is taken, and given again by a replay.

A replay opens neither index nor embedder. What it would search is known by the pins of the run that it replays.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from agents.search import FoundHits, KeptSearches, Request, Searches
from documents.types import Chunk, digest
from experiments.question import Gold
from retrieval.index import Index, content_of_index
from retrieval.pool import Within, content_of

IndexKey = tuple[str | None, str | None]


def index_pin(key: IndexKey) -> str:
    """Return what the index of a retriever and format is called."""
    return f"the index of {key[0]} in {key[1]}"


def chunks_pin(retriever: str) -> str:
    """Return what the chunks of a pool are called."""
    return f"the chunks that {retriever} searches"


def embedder_pin(retriever: str) -> str:
    """Return what the embedder of a pool is called."""
    return f"the embedder of {retriever}"


def how_pin(retriever: str) -> str:
    """Return what the way in which a retriever finds is called."""
    return f"how {retriever} finds"


class Recording:
    """What is taken out of indexes.

    Args:
        indexes: those that are open, by retriever and format.

    Attributes:
        pins: in a replay, the contents of what was searched, by what it is called; None elsewhere.
    """

    def __init__(self, indexes: Mapping[IndexKey, Index], source_of: Callable[[str], str]) -> None:
        self.searches = Searches(source_of)
        self.pins: Mapping[str, str] | None = None
        self._indexes = indexes

    def content(self, key: IndexKey) -> str:
        """Return a hash of what the index holds; empty where a replay does not know it, and nothing can have been
        kept."""
        index = self._indexes.get(key)
        return (self.pins or {}).get(index_pin(key), "") if index is None else content_of_index(index.manifest)

    def of_index(self, key: IndexKey, request: Request, make: Callable[[Index], FoundHits]) -> FoundHits:
        """Return what is kept of a request to an index, else what is made now; ReplayMiss where nothing is kept, and
        the index is not open."""
        index = self._indexes.get(key)
        return self.searches.taken({"of": self.content(key), **request},
                                   None if index is None else lambda: make(index), index_pin(key))

    def searched(self, key: IndexKey, how: str) -> KeptSearches[str]:
        """Return how searches of an index are kept.

        Args:
            how: the retriever's identity.
        """
        content = self.content(key)
        return KeptSearches(self.searches, index_pin(key),
                            lambda query, k: {"of": content, "query": query, "k": k, "how": how})

    def pooled(self, name: str, scopes: Scopes, how: str) -> KeptSearches[Within]:
        """Return how searches of a pool are kept: by the chunks of the scope alone, whatever else the pool holds."""
        return KeptSearches(self.searches, chunks_pin(name), lambda asked, k: {
            "of": scopes.content(asked.scope), "query": asked.query, "k": k, "how": how})


class Scopes:
    """The contents of a pool and of its scopes.

    Args:
        embedder: its identity; empty where a replay does not know it, and nothing can have been kept.
    """

    def __init__(self, embedder: str, scopes: Mapping[str, Sequence[Chunk]]) -> None:
        self.embedder = embedder
        self._scopes = scopes
        self._contents: dict[str, str] = {}

    @property
    def everything(self) -> str:
        """As `Pool.content`."""
        return content_of(self.embedder, {chunk.id for chunks in self._scopes.values() for chunk in chunks})

    def content(self, scope: str) -> str:
        """Return a hash of the scope's chunks in their order, which decides between equal ones, and of the embedder."""
        if scope not in self._contents:
            self._contents[scope] = digest(self.embedder, *(chunk.id for chunk in self._scopes[scope]))
        return self._contents[scope]


def as_json(gold: Iterable[Gold]) -> list[list[object]]:
    """Gold items as a request names them: by their place alone."""
    return [[item.document, item.chunk, item.format, item.start, item.end, item.page] for item in gold]
