"""Retrievers: one file per kind. `KINDS` lists ragbed's own and those of guests."""
from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ragbed.guests import load_kinds
from ragbed.retrieval.retrievers.bm25 import Bm25
from ragbed.retrieval.retrievers.dense import Dense
from ragbed.retrieval.retrievers.fused import Fused
from ragbed.retrieval.retrievers.reranked import Reranked
from ragbed.retrieval.tagged_union import tagged_union
from ragbed.retrieval.types import RetrieverKind

KINDS: tuple[type[RetrieverKind], ...] = (Bm25, Dense, Fused, Reranked,
                                          *load_kinds("retriever", RetrieverKind).values())

if TYPE_CHECKING:
    RetrieverSettings: TypeAlias = RetrieverKind
else:
    RetrieverSettings = tagged_union(KINDS)
for _kind in KINDS:
    _kind.model_rebuild(_types_namespace={"RetrieverSettings": RetrieverSettings})

__all__ = ["KINDS", "Bm25", "Dense", "Fused", "Reranked", "RetrieverSettings"]
