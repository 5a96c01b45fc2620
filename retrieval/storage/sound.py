"""Which vectors are such: neither a damaged one nor one of another length may change a result unseen."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from documents.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from retrieval.embedder import Matrix

_OFF = 0.02
"""By how much the squared length of a unit vector may differ from 1: half precision and reduced models take some."""


def sound(blobs: Mapping[str, bytes], numbers: str, width: int | None = None, unit: bool = True) -> dict[str, Matrix]:
    """The vectors of those blobs that hold some, each of shape (numbers,).

    Args:
        numbers: how they are stored, as numpy writes it.
        width: numbers of one vector where a blob holds several; None where it holds one.
        unit: whether they have unit length; others are some numbers, not all of them zero.
    """
    import numpy as np

    size = np.dtype(numbers).itemsize
    whole = [key for key, blob in blobs.items() if blob and not len(blob) % (size * (width or 1))]
    if not whole:
        return {}
    lengths = np.array([len(blobs[key]) // size for key in whole])
    counts = lengths // width if width else np.ones_like(lengths)
    good = _good(np.frombuffer(b"".join(map(blobs.__getitem__, whole)), numbers),
                 np.full(counts.sum(), width) if width else lengths, unit)
    kept = np.logical_and.reduceat(good, np.cumsum(counts) - counts)
    return {key: np.frombuffer(blobs[key], numbers) for key, is_good in zip(whole, kept, strict=True) if is_good}


def check_fit(vectors: Matrix, dimension: int, embedder: str) -> None:
    """Raise ModelError where vectors that an embedder gave cannot be compared with those of an index.

    Args:
        dimension: numbers of a vector of the index.
        embedder: its name.
    """
    import numpy as np

    if vectors.shape[1] != dimension:
        raise ModelError(f"the embedder {embedder} gives {vectors.shape[1]} numbers, the index has {dimension}: have "
                         "its server give as many as when the index was built, or build the index anew elsewhere")
    if not np.isfinite(vectors).all():
        raise ModelError(f"the embedder {embedder} gave a vector with numbers that are not finite: nothing is near it")


def _good(flat: NDArray[np.floating], lengths: NDArray[np.integer], unit: bool) -> NDArray[np.bool_]:
    """For each vector whether it is one."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.add.reduceat(np.square(flat, dtype=np.float32), np.cumsum(lengths) - lengths)
        good: NDArray[np.bool_] = np.abs(squares - 1) < _OFF if unit else np.isfinite(squares) & (squares > 0)
    return good
