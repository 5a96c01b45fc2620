"""Fusion: combine the rankings of several retrievers."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Literal

from pydantic import Field, FiniteFloat, model_validator

from ragbed.documents.types import digest
from ragbed.retrieval.types import (
    DECIMALS,
    Collection,
    Hit,
    RerankerDeps,
    Retriever,
    RetrieverKind,
    append_rest,
    distinct,
    interleave,
    min_max_scale,
    reciprocal_ranks,
)

if TYPE_CHECKING:
    from ragbed.retrieval.types import RetrieverSettings

Fusion = Literal["reciprocal_rank", "weighted"]

_NOT_FOUND = float("inf")


class Fused(RetrieverKind):
    """Combines the `depth` best hits of several retrievers into one ranking.

    The defaults, with dense and BM25, were chosen on the 809 training claims of SciFact: nDCG@10 is 0.733 with scaled
    scores, 0.710 with reciprocal ranks, 0.697 with BM25 alone and 0.658 with dense alone.

    Attributes:
        of: two or more different retrievers.
        method: `weighted` is the weighted mean of scores, each scaled to 0..1 by the retriever's lowest and highest
            score for the query (the convex combination of Bruch, Gai, Ingber: An analysis of fusion functions for
            hybrid retrieval, TOIS 2023). A chunk that a retriever did not find scores 0 there. If a retriever's scores
            are all equal, they become 1. `reciprocal_rank` is the sum of weight / (constant + rank) over the retrievers
            that found the chunk (Cormack, Clarke, Buettcher: Reciprocal rank fusion outperforms Condorcet and
            individual rank learning methods, SIGIR 2009, with weights of 1).
        constant: for `reciprocal_rank`; a larger one reduces the advantage of the first ranks.
        weights: one per retriever. Default: equal weights.
        depth: number of hits to fuse per retriever. Further hits follow below, from each retriever in turn.
    """

    kind: Literal["fused"] = "fused"
    of: tuple[RetrieverSettings, ...] = Field(("dense", "bm25"), validate_default=True)
    method: Fusion = "weighted"
    constant: int = Field(60, ge=0)
    weights: tuple[FiniteFloat, ...] | None = None
    depth: int = Field(200, ge=1)

    @model_validator(mode="after")
    def _check_fields(self) -> Fused:
        if len(self.of) < 2:
            raise ValueError("of: expected at least two retrievers")
        if any(one in self.of[:place] for place, one in enumerate(self.of)):
            raise ValueError("of: duplicate retriever; name each once and set weights instead")
        if self.weights is not None and (len(self.weights) != len(self.of) or min(self.weights) <= 0):
            raise ValueError(f"weights: expected {len(self.of)} numbers above 0, one per retriever in `of`")
        if self.method != "reciprocal_rank" and self.constant != Fused.model_fields["constant"].default:
            raise ValueError(f"constant: {self.method} fusion does not use it; remove constant, or set method: "
                             "reciprocal_rank")
        return self

    @property
    def embeds(self) -> bool:
        return any(one.embeds for one in self.of)

    def open(self, collection: Collection, deps: RerankerDeps) -> FusedRetriever:
        return FusedRetriever(tuple(one.open(collection, deps) for one in self.of), labels(self.of), self)

    def identity(self) -> str:
        own = self.model_dump_json(include={"method", "constant", "weights", "depth"})
        return f"fused {digest(own, *(one.identity() for one in self.of))}"


def labels(kinds: Sequence[RetrieverKind]) -> tuple[str, ...]:
    """Return the retrievers' names for `found_by`: their kinds, numbered if a kind occurs several times."""
    names = [kind.kind for kind in kinds]
    return tuple(name if names.count(name) == 1 else f"{name}[{names[:place].count(name) + 1}]"
                 for place, name in enumerate(names))


@dataclass(frozen=True, slots=True)
class FusedRetriever:
    """Combines the hits of several retrievers. `found_by` shows their ranks, as in `fused(dense 1, bm25 4)`. Ties are
    broken by the rank in the first retriever, then in the second, and so on."""

    parts: tuple[Retriever, ...]
    names: tuple[str, ...]
    settings: Fused

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        if k < 1:
            return [[] for _ in queries]
        depth = self.settings.depth
        found = [part.search(queries, max(depth, k)) for part in self.parts]
        return [append_rest(self._fuse([hits[:depth] for hits in lists]),
                          distinct(interleave(hits[depth:] for hits in lists)), k)
                for lists in ([distinct(hits) for hits in several] for several in zip(*found, strict=True))]

    def _fuse(self, lists: Sequence[Sequence[Hit]]) -> list[Hit]:
        ranks = [{hit.chunk.id: rank for rank, hit in enumerate(hits, 1)} for hits in lists]
        chunks = {hit.chunk.id: hit.chunk for hits in lists for hit in hits}
        weights = self.settings.weights or [1.0] * len(self.parts)
        if self.settings.method == "reciprocal_rank":
            scores = reciprocal_ranks(ranks, weights, self.settings.constant)
        else:
            parts = [dict(zip(places, min_max_scale([hit.score for hit in hits]), strict=True))
                     for places, hits in zip(ranks, lists, strict=True)]
            scores = {id: round(fsum(weight * part.get(id, 0.0) for weight, part in zip(weights, parts, strict=True))
                                / fsum(weights), DECIMALS) for id in chunks}
        order = sorted(chunks, key=lambda id: (-scores[id], *(places.get(id, _NOT_FOUND) for places in ranks)))
        return [Hit(chunks[id], scores[id], rank, self._found_by(id, ranks)) for rank, id in enumerate(order, 1)]

    def _found_by(self, id: str, ranks: Sequence[Mapping[str, int]]) -> str:
        found = (f"{name} {places[id]}" for name, places in zip(self.names, ranks, strict=True) if id in places)
        return f"fused({', '.join(found)})"
