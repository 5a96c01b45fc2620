"""Static embeddings: one vector per token, looked up and averaged, hundreds of times faster than a transformer."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ragbed.documents.errors import ModelError
from ragbed.documents.types import digest
from ragbed.retrieval.embedders.prefixes import PrefixedEmbedder, Prefixes
from ragbed.retrieval.embedders.settings import Static
from ragbed.retrieval.embedders.windows import Reader
from ragbed.retrieval.models import WEIGHTS, ModelFolder, find_static, read_json, read_tokenizer
from ragbed.retrieval.types import Matrix

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SLICE = 256  # texts looked up at once


@dataclass(frozen=True, slots=True)
class TokenTable:
    """A vector per token."""

    vectors: Matrix  # float32 of shape (tokens, d)
    tokenizer: Tokenizer  # without truncation and padding
    unknown: int | None  # id of the token for unknown words; None if the vocabulary covers every text


def read_table(folder: ModelFolder) -> TokenTable:
    """Read the table of a model. model2vec writes `embeddings`, possibly with fewer vectors than tokens and with
    weights; the StaticEmbedding of sentence-transformers writes `embedding.weight`. Raises ModelError if the files are
    damaged or hold another kind of model."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(folder.path / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"static model {folder.name} in {folder.path} cannot be loaded: {error}") from error
    if "embedding.weight" not in arrays and "embeddings" not in arrays:
        raise ModelError(f"{folder.name} in {folder.path} is not a static model; name it without static:")
    vectors = np.ascontiguousarray(arrays.get("embedding.weight", arrays.get("embeddings")), np.float32)
    if "embedding.weight" not in arrays:
        vectors = vectors[arrays["mapping"]] if "mapping" in arrays else vectors
        vectors = vectors * np.asarray(arrays["weights"], np.float32)[:, None] if "weights" in arrays else vectors
    file = folder.path / "tokenizer.json"
    tokenizer = read_tokenizer(file)
    tokens = max(tokenizer.get_vocab().values()) + 1
    if len(vectors) < tokens:
        raise ModelError(f"{folder.name} in {folder.path} has {len(vectors)} vectors for {tokens} tokens; its files "
                         "do not belong together")
    model = read_json(file)["model"]
    named = isinstance(model.get("unk_token"), str)
    return TokenTable(vectors, tokenizer, tokenizer.token_to_id(model["unk_token"]) if named else model.get("unk_id"))


class StaticEmbedder(PrefixedEmbedder):
    """A static model in a folder.

    A text's vector is the mean of its tokens' vectors at unit length, without unknown tokens, as in model2vec's
    `StaticModel.encode`.

    Attributes:
        at_once: number of texts to embed per call.
    """

    at_once = _SLICE

    def __init__(self, settings: Static) -> None:
        self.folder = find_static(settings.model)
        self.settings: Static = settings
        self.window = settings.window
        self.prefixes = Prefixes(settings.query_prefix, settings.passage_prefix)

    def identity_with(self, query_prefix: str | None) -> str:
        parts = [self.settings.long, str(self.window), query_prefix or "", self.prefixes.passage]
        return f"static-{self.folder.identity}-{digest(*parts)[:8]}"

    @property
    def dimension(self) -> int:
        return int(self._table.vectors.shape[1])

    def embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        def means(pieces: Sequence[str]) -> Matrix:
            return np.concatenate([self._mean(pieces[first:first + _SLICE]) for first in range(0, len(pieces), _SLICE)])

        return self.reader.embed(texts, prefix, means)

    def _mean(self, pieces: Sequence[str]) -> Matrix:
        tokens = self._table.tokenizer.encode_batch_fast(list(pieces), add_special_tokens=False)
        known = [[token for token in one.ids[:self.window] if token != self._table.unknown] for one in tokens]
        means = np.zeros((len(pieces), self.dimension), np.float32)
        filled = [row for row, ids in enumerate(known) if ids]
        if filled:
            sizes = np.asarray([len(known[row]) for row in filled])
            vectors = self._table.vectors[np.concatenate([known[row] for row in filled])]
            means[filled] = np.add.reduceat(vectors, np.cumsum(sizes) - sizes, axis=0) / sizes[:, None]
        return means

    @cached_property
    def reader(self) -> Reader:
        return Reader(self.name, self._table.tokenizer, self.window, self.settings.long)

    @cached_property
    def _table(self) -> TokenTable:
        return read_table(self.folder)
