"""Embedders: one file a kind. The union of their settings is the registry; a name alone stands for usual settings."""
from retrieval.embedders.base import EmbedderKind
from retrieval.embedders.opening import EmbedderSettings
from retrieval.embedders.sentence import Sentence
from retrieval.embedders.server import Server
from retrieval.embedders.static import Static

__all__ = ["EmbedderKind", "EmbedderSettings", "Sentence", "Server", "Static"]
