"""Retrievers: one file a kind. The union of their settings is the registry."""
from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Tag

from retrieval.retrievers.base import Kind
from retrieval.retrievers.dense import Dense


def _kind(value: Any) -> Any:
    """The kind that settings are of: a name alone stands for its defaults."""
    if isinstance(value, str):
        return value
    return value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)


RetrieverSettings = Annotated[Annotated[Dense, Tag("dense")], Discriminator(_kind)]

__all__ = ["Dense", "Kind", "RetrieverSettings"]
