"""Rerankers: one file a kind. `RERANKERS` is the registry."""
from __future__ import annotations

from retrieval.kinds import discriminated
from retrieval.rerankers.base import JudgeReranker, Reranker
from retrieval.rerankers.cross_encoder import CrossEncoding
from retrieval.rerankers.late_interaction import LateInteraction

RERANKERS: tuple[type[Reranker], ...] = (LateInteraction, CrossEncoding, JudgeReranker)

RerankerSettings = discriminated(RERANKERS)

__all__ = ["RERANKERS", "CrossEncoding", "JudgeReranker", "LateInteraction", "Reranker", "RerankerSettings"]
