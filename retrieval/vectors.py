"""Nearest neighbours by inner product: the only module that imports faiss.

On Linux, faiss and torch each bring an OpenMP runtime and live side by side in one process; faiss is held to one
thread for single queries, where waking the others takes longer than the search.
"""
from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from documents.errors import IndexFolderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from retrieval.embedder import Matrix

Kind = Literal["flat", "hnsw"]

FLAT_LIMIT = 100_000
"""Vectors up to which all are compared: 6 ms a query at 384 dimensions, below the time to embed the query."""

NEIGHBOURS = 32
EF_BUILD = 200
EF_SEARCH = 128


class VectorIndex:
    """Unit vectors, searched exactly (`flat`) or along a graph of neighbours (`hnsw`)."""

    def __init__(self, kind: Kind, index: Any, chosen: bool = False) -> None:
        self.kind: Kind = kind
        self._index = index
        self._chosen = chosen

    @classmethod
    def build(cls, vectors: Matrix, kind: Kind | Literal["auto"] = "auto") -> VectorIndex:
        """An index over the rows of `vectors`, float32 of shape (n, d)."""
        import faiss

        suited: Kind = "flat" if len(vectors) <= FLAT_LIMIT else "hnsw"
        chosen: Kind = suited if kind == "auto" else kind
        dimension = vectors.shape[1]
        index: Any = faiss.IndexFlatIP(dimension)
        if chosen == "hnsw":
            index = faiss.IndexHNSWFlat(dimension, NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction = EF_BUILD
        # One thread: the graph depends on the order of insertion, and embedding takes far longer anyway.
        faiss.omp_set_num_threads(1)
        index.add(vectors)
        return cls(chosen, index, kind == "auto")

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def dimension(self) -> int:
        return int(self._index.d)

    def describe(self) -> str:
        """One sentence on how the vectors are searched, and why so."""
        if self.kind == "flat":
            why = f"chosen up to {FLAT_LIMIT:,} vectors" if self._chosen else "as set"
            return f"flat: all {len(self):,} vectors are compared (exact; {why})"
        why = f"chosen above {FLAT_LIMIT:,} vectors" if self._chosen else "as set"
        return f"hnsw: {len(self):,} vectors in a graph with {NEIGHBOURS} neighbours each (approximate; {why})"

    def search(self, queries: Matrix, k: int) -> tuple[Matrix, NDArray[np.int64]]:
        """Inner products and rows of the `k` nearest vectors, best first, each of shape (queries, k).

        Where fewer are found, the row is -1.
        """
        import faiss

        faiss.omp_set_num_threads(1 if len(queries) == 1 else os.cpu_count() or 1)
        if self.kind == "hnsw":
            # At least 2k, so that the graph is not left before k neighbours were seen.
            self._index.hnsw.efSearch = max(EF_SEARCH, 2 * k)
        scores, rows = self._index.search(queries, k)
        return scores, rows

    def write(self, path: Path) -> None:
        """Write faiss's own file format.

        Raises:
            OSError: the disk is full, say.
        """
        import faiss

        try:
            faiss.write_index(self._index, str(path))
        except RuntimeError as error:  # of several lines, with the reason in brackets at the end
            reason = re.search(r"\(([^()]+)\)\s*$", str(error))
            raise OSError(errno.EIO, reason[1] if reason else "faiss failed to write it", str(path)) from error

    @classmethod
    def read(cls, path: Path, kind: Kind) -> VectorIndex:
        """The index in a file whose hash was checked.

        Raises:
            IndexFolderError: this version of faiss cannot read it.
        """
        import faiss

        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise IndexFolderError(f"{path} cannot be read by faiss {faiss.__version__}: "
                                   "build the index anew") from error
        return cls(kind, index)
