"""A model as one graph, tokens in and vectors out, computed by OpenVINO or ONNX Runtime without PyTorch."""
from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, Protocol

from documents.places import processors
from retrieval.embedders.engines.base import batches, padded
from retrieval.embedders.engines.export import Exported, exported
from retrieval.models.finding import ModelFolder

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from retrieval.embedder import Matrix

GraphBackend = Literal["onnx", "openvino", "openvino_bfloat16"]


class Session(Protocol):
    """A loaded graph. Thread-safe; each call is computed by one thread."""

    def __call__(self, ids: NDArray[Any], mask: NDArray[Any]) -> Matrix:
        """Vectors, float32 of shape (texts, dimension), of token ids and mask, int64 of shape (texts, tokens)."""
        ...


class Graph:
    """A model as one graph. Texts of about one length are computed together, and on each thread others."""

    def __init__(self, session: Session, kept: Exported) -> None:
        self._session = session
        self._kept = kept
        self._reading = kept.tokenizer()
        self._reading.enable_truncation(kept.facts.window, direction=kept.facts.truncation)
        self._workers = ThreadPoolExecutor(processors(), "embed")

    @classmethod
    def open(cls, folder: ModelFolder, backend: GraphBackend) -> Graph:
        """The engine of that backend; a model that was not used with it before is exported first, once.

        Raises:
            MissingExtra: a package that the backend needs is not installed.
            ModelError: the model cannot be exported or loaded.
        """
        if backend == "onnx":
            from retrieval.embedders.engines import onnx

            kept = exported(folder, onnx.form())
            return cls(onnx.read(kept.graph), kept)
        from retrieval.embedders.engines import openvino

        kept = exported(folder, openvino.form())
        return cls(openvino.read(kept.graph, "bf16" if backend == "openvino_bfloat16" else "f32", processors()), kept)

    @property
    def dimension(self) -> int:
        return self._kept.facts.dimension

    @property
    def window(self) -> int:
        return self._kept.facts.window

    def tokenizer(self) -> Tokenizer:
        return self._kept.tokenizer()

    def encode(self, pieces: Sequence[str], batch: int | None) -> Matrix:
        import numpy as np

        tokens = self._reading.encode_batch(list(pieces))
        vectors = np.empty((len(pieces), self.dimension), np.float32)

        def compute(rows: list[int]) -> None:
            vectors[rows] = self._session(*padded([tokens[row] for row in rows], self._kept.facts))

        together = list(batches([len(one) for one in tokens], batch))
        if len(together) == 1:
            compute(together[0])
        else:
            list(self._workers.map(compute, together))
        return vectors
