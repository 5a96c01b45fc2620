"""Maximal marginal relevance: find relevant hits that do not repeat each other."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ragbed.documents.types import digest
from ragbed.retrieval.types import (
    DECIMALS,
    Collection,
    Hit,
    Matrix,
    RerankerDeps,
    Retriever,
    RetrieverKind,
    append_rest,
    distinct,
    min_max_scale,
)

if TYPE_CHECKING:
    from ragbed.retrieval.types import RetrieverSettings

    Numbers = NDArray[np.float64]

_BLOCK = 256  # maximum windows to compare with all others at once


class Mmr(RetrieverKind):
    """Reorders the hits of a retriever: each next chunk is relevant and unlike the chunks before it.

    Source: Carbonell, Goldstein: The use of MMR, diversity-based reranking for reordering documents and producing
    summaries, SIGIR 1998. With candidates R and chosen chunks S, the next chunk is

        argmax over d in R without S of  balance * Sim1(d, query) - (1 - balance) * max over s in S of Sim2(d, s)

    Sim2 is the cosine of the nearest windows of two chunks, by the collection's embedder. A negative cosine counts as
    0, because the paper's cosines of term weights are never negative.

    Attributes:
        of: finds the candidates.
        fetch: number of candidates. Further hits follow in the order of `of`.
        balance: lambda in the paper, from 0 (only diversity) to 1 (only relevance). In a small collection, where all
            chunks are candidates, a low value chooses unrelated chunks.
        relevance: Sim1. `cosine` compares the query with the chunk's nearest window. `score` is the score of `of`,
            scaled to 0..1 by the lowest and highest score for the query.
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
    """Reorders the hits of `inner` in a collection. A hit's score is the value of the formula at the time when the hit
    was chosen. Ties are broken by the rank in `inner`."""

    inner: Retriever
    collection: Collection
    settings: Mmr

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        if k < 1 or not queries:
            return [[] for _ in queries]
        fetch = self.settings.fetch
        candidates = [distinct(hits) for hits in self.inner.search(queries, max(fetch, k))]
        vectors = self.collection.embedder.embed_queries(queries)
        return [append_rest(self._choose_diverse(vector, hits[:fetch], k) if hits else [], hits[fetch:], k)
                for vector, hits in zip(vectors, candidates, strict=True)]

    def _choose_diverse(self, query: Matrix, hits: Sequence[Hit], k: int) -> list[Hit]:
        vectors, firsts = self.collection.vectors([hit.chunk for hit in hits])
        relevant = np.maximum.reduceat(vectors @ query, firsts) if self.settings.relevance == "cosine" \
            else np.asarray(min_max_scale([hit.score for hit in hits]))
        taken = marginal_relevance(relevant, partial(_similarities, vectors, firsts), self.settings.balance, k)
        return [Hit(hits[place].chunk, score, rank, f"mmr({self.settings.of.kind} {place + 1})")
                for rank, (place, score) in enumerate(taken, 1)]


def marginal_relevance(relevant: Numbers | Matrix, alike: Callable[[int], Numbers | Matrix], balance: float,
                       k: int) -> list[tuple[int, float]]:
    """Return at most `k` positions by maximal marginal relevance, each with its value at the time of choice.

    Args:
        relevant: Sim1 of each candidate, of shape (n,).
        alike: returns Sim2 of a candidate with every candidate, of shape (n,).
    """
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


def _similarities(vectors: Matrix, firsts: NDArray[np.intp], place: int) -> Matrix:
    own = vectors[firsts[place]:firsts[place + 1] if place + 1 < len(firsts) else None]
    blocks = [np.maximum.reduceat(vectors @ own[first:first + _BLOCK].T, firsts, axis=0).max(axis=1)
              for first in range(0, len(own), _BLOCK)]
    nearest: Matrix = np.max(blocks, axis=0)
    return nearest
