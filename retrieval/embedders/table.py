"""The files of a static model: a vector for each token of a tokenizer."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from documents.errors import ModelError
from retrieval.models.files import plain_tokenizer, read_json
from retrieval.models.finding import WEIGHTS, ModelFolder

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
