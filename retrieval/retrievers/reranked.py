"""Reranking: reorder the hits of a retriever with a slower, more precise scorer."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import Field

from ragbed.documents.errors import ModelError
from ragbed.documents.types import digest
from ragbed.guests import load_kinds
from ragbed.retrieval.rerankers.cross_encoder import CrossEncoding
from ragbed.retrieval.rerankers.reranker import JudgeReranker, Reranker
from ragbed.retrieval.tagged_union import tagged_union
from ragbed.retrieval.types import (
    DECIMALS,
    Collection,
    Hit,
    RerankerDeps,
    Retriever,
    RetrieverKind,
    Scorer,
    append_rest,
    min_max_scale,
)

if TYPE_CHECKING:
    from ragbed.retrieval.types import RetrieverSettings

    RerankerSettings: TypeAlias = Reranker
else:
    RerankerSettings = tagged_union([*load_kinds("reranker", Reranker).values(), CrossEncoding, JudgeReranker])


class Reranked(RetrieverKind):
    """Reorders the `depth` best hits of a retriever by a reranker's scores.

    The reranker reads a passage's content as prompts show it. Ties keep the first retriever's order.

    Attributes:
        of: finds the candidates.
        by: scores the candidates.
        depth: candidates per query. Further hits follow in the order of `of`.
        weight: weight of the reranker's score in the final score, up to 1. Default: the reranker's own, usually 1. The
            first retriever's score has the remaining weight. With a weight below 1, both scores are scaled to 0..1 over
            the query's candidates.
    """

    kind: Literal["reranked"] = "reranked"
    of: RetrieverSettings = Field("fused", validate_default=True)
    by: RerankerSettings = Field("late_interaction", validate_default=True)
    depth: int = Field(50, ge=1)
    weight: float | None = Field(None, gt=0, le=1)

    @property
    def embeds(self) -> bool:
        return self.of.embeds

    def open(self, collection: Collection, deps: RerankerDeps) -> RerankedRetriever:
        return self.open_over(self.of.open(collection, deps), deps)

    def open_over(self, first: Retriever, deps: RerankerDeps) -> RerankedRetriever:
        """Open the reranker over a retriever that is already open, instead of `of`."""
        by: Reranker = self.by
        return RerankedRetriever(first, by.open(deps), self, self._weight())

    def identity(self) -> str:
        by: Reranker = self.by
        return f"reranked {digest(str(self.depth), str(self._weight()), self.of.identity(), by.identity())}"

    def _weight(self) -> float:
        by: Reranker = self.by
        return by.weight() if self.weight is None else self.weight


@dataclass(frozen=True, slots=True)
class RerankedRetriever:
    """Reranks the hits of `first`. `found_by` shows a hit's former rank, as in `late_interaction(dense 7)`."""

    first: Retriever
    scorer: Scorer
    settings: Reranked
    weight: float = 1.0

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        if k < 1 or not queries:
            return [[] for _ in queries]
        depth = self.settings.depth
        found = self.first.search(queries, max(depth, k))
        scores = self.scorer.scores(queries, [[hit.chunk.content for hit in hits[:depth]] for hits in found])
        if not all(isfinite(score) for own in scores for score in own):
            by: Any = self.settings.by
            raise ModelError(f"the reranker {by.kind} returned a score that is not a number; use another model")
        return [append_rest(self._rerank(hits[:depth], own), hits[depth:], k)
                for hits, own in zip(found, scores, strict=True)]

    def _rerank(self, hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
        by: Any = self.settings.by
        weighed = scores
        if self.weight < 1.0:
            before = min_max_scale([hit.score for hit in hits])
            weighed = [self.weight * now + (1 - self.weight) * then
                       for now, then in zip(min_max_scale(scores), before, strict=True)]
        final = [round(score, DECIMALS) for score in weighed]
        order = sorted(range(len(hits)), key=lambda place: -final[place])
        return [Hit(hits[place].chunk, final[place], rank, f"{by.kind}({hits[place].found_by} {hits[place].rank})")
                for rank, place in enumerate(order, 1)]
