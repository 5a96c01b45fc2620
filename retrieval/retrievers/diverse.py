"""Maximal marginal relevance: what is found, without saying the same thing twice."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ragbed.documents.types import digest
from ragbed.retrieval.hits import DECIMALS, continued, distinct, scaled
from ragbed.retrieval.rerankers.reranker import RerankerDeps
from ragbed.retrieval.types import Collection, Hit, Matrix, Retriever, RetrieverKind

if TYPE_CHECKING:
    from ragbed.retrieval.types import RetrieverSettings

    Numbers = NDArray[np.float64]

_BLOCK = 256  # windows of a chunk that are compared with all others at once


class Mmr(RetrieverKind):
    """Takes from what a retriever found, one at a time, the chunk that is relevant and unlike those already taken.

    The next of the candidates R is, with S those taken (Carbonell, Goldstein: The use of MMR, diversity-based reranking
    for reordering documents and producing summaries, SIGIR 1998):

        argmax over d in R without S of  balance * Sim1(d, query) - (1 - balance) * max over s in S of Sim2(d, s)

    Sim2 is the cosine of the nearest windows of two chunks, by the collection's embedder; one below 0 counts as 0, as
    the paper's cosines of term weights are never below it.

    Attributes:
        of: what finds the candidates.
        fetch: how many candidates; what is asked for beyond them follows in the order of `of`.
        balance: the paper's lambda, from 0, nothing but unlike each other, to 1, nothing but relevant. Of a small
            collection, whose candidates are all there is, a low one takes what has least to do with the query.
        relevance: Sim1. `cosine`: that of the query and the chunk's nearest window, whatever found the chunk; `score`:
            what `of` gave, moved to 0..1 by the least and the highest score for this query (all 1 where it gave one).
    """

    kind: Literal["mmr"] = "mmr"
    of: RetrieverSettings = Field("dense", validate_default=True)
    fetch: int = Field(50, ge=1)
    balance: float = Field(0.5, ge=0, le=1)
    relevance: Literal["cosine", "score"] = "cosine"

    def open(self, collection: Collection, deps: RerankerDeps) -> MmrRetriever:
        return MmrRetriever(self.of.open(collection, deps), collection, self)

    def identity(self) -> str:
        own = self.model_dump_json(include={"fetch", "balance", "relevance"})
        return f"mmr {digest(own, self.of.identity())}"


@dataclass(frozen=True)
class MmrRetriever:
    """Reorders what `inner` finds in a collection. A hit's score is the formula's value when it was taken; ties go to
    what `inner` ranks higher."""

    inner: Retriever
    collection: Collection
    settings: Mmr

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        if k < 1 or not queries:
            return [[] for _ in queries]
        fetch = self.settings.fetch
        candidates = [distinct(hits) for hits in self.inner.search(queries, max(fetch, k))]
        vectors = self.collection.embedder.embed_queries(queries)
        return [continued(self._diverse(vector, hits[:fetch], k) if hits else [], hits[fetch:], k)
                for vector, hits in zip(vectors, candidates, strict=True)]

    def _diverse(self, query: Matrix, hits: Sequence[Hit], k: int) -> list[Hit]:
        vectors, firsts = self.collection.vectors([hit.chunk for hit in hits])
        relevant = np.maximum.reduceat(vectors @ query, firsts) if self.settings.relevance == "cosine" \
            else np.asarray(scaled([hit.score for hit in hits]))
        taken = marginal(relevant, partial(_alike, vectors, firsts), self.settings.balance, k)
        return [Hit(hits[place].chunk, score, rank, f"mmr({self.settings.of.kind} {place + 1})")
                for rank, (place, score) in enumerate(taken, 1)]


def marginal(relevant: Numbers | Matrix, alike: Callable[[int], Numbers | Matrix], balance: float,
             k: int) -> list[tuple[int, float]]:
    """Return at most `k` places in the order of maximal marginal relevance, each with its value when it was taken.
    `relevant` is Sim1 of each candidate, shape (n,), and `alike` gives Sim2 of one of them with each, likewise."""
    worth = balance * relevant.astype(np.float64)
    nearest = np.zeros(len(worth))
    taken: list[tuple[int, float]] = []
    for _ in range(min(k, len(worth))):
        values = (worth - (1 - balance) * nearest).round(DECIMALS)
        place = int(values.argmax())
        taken.append((place, float(values[place])))
        worth[place] = -np.inf
        nearest = np.maximum(nearest, alike(place))
    return taken


def _alike(vectors: Matrix, firsts: NDArray[np.intp], place: int) -> Matrix:
    own = vectors[firsts[place]:firsts[place + 1] if place + 1 < len(firsts) else None]
    blocks = [np.maximum.reduceat(vectors @ own[first:first + _BLOCK].T, firsts, axis=0).max(axis=1)
              for first in range(0, len(own), _BLOCK)]
    nearest: Matrix = np.max(blocks, axis=0)
    return nearest
