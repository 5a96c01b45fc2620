"""sentence-transformers itself, on the processor: the only module that embeds with it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from retrieval.models.finding import ModelFolder
from retrieval.models.loading import BATCH, LOCAL, Precision, fast_tokenizer, loading, running

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

    from retrieval.embedder import Matrix


class PyTorch:
    """A model of sentence-transformers in float32, or in bfloat16 where that costs little."""

    def __init__(self, folder: ModelFolder, precision: Precision) -> None:
        self._precision: Precision = precision
        self.model = load(folder)

    @property
    def dimension(self) -> int:
        return int(self.model.get_embedding_dimension() or 0)

    @property
    def window(self) -> int:
        return int(self.model.max_seq_length or 512)

    def tokenizer(self) -> Tokenizer:
        return fast_tokenizer(self.model)

    def encode(self, pieces: Sequence[str], batch: int | None) -> Matrix:
        import numpy as np

        with running(self._precision, 1 if len(pieces) == 1 else None):
            vectors: Matrix = self.model.encode(list(pieces), prompt="", batch_size=batch or BATCH,
                                                show_progress_bar=False)
        return np.asarray(vectors, np.float32)

    def pooled(self, tokens: Sequence[Sequence[int]]) -> Matrix:
        """Vectors of token sequences of one length, as the model pools them, before they are brought to unit length."""
        import numpy as np
        import torch

        ids = torch.tensor(tokens)
        features: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with running("float32"), torch.inference_mode():
            for module in self.model:
                if type(module).__name__ != "Normalize":
                    features = module(features)
        return np.asarray(features["sentence_embedding"], np.float32)


def load(folder: ModelFolder) -> SentenceTransformer:
    """The model.

    Raises:
        ModelError: the files are not a model that can be read.
    """
    with loading(folder, "embedding model") as path:
        from sentence_transformers import SentenceTransformer

        model: SentenceTransformer = SentenceTransformer(path, **LOCAL)
    return model
