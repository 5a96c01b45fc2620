"""Nearest neighbours by inner product: the only module that imports faiss.

On Linux, faiss and torch each bring an OpenMP runtime and share one process. Single queries use one faiss thread:
waking the others takes longer than the search.
"""
from __future__ import annotations

import errno
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.errors import IndexFolderError, ModelError
from ragbed.documents.paths import count_cores
from ragbed.retrieval.types import Matrix, Vectors
from ragbed.retrieval.vector_settings import FLAT_LIMIT, Auto, Codes, Flat, Hnsw, VectorKind

FILE = "vectors.faiss"
BLOCK = 16_384  # vectors added at a time: 25 MB at 384 dimensions
_MIN_SAMPLE, _MAX_SAMPLE, _SEED = 256, 65_536, 7  # vectors to learn the range of 8-bit codes from

_GRAPH_COST = 50  # one candidate in the graph takes as long as comparing this many vectors in sequence


class VectorIndex:
    """Unit vectors in a faiss index. Searching is thread-safe.

    Attributes:
        settings: `Flat` or `Hnsw`.
    """

    def __init__(self, settings: VectorKind, index: Any, why: str) -> None:
        self.settings = settings
        self._index = index
        self._why = why

    @classmethod
    def build(cls, vectors: Matrix, settings: VectorKind | None = None, advance: Callable[[int], None] | None = None,
              why: str | None = None) -> VectorIndex:
        """Index the rows of `vectors`, float32 of shape (n, d), in memory or mapped from a file.

        Equal vectors give an equal index on one machine, unless several threads link a graph.

        Args:
            settings: a faiss kind; by default `Auto()`.
            advance: called with the number of further vectors that were added.
            why: reason for the choice of the kind; if None, the kind is chosen now.

        Raises:
            ModelError: a number of a vector is not finite.
        """
        faiss = _faiss()
        kind = settings or Auto()
        kind, why = kind.choose(*vectors.shape) if why is None else (kind, why)
        index = _empty(kind, vectors.shape[1])
        if not index.is_trained and len(vectors):
            index.train(_sample(vectors))
        # The graph depends on the order in which the vectors come.
        faiss.omp_set_num_threads(kind.threads if isinstance(kind, Hnsw) else count_cores())
        # Reserve the memory at once: an array that grows by doubling takes three times its size while it grows.
        stored = faiss.downcast_index(getattr(index, "storage", None) or index)
        if hasattr(stored, "codes"):
            stored.codes.resize(len(vectors) * stored.code_size)
            stored.codes.resize(0)
        for start in range(0, len(vectors), BLOCK):
            index.add(_block(vectors[start:start + BLOCK]))
            if advance is not None:
                advance(min(BLOCK, len(vectors) - start))
        return cls(kind, index, why)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def dimension(self) -> int:
        return int(self._index.d)

    def describe(self) -> str:
        """Say in one sentence how the vectors are searched, and why."""
        every = "all " if isinstance(self.settings, Flat) else ""
        exact = "exact" if self.settings == Flat() else "approximate"
        return f"{self.settings.kind}: {every}{len(self):,} vectors {self.settings.phrase()} ({exact}; {self._why})"

    def search(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None,
               ) -> tuple[Matrix, NDArray[np.int64]]:
        """Search as `retrieval.types.Vectors` says."""
        faiss = _faiss()
        allowed = len(self) if among is None else int(np.count_nonzero(among))
        if not allowed or not k or not len(queries):
            shape = len(queries), k
            return np.full(shape, np.finfo(np.float32).min, np.float32), np.full(shape, -1, np.int64)
        faiss.omp_set_num_threads(1 if len(queries) == 1 else count_cores())
        bits = None if among is None else np.packbits(among, bitorder="little")
        selector = {} if bits is None else {"sel": faiss.IDSelectorBitmap(bits)}
        index, parameters = _plan_search(self.settings, self._index, k, allowed, selector)
        scores, rows = index.search(queries, k, params=parameters)
        return scores, rows

    def stored(self, first: int, end: int) -> Matrix | None:
        """Return the vectors in rows `[first, end)`; None if codes keep them only approximately."""
        if getattr(self.settings, "codes", None) != "float32":
            return None
        vectors: Matrix = self._index.reconstruct_n(first, end - first)
        return vectors

    def write(self, folder: Path) -> None:
        """Write `vectors.faiss` into the folder. Raises OSError, for example if the disk is full."""
        path = folder / FILE
        try:
            _faiss().write_index(self._index, str(path))
        except RuntimeError as error:  # the error has several lines, with the reason in parentheses at the end
            reason = re.search(r"\(([^()]+)\)\s*$", str(error))
            raise OSError(errno.EIO, reason[1] if reason else "faiss failed to write it", str(path)) from error

    def remove_outdated(self, previous: Vectors | None) -> None:
        """Do nothing: the old file goes with the old folder."""

    @classmethod
    def read(cls, path: Path, settings: VectorKind) -> VectorIndex:
        """Open an index file whose hash was checked. It is mapped into memory, so that only searched parts are read.

        Args:
            settings: settings that the index was built with.

        Raises:
            IndexFolderError: this version of faiss cannot read it, or it is of another kind.
        """
        faiss = _faiss()
        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise IndexFolderError(f"{path} cannot be read by faiss {faiss.__version__}: rebuild the index") from error
        if type(index) is not type(_empty(settings, index.d)):
            raise IndexFolderError(f"{path} is not an index of kind {settings.kind}: rebuild it")
        return cls(settings, index, "as built")


def _empty(settings: VectorKind, dimension: int) -> Any:
    faiss = _faiss()
    metric = faiss.METRIC_INNER_PRODUCT
    if isinstance(settings, Flat):
        return (faiss.IndexFlatIP(dimension) if settings.codes == "float32" else
                faiss.IndexScalarQuantizer(dimension, _quantizer(settings.codes), metric))
    if not isinstance(settings, Hnsw):
        raise TypeError(f"{settings.kind} is not a kind of faiss index")
    index = (faiss.IndexHNSWFlat(dimension, settings.neighbours, metric) if settings.codes == "float32" else
             faiss.IndexHNSWSQ(dimension, _quantizer(settings.codes), settings.neighbours, metric))
    index.hnsw.efConstruction = settings.ef_build
    return index


def _quantizer(codes: Codes) -> int:
    faiss = _faiss()
    kind: int = {"float16": faiss.ScalarQuantizer.QT_fp16, "sq8": faiss.ScalarQuantizer.QT_8bit}[codes]
    return kind


def _sample(vectors: Matrix) -> Matrix:
    number = min(_MAX_SAMPLE, len(vectors))
    rows = np.sort(np.random.default_rng(_SEED).choice(len(vectors), number, replace=False))
    return np.resize(_block(vectors[rows]), (max(number, _MIN_SAMPLE), vectors.shape[1]))


def _block(rows: Matrix) -> Matrix:
    block = np.ascontiguousarray(rows, dtype=np.float32)
    if not np.isfinite(block).all():
        raise ModelError("the embedder returned a vector with numbers that are not finite; it cannot be indexed")
    return block


def _plan_search(settings: VectorKind, index: Any, k: int, allowed: int, selector: dict[str, Any]) -> tuple[Any, Any]:
    """Return the faiss index to search and its parameters, so that a mask does not lower recall. If a mask allows few
    vectors, all of them are compared. A graph of 60,000 vectors with a mask that allowed half of them, in whole
    clusters, found 0.78 of the ten nearest in 1.6 ms. Comparing all took 3.9 ms."""
    faiss = _faiss()
    if not isinstance(settings, Hnsw):
        return index, faiss.SearchParameters(**selector)
    # At least 2k candidates, so that the walk does not end before it has seen k neighbours.
    candidates = int(max(settings.ef_search, 2 * k) * index.ntotal / allowed)
    if (selector and allowed <= FLAT_LIMIT) or allowed <= _GRAPH_COST * candidates:
        return faiss.downcast_index(index.storage), faiss.SearchParameters(**selector)
    return index, faiss.SearchParametersHNSW(efSearch=candidates, **selector)


def _faiss() -> Any:
    import faiss

    return faiss
