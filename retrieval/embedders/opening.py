"""Open an embedder by its name or settings, and remember which servers the user allowed."""
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
    """Gives every passage the same vector and embeds no queries, for indexes that are only searched by words."""

    settings = Nothing()
    name = identity = "none"
    dimension = 1
    window = 1 << 20

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        """Return one span per text, which covers the whole text."""
        return [[(0, len(text))] for text in texts]

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Raise SettingsError if there is no model to embed queries with."""
        raise SettingsError("this was indexed with embedder: none, so only bm25 can search it; index it with another "
                            "embedder to search by vectors")

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return ones, float32 of shape (texts, 1)."""
        return np.ones((len(texts), 1), np.float32)


def open_embedder(choice: str | EmbedderKind, index: Path | None = None) -> Embedder:
    """Open an embedder. The model is loaded when it is first needed.

    Args:
        index: folder whose manifest names the embedder. It may come from a stranger, so a server on another machine is
            allowed only if the user named it before.

    Raises:
        SettingsError: the name has no known form, or an index names a server that the user never named.
        ModelError: the model was not found.
        MissingExtra: a package is not installed.
    """
    match embedder_settings(choice):
        case Sentence() as settings:
            return SentenceEmbedder(settings)
        case Static() as settings:
            return StaticEmbedder(settings)
        case Server() as settings:
            url = settings.model.partition("#")[0]
            if index is None:
                allow_server(url)
            else:
                check_allowed(url, index, "was embedded by", "RAGBED_API_KEY")
            return ServerEmbedder(settings)
        case Nothing():
            return NoEmbedder()
        case other:
            raise TypeError(f"{other.kind} is not a kind of embedder")


def allow_server(url: str) -> None:
    """Remember that the user named a server, so that an index may name it too. Raises SettingsError if the cache folder
    cannot be written."""
    note = _note(url)
    if _needs_note(url) and not note.exists():
        try:
            note.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(note, b"")
        except OSError as error:
            raise unwritable(error) from error


def check_allowed(url: str, index: Path, use: str, key: str) -> None:
    """Raise SettingsError if only an index, which a stranger may have made, names a server on another machine.

    Args:
        use: what the index uses the server for, as in "was embedded by".
        key: environment variable with the key, which the server would receive with queries.
    """
    if _needs_note(url) and not _note(url).exists():
        raise SettingsError(f"{index} {use} a server, {url}, which would receive your queries and {key}; if you trust "
                            "it, run `ragbed search` once with --allow-server")


def _needs_note(url: str) -> bool:
    return url.startswith("http") and not is_loopback(url)


def _note(url: str) -> Path:
    return cache_dir() / "servers" / digest(urlsplit(url).netloc)
