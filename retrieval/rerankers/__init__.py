"""Rerankers: one file a kind. `RERANKERS` is the registry."""
from __future__ import annotations

from retrieval.kinds import discriminated
from retrieval.rerankers.cross_encoder import CrossEncoding
from retrieval.rerankers.late_interaction import LateInteraction
from retrieval.rerankers.reranker import JudgeReranker, Reranker

RERANKERS: tuple[type[Reranker], ...] = (LateInteraction, CrossEncoding, JudgeReranker)

RerankerSettings = discriminated(RERANKERS)

__all__ = ["RERANKERS", "CrossEncoding", "JudgeReranker", "LateInteraction", "Reranker", "RerankerSettings"]
