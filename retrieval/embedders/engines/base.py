"""Engine: a loaded model, whichever library computes it.

Tokens of several texts as one array: which texts are computed together, and how the shorter ones are filled.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

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


TOKENS = 1_024
"""Tokens computed at once by each thread: four full windows of 256. Larger ones leave the processor's cache."""

STEP = 8
"""Lengths are padded to multiples of it: every other shape of the input costs its own preparation."""

Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What must be known of a model beside its graph.

    Attributes:
        window: tokens that it reads, special ones included.
        padding: the token that fills shorter texts.
        padded: the side on which they are filled.
        truncation: the side from which longer ones are cut.
    """

    dimension: int
    window: int
    padding: int
    padded: Side
    truncation: Side


def batches(lengths: Sequence[int], size: int | None) -> Iterator[list[int]]:
    """The rows that are computed together: of about one length, the longest first, so that no thread ends last alone.

    Args:
        lengths: in tokens.
        size: rows of a batch; None for as many as have `TOKENS` together.
    """
    order = sorted(range(len(lengths)), key=lambda row: (-_stepped(lengths[row]), row))
    for length, group in groupby(order, key=lambda row: _stepped(lengths[row])):
        rows = list(group)
        most = size or max(TOKENS // length, 1)
        yield from (rows[first:first + most] for first in range(0, len(rows), most))


def padded(tokens: Sequence[Encoding], facts: Facts) -> tuple[NDArray[Any], NDArray[Any]]:
    """Token ids and mask, int64 of shape (texts, tokens)."""
    import numpy as np

    longest = min(_stepped(max(len(one) for one in tokens)), facts.window)
    ids = np.full((len(tokens), longest), facts.padding, np.int64)
    mask = np.zeros((len(tokens), longest), np.int64)
    for row, one in enumerate(tokens):
        place = slice(0, len(one)) if facts.padded == "right" else slice(longest - len(one), longest)
        ids[row, place] = one.ids
        mask[row, place] = 1
    return ids, mask


def _stepped(length: int) -> int:
    return max(-(-length // STEP) * STEP, STEP)
