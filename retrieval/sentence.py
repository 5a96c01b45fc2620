"""Embedders of sentence-transformers: the only module that imports it. Loaded when first asked for a vector."""
from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from documents.chunkers.spans import Span
from documents.errors import ModelError
from retrieval.models import ModelFolder, find_model
from retrieval.windows import cut

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

    from retrieval.embedder import Matrix

BATCH = 16
"""Texts per forward pass: on two cores 8 to 16 full windows were the fastest, 64 less than half as fast."""

_ENGINE = threading.RLock()
"""Held while a model is loaded or runs: torch's number of threads is the process's, not the caller's."""


class SentenceEmbedder:
    """A sentence-transformers model read from a folder, on the processor, in float32.

    Queries and passages get the prompts that the model declares for them. No part of a text is dropped: one
    that is longer than the window is embedded as the mean of its windows.
    """

    def __init__(self, folder: ModelFolder) -> None:
        self.folder = folder

    @classmethod
    def named(cls, name: str) -> SentenceEmbedder:
        """The embedder of that name, its files found by `find_model`.

        Raises:
            ModelError: the model is nowhere.
        """
        return cls(find_model(name))

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def identity(self) -> str:
        return self.folder.identity

    @property
    def dimension(self) -> int:
        return int(self._model.get_embedding_dimension() or 0)

    @cached_property
    def window(self) -> int:
        declared = self._declared("sentence_bert_config.json").get("max_seq_length")
        return int(declared or self._model.max_seq_length or 512)

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        return cut(self._tokenizer, texts, self._room(self._prompt("document", "passage") + header))

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self._prompt("query"))

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self._prompt("document", "passage"))

    def _embed(self, texts: Sequence[str], prompt: str) -> Matrix:
        import numpy as np

        spans = cut(self._tokenizer, texts, self._room(prompt))
        pieces = [prompt + text[start:end] for text, cuts in zip(texts, spans, strict=True) for start, end in cuts]
        if not pieces:
            return np.zeros((0, self.dimension), np.float32)
        with _ENGINE, _threads(1 if len(pieces) == 1 else None):
            vectors: Matrix = self._model.encode(pieces, prompt="", batch_size=BATCH, show_progress_bar=False,
                                                 normalize_embeddings=True)
        if len(pieces) == len(texts):
            return vectors
        firsts = np.cumsum([0, *(len(cuts) for cuts in spans[:-1])])
        sums = np.add.reduceat(vectors, firsts, axis=0)
        pooled: Matrix = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return pooled.astype(np.float32)

    def _room(self, header: str) -> int:
        taken = len(self._tokenizer.encode(header, add_special_tokens=True).ids)
        if taken > self.window - 16:
            raise ModelError(f"{self.name} reads {self.window} tokens, of which a header of {len(header)} "
                             "characters leaves none: use shorter prompts")
        return self.window - taken

    def _prompt(self, *names: str) -> str:
        prompts = self._declared("config_sentence_transformers.json").get("prompts") or {}
        return next((str(prompts[name]) for name in names if prompts.get(name)), "")

    def _declared(self, file: str) -> dict[str, Any]:
        path = self.folder.path / file
        return dict(json.loads(path.read_bytes())) if path.is_file() else {}

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        saved = self.folder.path / "tokenizer.json"
        if saved.is_file():
            tokenizer = Tokenizer.from_file(str(saved))
        elif hasattr(self._model.tokenizer, "backend_tokenizer"):
            tokenizer = Tokenizer.from_str(self._model.tokenizer.backend_tokenizer.to_str())
        else:
            raise ModelError(f"{self.name} has no fast tokenizer, which is needed to cut long texts")
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @property
    def _model(self) -> SentenceTransformer:
        with _ENGINE:
            return _load(self.folder.path, self.name)


@cache
def _load(path: Path, name: str) -> SentenceTransformer:
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    bars: Any = logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        model = SentenceTransformer(str(path), device="cpu", local_files_only=True, trust_remote_code=False,
                                    model_kwargs={"use_safetensors": True})
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ModelError(f"embedding model {name} in {path} cannot be loaded: {str(error).splitlines()[0]}") from error
    finally:
        if shown:
            bars.enable_progress_bar()
    return model


@contextlib.contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Torch on that many threads. Waking a parked second thread cost a single query 130 ms, working alone 8."""
    import torch

    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
