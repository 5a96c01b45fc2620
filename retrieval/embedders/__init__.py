"""Embedders: their settings, and one module per kind."""
from ragbed.retrieval.embedders.embedder_settings import (
    EmbedderKind,
    EmbedderSettings,
    Nothing,
    Sentence,
    Server,
    Static,
)

__all__ = ["EmbedderKind", "EmbedderSettings", "Nothing", "Sentence", "Server", "Static"]
