"""Engine: a loaded model, whichever library computes it; and the one that sentence-transformers computes."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ragbed.retrieval.models.finding import ModelFolder
from ragbed.retrieval.models.loading import BATCH, LOCAL, Precision, fast_tokenizer, loading, running
from ragbed.retrieval.types import Matrix

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Encoding, Tokenizer


class Engine(Protocol):
    """A loaded model. Thread-safe."""

    @property
    def dimension(self) -> int: ...

    @property
    def window(self) -> int:
        """Tokens that it reads of a text, its special tokens included."""
        ...

    def tokenizer(self) -> Tokenizer:
        """Return one that cuts and pads nothing, of its own for each caller."""
        ...

    def encode(self, pieces: Sequence[str], batch: int | None) -> Matrix:
        """Return vectors as the model's modules make them, float32 of shape (pieces, dimension), of one piece at least;
        what is longer than the window is cut. `batch` pieces are computed at once; None for what is fastest."""
        ...


TOKENS = 1_024  # computed at once by each thread: four full windows of 256; more leave the processor's cache
STEP = 8  # lengths are padded to multiples of it: every other shape of the input costs its own preparation
Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of a model that its graph does not hold."""

    dimension: int
    window: int  # tokens that it reads, special ones included
    padding: int  # the token that fills shorter texts
    padded: Side  # the side on which they are filled
    truncation: Side  # the side from which longer ones are cut


def batches(lengths: Sequence[int], size: int | None) -> Iterator[list[int]]:
    """Group the rows that are computed together: of about one length in tokens, the longest first, so that no thread
    ends alone; `size` rows each, or None for as many as have `TOKENS` together."""
    order = sorted(range(len(lengths)), key=lambda row: (-_stepped(lengths[row]), row))
    for length, group in groupby(order, key=lambda row: _stepped(lengths[row])):
        rows = list(group)
        most = size or max(TOKENS // length, 1)
        yield from (rows[first:first + most] for first in range(0, len(rows), most))


def padded(tokens: Sequence[Encoding], facts: Facts) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return token ids and mask, int64 of shape (texts, tokens)."""
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


class PyTorch:
    """A model of sentence-transformers on the processor, in float32, or in bfloat16 where that costs little. Raises
    ModelError where the files are not a model that can be read."""

    def __init__(self, folder: ModelFolder, precision: Precision) -> None:
        self._precision: Precision = precision
        with loading(folder, "embedding model") as path:
            from sentence_transformers import SentenceTransformer

            self.model: SentenceTransformer = SentenceTransformer(path, **LOCAL)
            self.dimension = int(self.model.get_embedding_dimension() or 0)
            self.window = int(self.model.max_seq_length or 512)

    def tokenizer(self) -> Tokenizer:
        return fast_tokenizer(self.model)

    def encode(self, pieces: Sequence[str], batch: int | None) -> Matrix:
        with running(self._precision, 1 if len(pieces) == 1 else None):
            vectors: Matrix = self.model.encode(list(pieces), prompt="", batch_size=batch or BATCH,
                                                show_progress_bar=False)
        return np.asarray(vectors, np.float32)
