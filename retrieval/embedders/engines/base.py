"""Engine: a loaded model, whichever library computes it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from retrieval.embedder import Matrix

Backend = Literal["float32", "bfloat16", "onnx", "openvino", "openvino_bfloat16"]


class Engine(Protocol):
    """A loaded model. Thread-safe."""

    @property
    def dimension(self) -> int: ...

    @property
    def window(self) -> int:
        """How many tokens it reads of a text, its special tokens included."""
        ...

    def tokenizer(self) -> Tokenizer:
        """One that cuts and pads nothing, of its own for each caller."""
        ...

    def encode(self, pieces: Sequence[str], batch: int | None) -> Matrix:
        """Vectors as the model's modules make them, float32 of shape (pieces, dimension).

        Args:
            pieces: at least one; what is longer than the window is cut.
            batch: pieces that are computed at once; None for what is fastest.
        """
        ...
