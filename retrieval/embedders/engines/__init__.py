"""Engines: what computes the vectors of a sentence-transformers model."""
from __future__ import annotations

from retrieval.embedders.engines.base import Backend, Engine
from retrieval.embedders.engines.choice import engine_of

__all__ = ["Backend", "Engine", "engine_of"]
