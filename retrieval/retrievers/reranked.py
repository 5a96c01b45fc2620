"""Reranked retrieval: what one retriever finds, in the order of a slower and closer look at each passage."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from ragbed.documents.errors import ModelError
from ragbed.documents.types import digest
from ragbed.retrieval.hits import DECIMALS, continued, scaled
from ragbed.retrieval.rerankers import Reranker, RerankerSettings
from ragbed.retrieval.rerankers.reranker import RerankerDeps
from ragbed.retrieval.types import Collection, Hit, Retriever, RetrieverKind, Scorer

if TYPE_CHECKING:
    from ragbed.retrieval.types import RetrieverSettings


class Reranked(RetrieverKind):
    """The `depth` best of one retriever, put into the order of a reranker's scores.

    A passage is scored by its content, which is what prompts show of it. Hits carry the reranker's score; where it is
    equal, the order of before stays.

    Attributes:
        of: what finds the candidates.
        by: what scores them.
        depth: candidates of each query, whose order is the reranker's; what is asked for beyond them follows in the
            order of `of`.
        weight: of the reranker's score in the final one; None for what suits the reranker, mostly 1. Below 1 the rest
            is the first retriever's, both moved to 0..1 by the least and the highest score among the candidates of
            the query.
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
        return self.reranking(self.of.open(collection, deps), deps)

    def reranking(self, first: Retriever, deps: RerankerDeps) -> RerankedRetriever:
        """Over a retriever that is open already, whatever `of` says."""
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
    """Reranks what `first` finds. `found_by` says what found a chunk and at which rank: `late_interaction(dense 7)`."""

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
            raise ModelError(f"the reranker {by.kind} gave a score that is no number: use another model")
        return [continued(self._ordered(hits[:depth], own), hits[depth:], k)
                for hits, own in zip(found, scores, strict=True)]

    def _ordered(self, hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
        by: Any = self.settings.by
        weighed = scores
        if self.weight < 1.0:
            before = scaled([hit.score for hit in hits])
            weighed = [self.weight * now + (1 - self.weight) * then
                       for now, then in zip(scaled(scores), before, strict=True)]
        final = [round(score, DECIMALS) for score in weighed]
        order = sorted(range(len(hits)), key=lambda place: -final[place])
        return [Hit(hits[place].chunk, final[place], rank, f"{by.kind}({hits[place].found_by} {hits[place].rank})")
                for rank, place in enumerate(order, 1)]

