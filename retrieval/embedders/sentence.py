"""Embedders of sentence-transformers, in several backends. A model is loaded when first asked for a vector."""
from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property, lru_cache

from ragbed.documents.types import digest
from ragbed.retrieval.embedders.engines import Engine, PyTorch
from ragbed.retrieval.embedders.prefixes import PrefixedEmbedder, Prefixes
from ragbed.retrieval.embedders.settings import Backend, Sentence
from ragbed.retrieval.embedders.windows import Reader
from ragbed.retrieval.models.finding import ModelFolder, find_model, model_settings, plain_tokenizer, prompts_of
from ragbed.retrieval.types import Matrix

_LOADING = threading.Lock()


class SentenceEmbedder(PrefixedEmbedder):
    """A sentence-transformers model read from a folder. Queries and passages get the prefixes made for them."""

    def __init__(self, settings: Sentence) -> None:
        self.folder = find_model(settings.model)
        self.settings: Sentence = settings
        prompts = prompts_of(self.folder.path)
        self._declared = Prefixes(prompts.get("query", ""), prompts.get("document") or prompts.get("passage", ""))
        self.prefixes = Prefixes.of(settings.model, self._declared, settings.query_prefix, settings.passage_prefix)

    def identified(self, query_prefix: str | None) -> str:
        """Return the folder's identity, where vectors are as its files alone make them, and what makes them others."""
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
        named = model_settings(self.folder.path / "sentence_bert_config.json").get("max_seq_length")
        return int(named or self._engine.window)

    def embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        return self.reader.embed(texts, prefix, lambda pieces: self._engine.encode(pieces, self.settings.batch),
                                 self.settings.normalise)

    @cached_property
    def reader(self) -> Reader:
        saved = self.folder.path / "tokenizer.json"
        tokenizer = plain_tokenizer(saved) if saved.is_file() else self._engine.tokenizer()
        return Reader(self.name, tokenizer, self.window, self.settings.long)

    @property
    def _engine(self) -> Engine:
        with _LOADING:
            return engine_of(self.folder, self.settings.backend)


@lru_cache(2)  # those before are loaded again when needed: a matrix of embedders may have more than fit in memory
def engine_of(folder: ModelFolder, backend: Backend) -> Engine:
    """Load the engine of that backend for a model. Raises MissingExtra where a package that the backend needs is not
    installed, and ModelError where the model cannot be loaded or the backend does not give PyTorch's vectors."""
    if backend == "float32" or backend == "bfloat16":
        return PyTorch(folder, backend)
    from ragbed.retrieval.embedders.graphs import Graph

    return Graph.open(folder, backend)
