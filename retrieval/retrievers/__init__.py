"""Retrievers: one file a kind. `KINDS` is the registry."""
from __future__ import annotations

from retrieval.kinds import discriminated
from retrieval.retrievers.bm25 import Bm25
from retrieval.retrievers.dense import Dense
from retrieval.retrievers.diverse import Mmr
from retrieval.retrievers.expanded import Expanded
from retrieval.retrievers.external import External
from retrieval.retrievers.fused import Fused
from retrieval.retrievers.kind import RetrieverKind
from retrieval.retrievers.reranked import Reranked

KINDS: tuple[type[RetrieverKind], ...] = (Bm25, Dense, Expanded, External, Fused, Mmr, Reranked)

RetrieverSettings = discriminated(KINDS)
for _kind in KINDS:
    _kind.model_rebuild(_types_namespace={"RetrieverSettings": RetrieverSettings})

__all__ = ["KINDS", "Bm25", "Dense", "Expanded", "External", "Fused", "Mmr", "Reranked", "RetrieverKind",
           "RetrieverSettings"]
