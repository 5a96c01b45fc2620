"""Opens embedders: from a name or settings to an embedder."""
from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from documents.errors import SettingsError
from documents.places import cache_dir
from documents.types import digest
from retrieval.embedders.nothing import NoEmbedder
from retrieval.embedders.sentence import SentenceEmbedder
from retrieval.embedders.server import ServerEmbedder
from retrieval.embedders.settings import EmbedderKind, Nothing, Sentence, Server, Static, embedder_settings
from retrieval.embedders.static import StaticEmbedder
from retrieval.servers import is_loopback
from retrieval.storage.files import unwritable, write_atomically
from retrieval.types import Embedder


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
            _check_named(settings.model.partition("#")[0], index)
            return ServerEmbedder(settings)
        case Nothing():
            return NoEmbedder()
        case other:
            raise TypeError(f"{other.kind} is no kind of embedder")


def _check_named(url: str, index: Path | None) -> None:
    note = cache_dir() / "servers" / digest(urlsplit(url).netloc)
    if url.startswith("openai:") or is_loopback(url) or note.exists():
        return
    if index is not None:
        raise SettingsError(f"{index} was embedded by a server, {url}, which would be sent your queries and "
                            "RAGBED_API_KEY; if you trust it, give --allow-server to `ragbed search` once")
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(note, b"")
    except OSError as error:
        raise unwritable(error) from error
