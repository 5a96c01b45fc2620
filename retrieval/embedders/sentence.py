"""Embedders of sentence-transformers. The model is loaded when the first vector is needed."""
from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property

from ragbed.documents.types import digest
from ragbed.retrieval.embedders.engines import Engine, load_engine
from ragbed.retrieval.embedders.prefixes import PrefixedEmbedder, Prefixes
from ragbed.retrieval.embedders.settings import Sentence
from ragbed.retrieval.embedders.windows import Reader
from ragbed.retrieval.models import find_model, model_settings, prompts_of, read_tokenizer
from ragbed.retrieval.types import Matrix

_LOADING = threading.Lock()


class SentenceEmbedder(PrefixedEmbedder):
    """A sentence-transformers model in a folder, with the prefixes that it wants for queries and passages."""

    def __init__(self, settings: Sentence) -> None:
        self.folder = find_model(settings.model)
        self.settings: Sentence = settings
        prompts = prompts_of(self.folder.path)
        self._declared = Prefixes(prompts.get("query", ""), prompts.get("document") or prompts.get("passage", ""))
        self.prefixes = Prefixes.choose(settings.model, self._declared, settings.query_prefix, settings.passage_prefix)

    def identity_with(self, query_prefix: str | None) -> str:
        """Return the model's identity, with each setting that changes its vectors."""
        others = {"backend": self.settings.backend, "long": self.settings.long, "normalise": self.settings.normalise}
        usual = {"backend": "float32", "long": "windows", "normalise": True}
        changed = [f"{name}={value}" for name, value in others.items() if value != usual[name]]
        prefixes = Prefixes(self._declared.query if query_prefix is None else query_prefix, self.prefixes.passage)
        if prefixes != self._declared:
            changed.append(f"prefixes={digest(prefixes.query, prefixes.passage)[:8]}")
        return "-".join([self.folder.identity, *changed])

    @property
    def dimension(self) -> int:
        return self._engine.dimension

    @cached_property
    def window(self) -> int:
        declared = model_settings(self.folder.path / "sentence_bert_config.json").get("max_seq_length")
        return int(declared or self._engine.window)

    def embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        return self.reader.embed(texts, prefix, lambda pieces: self._engine.encode(pieces, self.settings.batch),
                                 self.settings.normalise)

    @cached_property
    def reader(self) -> Reader:
        saved = self.folder.path / "tokenizer.json"
        tokenizer = read_tokenizer(saved) if saved.is_file() else self._engine.tokenizer()
        return Reader(self.name, tokenizer, self.window, self.settings.long)

    @property
    def _engine(self) -> Engine:
        with _LOADING:
            return load_engine(self.folder, self.settings.backend)
