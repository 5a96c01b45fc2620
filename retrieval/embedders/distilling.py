"""A static model distilled from a sentence-transformers model: what its vectors of single tokens hold, offline."""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from documents.errors import ModelError
from retrieval.embedders.engines.pytorch import PyTorch
from retrieval.models.finding import WEIGHTS, find_model
from retrieval.storage.folder import alone, replaced, writing

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from retrieval.embedder import Matrix

SIF = 1e-4
"""How much frequent tokens are weighed down: Arora, Liang and Ma, "A Simple but Tough-to-Beat Baseline for Sentence
Embeddings", ICLR 2017; the value is model2vec's."""

BATCH = 256
_UNUSED = re.compile(r"\[unused\d+\]|<unused_?\d+>")

Progress = Callable[[str, int, int | None], None]


def distil(model: str, out: Path, dimensions: int, progress: Progress) -> int:
    """Write a static model into a folder, in the form that model2vec and sentence-transformers read.

    After model2vec (S. Tulkens and T. van Dongen, "Model2Vec: Fast State-of-the-Art Static Embeddings", 2024): the
    model's vector of each token alone, reduced by principal components, weighed by the token's rank in the vocabulary,
    which stands for its frequency by Zipf's law.

    Args:
        dimensions: of the vectors; at most the model's own.
        progress: is told of the stage `distil`.

    Returns:
        The number of tokens.

    Raises:
        ModelError: the model is nowhere, has no fast tokenizer, or the folder holds something.
        IndexFolderError: the folder cannot be written, or another process is writing it.
    """
    with alone(out):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ModelError(f"{out} is not empty: name another folder")
        engine = PyTorch(find_model(model), "float32")
        tokenizer = engine.tokenizer()
        used = _used(tokenizer)
        vectors = _reduced(_token_vectors(engine, used, progress), dimensions)
        with replaced(out) as fresh, writing(out):
            _write(fresh, model, tokenizer, used, vectors)
    return len(used)


def _used(tokenizer: Tokenizer) -> list[int]:
    """The tokens that a text can have, in the order of the vocabulary."""
    special = {id for id, added in tokenizer.get_added_tokens_decoder().items() if added.special}
    return sorted(id for token, id in tokenizer.get_vocab().items()
                  if id not in special and not _UNUSED.fullmatch(token))


def _token_vectors(engine: PyTorch, used: Sequence[int], progress: Progress) -> Matrix:
    """The vector of each token between the special tokens of a text, float32 of shape (tokens, d)."""
    import numpy as np

    framed = engine.tokenizer().encode("a")
    place = framed.special_tokens_mask.index(0)
    before, after = framed.ids[:place], framed.ids[place + 1:]
    found = []
    for first in range(0, len(used), BATCH):
        progress("distil", first, len(used))
        found.append(engine.pooled([[*before, token, *after] for token in used[first:first + BATCH]]))
    progress("distil", len(used), len(used))
    return np.concatenate(found)


def _reduced(vectors: Matrix, dimensions: int) -> Matrix:
    """Principal components, each token weighed by its rank."""
    import numpy as np
    from sklearn.decomposition import PCA

    most = min(dimensions, *vectors.shape)
    shares = 1 / np.arange(2, len(vectors) + 2)
    weights = SIF / (SIF + shares / shares.sum())
    reduced: Matrix = PCA(most, svd_solver="covariance_eigh").fit_transform(vectors) * weights[:, None]
    return reduced.astype(np.float32)


def _write(out: Path, model: str, tokenizer: Tokenizer, used: Sequence[int], vectors: Matrix) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    every = np.zeros((max(tokenizer.get_vocab().values()) + 1, vectors.shape[1]), np.float32)
    every[list(used)] = vectors
    config = {"model_type": "model2vec", "architectures": ["StaticModel"], "tokenizer_name": model,
              "apply_pca": vectors.shape[1], "sif_coefficient": SIF, "hidden_dim": vectors.shape[1],
              "seq_length": 1_000_000, "normalize": True, "embedding_dtype": "float32"}
    tokenizer.save(str(out / "tokenizer.json"))
    _json(out / "config.json", config)
    _json(out / "modules.json", [
        {"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"},
        {"idx": 1, "name": "1", "path": "1_Normalize", "type": "sentence_transformers.models.Normalize"}])
    save_file({"embeddings": every}, out / WEIGHTS)
    (out / WEIGHTS).chmod(0o644)  # written for its owner alone


def _json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
