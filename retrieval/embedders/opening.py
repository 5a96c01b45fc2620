"""Opens embedders: from a name or settings to an embedder."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from ragbed.documents.chunkers.spans import Span
from ragbed.documents.errors import SettingsError
from ragbed.documents.http import is_loopback
from ragbed.documents.paths import cache_dir
from ragbed.documents.types import digest
from ragbed.retrieval.embedders.sentence import SentenceEmbedder
from ragbed.retrieval.embedders.server import ServerEmbedder
from ragbed.retrieval.embedders.settings import EmbedderKind, Nothing, Sentence, Server, Static, embedder_settings
from ragbed.retrieval.embedders.static import StaticEmbedder
from ragbed.retrieval.storage.files import unwritable, write_atomically
from ragbed.retrieval.types import Embedder, Matrix


class NoEmbedder:
    """Gives every passage the same vector, and no query one: what is found by words alone needs no model."""

    settings = Nothing()
    name = identity = "none"
    dimension = 1
    window = 1 << 20

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        """Return one span for each text, which has all of it."""
        return [[(0, len(text))] for text in texts]

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Raise SettingsError: there is nothing to compare a query with."""
        raise SettingsError("this was indexed with embedder: none, so only bm25 finds anything; name another embedder "
                            "to search by vectors")

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return ones, float32 of shape (texts, 1)."""
        return np.ones((len(texts), 1), np.float32)


def open_embedder(choice: str | EmbedderKind, index: Path | None = None) -> Embedder:
    """Open the embedder of that name or of these settings. What is large is loaded when first needed. Where the
    manifest of an `index` folder, which may be a stranger's, names it and not the user, queries and the key go to a
    server on another machine only if the user named it once. Raises SettingsError where the name is none, or of a
    server that the user never named; ModelError where the model is nowhere; and MissingExtra where a package that it
    needs is not installed."""
    match embedder_settings(choice):
        case Sentence() as settings:
            return SentenceEmbedder(settings)
        case Static() as settings:
            return StaticEmbedder(settings)
        case Server() as settings:
            check_named(settings.model.partition("#")[0], index, "was embedded by", "RAGBED_API_KEY")
            return ServerEmbedder(settings)
        case Nothing():
            return NoEmbedder()
        case other:
            raise TypeError(f"{other.kind} is no kind of embedder")


def check_named(url: str, index: Path | None = None, does: str = "", key: str = "") -> None:
    """Note that the user named a server, or raise SettingsError where only an `index` does, which may be a stranger's:
    it would be sent queries and the variable `key`."""
    note = cache_dir() / "servers" / digest(urlsplit(url).netloc)
    if not url.startswith("http") or is_loopback(url) or note.exists():
        return
    if index is not None:
        raise SettingsError(f"{index} {does} a server, {url}, which would be sent your queries and {key}; if you trust "
                            "it, give --allow-server to `ragbed search` once")
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(note, b"")
    except OSError as error:
        raise unwritable(error) from error
