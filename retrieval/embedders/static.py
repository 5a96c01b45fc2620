"""Static embeddings: one vector a token, looked up and averaged, hundreds of times as fast as a transformer.

The files of a static model: a vector for each token of a tokenizer.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from documents.chunkers.spans import Span
from documents.errors import ModelError
from documents.types import digest
from retrieval.embedders.base import EmbedderKind
from retrieval.embedders.reading import Reader
from retrieval.models.finding import WEIGHTS, ModelFolder, find_static, plain_tokenizer, read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from retrieval.embedder import Matrix

@dataclass(frozen=True, slots=True)
class TokenTable:
    """A vector for each token.

    Attributes:
        vectors: float32 of shape (tokens, d).
        tokenizer: one that cuts and pads nothing.
        unknown: the token that stands for what the vocabulary does not hold; None where every text has tokens.
    """

    vectors: Matrix
    tokenizer: Tokenizer
    unknown: int | None


def read_table(folder: ModelFolder) -> TokenTable:
    """The table of a model as model2vec (`embeddings`, also with fewer vectors than tokens and with weights) or as
    sentence-transformers' StaticEmbedding (`embedding.weight`) writes it.

    Raises:
        ModelError: the files are damaged, or hold another kind of model.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(folder.path / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"static model {folder.name} in {folder.path} cannot be loaded: {error}") from error
    vectors = _vectors(arrays)
    if vectors is None:
        raise ModelError(f"{folder.name} in {folder.path} is no static model: name it without static:")
    file = folder.path / "tokenizer.json"
    tokenizer = plain_tokenizer(file)
    tokens = max(tokenizer.get_vocab().values()) + 1
    if len(vectors) < tokens:
        raise ModelError(f"{folder.name} in {folder.path} has {len(vectors)} vectors for {tokens} tokens: its files "
                         "are not of one model")
    return TokenTable(vectors, tokenizer, _unknown(tokenizer, file))


def _vectors(arrays: dict[str, Any]) -> Matrix | None:
    import numpy as np

    if "embedding.weight" in arrays:
        return np.ascontiguousarray(arrays["embedding.weight"], np.float32)
    if "embeddings" not in arrays:
        return None
    vectors = np.asarray(arrays["embeddings"], np.float32)
    vectors = vectors[arrays["mapping"]] if "mapping" in arrays else vectors
    return vectors * np.asarray(arrays["weights"], np.float32)[:, None] if "weights" in arrays else vectors


def _unknown(tokenizer: Tokenizer, file: Path) -> int | None:
    model = read_json(file)["model"]
    if isinstance(model.get("unk_token"), str):
        found: int | None = tokenizer.token_to_id(model["unk_token"])
        return found
    unknown: int | None = model.get("unk_id")
    return unknown


SLICE = 256
"""Texts looked up at once."""


class Static(EmbedderKind):
    """A static model as model2vec and sentence-transformers write it, or as `ragbed models distil` makes one.

    Attributes:
        model: its folder, or the hub's name.
        window: tokens that are averaged at most; a longer text is several windows.
        query_prefix: in front of each query.
        passage_prefix: in front of each passage.
    """

    kind: Literal["static"] = "static"
    model: str = Field(min_length=1)
    window: int = Field(512, ge=32)
    query_prefix: str = ""
    passage_prefix: str = ""

    def open(self) -> StaticEmbedder:
        return StaticEmbedder(find_static(self.model), self)

    def shorthand(self) -> str | None:
        return f"static:{self.model}" if self == Static(model=self.model) else None


class StaticEmbedder:
    """A static model read from a folder. The mean of the tokens' vectors, at unit length; unknown tokens do not count.

    The published rule is that of model2vec's `StaticModel.encode`.
    """

    def __init__(self, folder: ModelFolder, settings: Static) -> None:
        self.folder = folder
        self.settings = settings

    @property
    def name(self) -> str:
        return self.settings.shorthand() or f"static:{self.settings.model}"

    @property
    def at_once(self) -> int:
        """Texts that it is to be given at once: they take no time."""
        return SLICE

    @cached_property
    def identity(self) -> str:
        return self._identified(self.settings.query_prefix)

    @cached_property
    def passage_identity(self) -> str:
        """The same for all that embed passages as this one does, whatever stands in front of queries."""
        return self._identified("")

    def _identified(self, query_prefix: str) -> str:
        told = [self.settings.long, str(self.window), query_prefix, self.settings.passage_prefix]
        return f"static-{self.folder.identity}-{digest(*told)[:8]}"

    @property
    def dimension(self) -> int:
        return int(self._table.vectors.shape[1])

    @property
    def window(self) -> int:
        return self.settings.window

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        return self._reader.windows(texts, self.settings.passage_prefix + header)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self.settings.query_prefix)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self.settings.passage_prefix)

    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        return self._reader.embed(texts, prefix, self._means)

    def _means(self, pieces: Sequence[str]) -> Matrix:
        import numpy as np

        return np.concatenate([self._mean(pieces[first:first + SLICE]) for first in range(0, len(pieces), SLICE)])

    def _mean(self, pieces: Sequence[str]) -> Matrix:
        """Means of the tokens' vectors; zeros where no token is known."""
        import numpy as np

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
    def _reader(self) -> Reader:
        return Reader(self.name, self._table.tokenizer, self.window, self.settings.long)

    @cached_property
    def _table(self) -> TokenTable:
        return read_table(self.folder)
