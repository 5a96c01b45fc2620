"""Rerankers: one file per kind, listed in `RERANKERS`."""
from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ragbed.retrieval.rerankers.cross_encoder import CrossEncoding
from ragbed.retrieval.rerankers.late_interaction import LateInteraction
from ragbed.retrieval.rerankers.reranker import JudgeReranker, Reranker
from ragbed.retrieval.tagged_union import tagged_union

RERANKERS: tuple[type[Reranker], ...] = (LateInteraction, CrossEncoding, JudgeReranker)

if TYPE_CHECKING:
    RerankerSettings: TypeAlias = Reranker
else:
    RerankerSettings = tagged_union(RERANKERS)

__all__ = ["RERANKERS", "CrossEncoding", "JudgeReranker", "LateInteraction", "Reranker", "RerankerSettings"]
