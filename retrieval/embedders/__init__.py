"""Embedders: their settings, whose union is the registry, and what each kind opens."""
from ragbed.retrieval.embedders.settings import EmbedderKind, EmbedderSettings, Nothing, Sentence, Server, Static

__all__ = ["EmbedderKind", "EmbedderSettings", "Nothing", "Sentence", "Server", "Static"]
