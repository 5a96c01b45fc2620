"""Rerankers: one file a kind. `RERANKERS` is the registry."""
from __future__ import annotations

from retrieval.kinds import discriminated
from retrieval.rerankers.base import Reranker
from retrieval.rerankers.cross_encoder import CrossEncoding
from retrieval.rerankers.judge import Judge
from retrieval.rerankers.late_interaction import LateInteraction

RERANKERS: tuple[type[Reranker], ...] = (LateInteraction, CrossEncoding, Judge)

RerankerSettings = discriminated(RERANKERS)

__all__ = ["RERANKERS", "CrossEncoding", "Judge", "LateInteraction", "Reranker", "RerankerSettings"]
