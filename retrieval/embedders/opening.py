"""Open an embedder by its name or settings, and remember which servers the user allowed. Sentence-transformers models
are loaded when the first vector is needed."""
from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from ragbed.documents.chunkers.spans import Span
from ragbed.documents.errors import SettingsError
from ragbed.documents.http import is_loopback
from ragbed.documents.paths import cache_dir
from ragbed.documents.types import digest
from ragbed.retrieval.embedders.embedder_settings import (
    EmbedderKind,
    Nothing,
    Sentence,
    Server,
    Static,
    embedder_settings,
)
from ragbed.retrieval.embedders.engines import Engine, StaticEmbedder, load_engine
from ragbed.retrieval.embedders.prefixes import PrefixedEmbedder, Prefixes
from ragbed.retrieval.embedders.server import ServerEmbedder
from ragbed.retrieval.embedders.windows import Reader
from ragbed.retrieval.model_files import check_kind, find_model, model_settings, prompts_of, read_tokenizer
from ragbed.retrieval.storage.files import unwritable, write_atomically
from ragbed.retrieval.types import Embedder, Matrix


class NoEmbedder:
    """Replaces the embedder of an index that is searched only by words. Every passage gets the same vector."""

    settings = Nothing()
    name = identity = "none"
    dimension = 1
    window = 1 << 20

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        """Return one span per text, which covers the whole text."""
        return [[(0, len(text))] for text in texts]

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Raise SettingsError, because there is no model to embed queries."""
        raise SettingsError("this was indexed with embedder: none, so only bm25 can search it; index it with another "
                            "embedder to search by vectors")

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return ones, float32 of shape (texts, 1)."""
        return np.ones((len(texts), 1), np.float32)


def open_embedder(choice: str | EmbedderKind, index: Path | None = None) -> Embedder:
    """Open an embedder. The model is loaded when it is first needed.

    Args:
        index: index folder that `choice` comes from, if any. A stranger may have made it, so a remote server is allowed
            only if the user has named it before.

    Raises:
        SettingsError: the name has no known form, or the index names a remote server that the user never named.
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
    """Remember that the user named a server, so that indexes may use it too. Raises SettingsError if this fails."""
    note = _note(url)
    if _needs_note(url) and not note.exists():
        try:
            note.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(note, b"")
        except OSError as error:
            raise unwritable(error) from error


def check_allowed(url: str, index: Path, use: str, key: str, command: str = "search") -> None:
    """Raise SettingsError if an index or a run, which a stranger may have made, names a remote server that the user
    never named.

    Args:
        use: what the index uses the server for, as in "was embedded by".
        key: environment variable with the key, which the server would receive with queries.
        command: one with the option --allow-server.
    """
    if _needs_note(url) and not _note(url).exists():
        raise SettingsError(f"{index} {use} a server, {url}, which would receive your queries and {key}; if you trust "
                            f"it, run `ragbed {command}` once with --allow-server")


def _needs_note(url: str) -> bool:
    return url.startswith("http") and not is_loopback(url)


def _note(url: str) -> Path:
    return cache_dir() / "servers" / digest(urlsplit(url).netloc)


_LOADING = threading.Lock()


class SentenceEmbedder(PrefixedEmbedder):
    """A sentence-transformers model in a folder, with its prefixes for queries and passages."""

    def __init__(self, settings: Sentence) -> None:
        self.folder = check_kind(find_model(settings.model), "an embedding model", "embedder")
        self.settings: Sentence = settings
        prompts = prompts_of(self.folder.path)
        self._declared = Prefixes(prompts.get("query", ""), prompts.get("document") or prompts.get("passage", ""))
        query, passage = (prefix if name is None else self._prompt(name) for name, prefix in (
            (settings.query_prompt, settings.query_prefix), (settings.passage_prompt, settings.passage_prefix)))
        self.prefixes = Prefixes.choose(settings.model, self._declared, query, passage)

    def _prompt(self, name: str) -> str:
        prompts = prompts_of(self.folder.path)
        if name not in prompts:
            raise SettingsError(f"the embedder {self.settings.model} has no prompt {name!r}; " + (
                f"choose from: {', '.join(prompts)}" if prompts else "its files declare none, so set a prefix instead"))
        return prompts[name]

    def identity_with(self, query_prefix: str | None) -> str:
        """Return the model's identity, with each setting that changes its vectors."""
        usual = {"backend": "float32", "long": "windows", "normalise": True, "truncate_dim": None}
        others = {name: getattr(self.settings, name) for name in usual}
        changed = [f"{name}={value}" for name, value in others.items() if value != usual[name]]
        prefixes = Prefixes(self._declared.query if query_prefix is None else query_prefix, self.prefixes.passage)
        if prefixes != self._declared:
            changed.append(f"prefixes={digest(prefixes.query, prefixes.passage)[:8]}")
        return "-".join([self.folder.identity, *changed])

    @cached_property
    def dimension(self) -> int:
        wanted, own = self.settings.truncate_dim, self._engine.dimension
        if wanted is not None and wanted > own:
            raise SettingsError(f"the embedder {self.settings.model} has vectors of {own} numbers; set truncate_dim to "
                                f"at most {own}")
        return wanted or own

    @cached_property
    def window(self) -> int:
        declared = model_settings(self.folder.path / "sentence_bert_config.json").get("max_seq_length")
        return int(declared or self._engine.window)

    def embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        def encode(pieces: Sequence[str]) -> Matrix:
            return self._engine.encode(pieces, self.settings.batch)[:, :self.dimension]

        return self.reader.embed(texts, prefix, encode, self.settings.normalise)

    @cached_property
    def reader(self) -> Reader:
        saved = self.folder.path / "tokenizer.json"
        tokenizer = read_tokenizer(saved) if saved.is_file() else self._engine.tokenizer()
        return Reader(self.name, tokenizer, self.window, self.settings.long)

    @property
    def _engine(self) -> Engine:
        with _LOADING:
            return load_engine(self.folder, self.settings.backend)
