"""sentence-transformers itself, on the processor: the only module that embeds with it."""
from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from documents.errors import ModelError
from retrieval.models import ModelFolder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

    from retrieval.embedder import Matrix

BATCH = 16
"""Texts per forward pass: on two cores 8 to 16 full windows were the fastest, 64 less than half as fast."""

_RUNNING = threading.RLock()
"""Held while a model is loaded or runs: torch's number of threads is the process's, not the caller's."""


class PyTorch:
    """A model of sentence-transformers in float32, or in bfloat16 where that costs little.

    In bfloat16 the products of matrices are rounded to it, norms and the softmax are not (PyTorch's automatic mixed
    precision): as fast as weights in bfloat16, and 70 times as near to float32.
    """

    def __init__(self, folder: ModelFolder, precision: Literal["float32", "bfloat16"]) -> None:
        self._precision = precision
        with _RUNNING:
            self.model = load(folder)

    @property
    def dimension(self) -> int:
        return int(self.model.get_embedding_dimension() or 0)

    @property
    def window(self) -> int:
        return int(self.model.max_seq_length or 512)

    def tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        own = getattr(self.model.tokenizer, "backend_tokenizer", None)
        if own is None:
            raise ModelError("this model has no fast tokenizer, which is needed to cut long texts: use another")
        return Tokenizer.from_str(own.to_str())

    def encode(self, pieces: Sequence[str], batch: int | None) -> Matrix:
        import numpy as np
        import torch

        mixed = torch.autocast("cpu", torch.bfloat16, enabled=self._precision == "bfloat16")
        with _RUNNING, _threads(1 if len(pieces) == 1 else None), mixed:
            vectors: Matrix = self.model.encode(list(pieces), prompt="", batch_size=batch or BATCH,
                                                show_progress_bar=False)
        return np.asarray(vectors, np.float32)


def load(folder: ModelFolder) -> SentenceTransformer:
    """The model, from what is on this machine, weights only.

    Raises:
        ModelError: the files are not a model that can be read.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    bars: Any = logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        return SentenceTransformer(str(folder.path), device="cpu", local_files_only=True, trust_remote_code=False,
                                   model_kwargs={"use_safetensors": True})
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ModelError(f"embedding model {folder.name} in {folder.path} cannot be loaded: "
                         f"{str(error).splitlines()[0]}") from error
    finally:
        if shown:
            bars.enable_progress_bar()


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
