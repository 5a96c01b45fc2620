"""Static embeddings: one vector a token, looked up and averaged, hundreds of times as fast as a transformer."""
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
from ragbed.retrieval.models.finding import WEIGHTS, ModelFolder, find_static, plain_tokenizer, read_json
from ragbed.retrieval.types import Matrix

if TYPE_CHECKING:
    from tokenizers import Tokenizer

@dataclass(frozen=True, slots=True)
class TokenTable:
    """A vector for each token."""

    vectors: Matrix  # float32 of shape (tokens, d)
    tokenizer: Tokenizer  # one that cuts and pads nothing
    unknown: int | None  # the token that stands for what the vocabulary does not hold; None where every text has tokens


def read_table(folder: ModelFolder) -> TokenTable:
    """Read the table of a model as model2vec (`embeddings`, also with fewer vectors than tokens and with weights) or as
    sentence-transformers' StaticEmbedding (`embedding.weight`) writes it. Raises ModelError where the files are
    damaged, or hold another kind of model."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(folder.path / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"static model {folder.name} in {folder.path} cannot be loaded: {error}") from error
    if "embedding.weight" not in arrays and "embeddings" not in arrays:
        raise ModelError(f"{folder.name} in {folder.path} is no static model: name it without static:")
    vectors = np.ascontiguousarray(arrays.get("embedding.weight", arrays.get("embeddings")), np.float32)
    if "embedding.weight" not in arrays:
        vectors = vectors[arrays["mapping"]] if "mapping" in arrays else vectors
        vectors = vectors * np.asarray(arrays["weights"], np.float32)[:, None] if "weights" in arrays else vectors
    file = folder.path / "tokenizer.json"
    tokenizer = plain_tokenizer(file)
    tokens = max(tokenizer.get_vocab().values()) + 1
    if len(vectors) < tokens:
        raise ModelError(f"{folder.name} in {folder.path} has {len(vectors)} vectors for {tokens} tokens: its files "
                         "are not of one model")
    model = read_json(file)["model"]
    named = isinstance(model.get("unk_token"), str)
    return TokenTable(vectors, tokenizer, tokenizer.token_to_id(model["unk_token"]) if named else model.get("unk_id"))


SLICE = 256  # texts looked up at once


class StaticEmbedder(PrefixedEmbedder):
    """A static model read from a folder. The mean of the tokens' vectors, at unit length, by the published rule of
    model2vec's `StaticModel.encode`; unknown tokens do not count. It is given `at_once` texts at once: they take no
    time."""

    at_once = SLICE

    def __init__(self, settings: Static) -> None:
        self.folder = find_static(settings.model)
        self.settings: Static = settings
        self.window = settings.window
        self.prefixes = Prefixes(settings.query_prefix, settings.passage_prefix)

    def identified(self, query_prefix: str | None) -> str:
        told = [self.settings.long, str(self.window), query_prefix or "", self.prefixes.passage]
        return f"static-{self.folder.identity}-{digest(*told)[:8]}"

    @property
    def dimension(self) -> int:
        return int(self._table.vectors.shape[1])

    def embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        def means(pieces: Sequence[str]) -> Matrix:
            return np.concatenate([self._mean(pieces[first:first + SLICE]) for first in range(0, len(pieces), SLICE)])

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
