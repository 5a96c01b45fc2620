"""Embedder: what turns texts into vectors, and knows how much of a text it can read at once."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from documents.chunkers.spans import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]


class Embedder(Protocol):
    """Texts to unit vectors.

    `name` is what a user calls the model; `identity` tells models apart that give different vectors
    (it holds a hash of the weights). Reading either does not load the model; `dimension` and `window` may.
    """

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def window(self) -> int:
        """How many tokens the model reads of one text, its special tokens included."""
        ...

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        """For each text the spans, in code points, that fit the window with `header` in front of each.

        The spans are in order, do not overlap and cover the text; an empty text has one empty span.
        """
        ...

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of questions, float32 of shape (texts, dimension)."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of passages, float32 of shape (texts, dimension)."""
        ...
