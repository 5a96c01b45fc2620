"""Opens embedders: from a name or settings to an embedder."""
from __future__ import annotations

from retrieval.embedders.sentence import SentenceEmbedder
from retrieval.embedders.server import ServerEmbedder
from retrieval.embedders.settings import EmbedderKind, Sentence, Server, Static, embedder_settings
from retrieval.embedders.static import StaticEmbedder
from retrieval.servers import remember_server
from retrieval.types import Embedder


def open_embedder(choice: str | EmbedderKind) -> Embedder:
    """Open the embedder of that name or of these settings. What is large is loaded when first needed.

    A server that is named here may be sent what is asked of indexes that it embedded.

    Raises:
        SettingsError: the name is none.
        ModelError: the model is nowhere.
        MissingExtra: a package that it needs is not installed.
    """
    match embedder_settings(choice):
        case Sentence() as settings:
            return SentenceEmbedder(settings)
        case Static() as settings:
            return StaticEmbedder(settings)
        case Server() as settings:
            remember_server(settings.model)
            return ServerEmbedder(settings)
        case other:
            raise TypeError(f"{other.kind} is no kind of embedder")
