"""Embedders of sentence-transformers, in several backends. Loaded when first asked for a vector."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field

from documents.chunkers.spans import Span
from documents.types import digest
from retrieval.embedders.base import EmbedderKind, Prefixes, declared
from retrieval.embedders.engines import Backend, Engine, engine_of
from retrieval.embedders.reading import Reader
from retrieval.models.finding import MINILM, ModelFolder, find_model, model_settings, plain_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from retrieval.embedder import Matrix

class Sentence(EmbedderKind):
    """A sentence-transformers model on the processor.

    Attributes:
        model: a folder, or the hub's name.
        backend: what computes the vectors: PyTorch in `float32` or `bfloat16`, ONNX Runtime in float32 (`onnx`),
            OpenVINO in float32 (`openvino`) or in bfloat16 where the processor has it (`openvino_bfloat16`).
        batch: texts that are computed at once; None for what suits the backend.
        query_prefix: in front of each query; None for what the model declares, or its family demands.
        passage_prefix: likewise in front of each passage.
        normalise: whether vectors are brought to unit length, so that scores are cosines.
    """

    kind: Literal["sentence"] = "sentence"
    model: str = Field(MINILM, min_length=1)
    backend: Backend = "float32"
    batch: int | None = Field(None, ge=1)
    query_prefix: str | None = None
    passage_prefix: str | None = None
    normalise: bool = True

    def open(self) -> SentenceEmbedder:
        return SentenceEmbedder(find_model(self.model), self)

    def resolved(self) -> Self:
        prefixes = self.open().prefixes
        return self.model_copy(update={"query_prefix": prefixes.query, "passage_prefix": prefixes.passage})

    def shorthand(self) -> str | None:
        if self != Sentence(model=self.model, backend=self.backend):
            return None
        return self.model if self.backend == "float32" else f"{self.backend}:{self.model}"


class SentenceEmbedder:
    """A sentence-transformers model read from a folder. Queries and passages get the prefixes made for them.

    Attributes:
        prefixes: what is put in front of queries and passages.
    """

    def __init__(self, folder: ModelFolder, settings: Sentence) -> None:
        self.folder = folder
        self.settings = settings
        self._declared = declared(folder.path)
        self.prefixes = Prefixes.of(settings.model, self._declared, settings.query_prefix, settings.passage_prefix)

    @property
    def name(self) -> str:
        return self.settings.shorthand() or self.settings.model

    @cached_property
    def identity(self) -> str:
        """The folder's, where vectors are as its files alone make them; and whatever makes them others."""
        return self._identified(self.prefixes)

    @cached_property
    def passage_identity(self) -> str:
        """The same for all that embed passages as this one does, whatever stands in front of queries."""
        return self._identified(Prefixes(self._declared.query, self.prefixes.passage))

    def _identified(self, prefixes: Prefixes) -> str:
        others = {"backend": self.settings.backend, "long": self.settings.long, "normalise": self.settings.normalise}
        usual = {"backend": "float32", "long": "windows", "normalise": True}
        changed = [f"{name}={value}" for name, value in others.items() if value != usual[name]]
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

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        return self._reader.windows(texts, self.prefixes.passage + header)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self.prefixes.query)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self.prefixes.passage)

    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        return self._reader.embed(texts, prefix, self._vectors, self.settings.normalise)

    def _vectors(self, pieces: Sequence[str]) -> Matrix:
        return self._engine.encode(pieces, self.settings.batch)

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self.name, self._tokenizer, self.window, self.settings.long)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        saved = self.folder.path / "tokenizer.json"
        return plain_tokenizer(saved) if saved.is_file() else self._engine.tokenizer()

    @property
    def _engine(self) -> Engine:
        return engine_of(self.folder, self.settings.backend)
