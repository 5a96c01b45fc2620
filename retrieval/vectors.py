"""Nearest neighbours by inner product: the only module that imports faiss.

On Linux, faiss and torch each bring an OpenMP runtime and live side by side in one process; faiss is held to one
thread for single queries, where waking the others takes longer than the search.
"""
from __future__ import annotations

import errno
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.errors import IndexFolderError, ModelError
from ragbed.documents.paths import count_cores
from ragbed.retrieval.embedders.opening import check_named
from ragbed.retrieval.milvus import MilvusVectors
from ragbed.retrieval.storage.manifest import KEYS, VECTORS, Manifest
from ragbed.retrieval.types import Matrix
from ragbed.retrieval.vector_settings import (
    FLAT_LIMIT,
    Auto,
    ChosenVectors,
    Codes,
    Decided,
    Flat,
    Hnsw,
    Ivf,
    IvfPq,
    VectorSettings,
    choose,
)

BLOCK = 16_384  # vectors that are added at a time: 25 MB at 384 dimensions
SAMPLE = 50  # vectors of the sample for each list that is learnt from it; faiss asks for 39
ROUNDS = 10
"""Of k-means. With 25, as faiss has it, learning pieces took three times as long, and 0.989 of the ten nearest were
among 80 candidates instead of 0.986; lists found 0.86 instead of 0.84."""

LEAST = 256  # fewer vectors than this cannot be learnt from
SEED = 7

GRAPH_COST = 50  # vectors that are compared one after the other in the time that one candidate takes in the graph


class VectorIndex:
    """Unit vectors under one kind of index, whose settings have everything filled in that was left to the vectors.
    Searching is thread-safe."""

    def __init__(self, choice: ChosenVectors, index: Any) -> None:
        self.settings: Decided = choice.settings
        self._why = choice.why
        self._index = index

    @classmethod
    def build(cls, vectors: Matrix, settings: VectorSettings | None = None,
              advance: Callable[[int], None] | None = None) -> VectorIndex:
        """Return an index over the rows of `vectors`, float32 of shape (n, d), in memory or mapped from a file. They
        are read in blocks, beside a sample for what learns. Equal vectors give an equal index on one machine, unless
        the settings, `auto` if none, let several threads link a graph. `advance` is told how many more vectors were
        added. Raises ModelError where a number of a vector is not finite."""
        faiss = _faiss()
        choice = choose(settings or Auto(), *vectors.shape)
        index = _empty(choice.settings, vectors.shape[1])
        if not index.is_trained:
            _learn(index, vectors, choice.settings)
        # The graph depends on the order in which the vectors come.
        faiss.omp_set_num_threads(choice.settings.threads if isinstance(choice.settings, Hnsw) else count_cores())
        # Room for that many vectors at once: what grows by doubling takes three times its size while it grows.
        stored = faiss.downcast_index(getattr(index, "storage", None) or getattr(index, "refine_index", None) or index)
        if hasattr(stored, "codes"):
            stored.codes.resize(len(vectors) * stored.code_size)
            stored.codes.resize(0)
        for start in range(0, len(vectors), BLOCK):
            index.add(_block(vectors[start:start + BLOCK]))
            if advance is not None:
                advance(min(BLOCK, len(vectors) - start))
        return cls(choice, index)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def dimension(self) -> int:
        return int(self._index.d)

    def describe(self) -> str:
        """Return one sentence on how the vectors are searched, and why so."""
        exact = self.settings == Flat()
        how = f"all {len(self):,} vectors" if isinstance(self.settings, Flat) else f"{len(self):,} vectors"
        return (f"{self.settings.kind}: {how} {self.settings.phrase()} ({'exact' if exact else 'approximate'}; "
                f"{self._why})")

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
        chosen = {} if bits is None else {"sel": faiss.IDSelectorBitmap(bits)}
        index, parameters = _plan(self.settings, self._index, k, allowed, chosen)
        scores, rows = index.search(queries, k, params=parameters)
        return scores, rows

    def stored(self, first: int, end: int) -> Matrix | None:
        """Return the vectors in rows `[first, end)`, or None, as `retrieval.types.Vectors` says."""
        if not isinstance(self.settings, Flat | Hnsw) or self.settings.codes != "float32":
            return None
        vectors: Matrix = self._index.reconstruct_n(first, end - first)
        return vectors

    def write(self, path: Path) -> None:
        """Write faiss's own file format; OSError where the disk is full, say."""
        faiss = _faiss()
        try:
            faiss.write_index(self._index, str(path))
        except RuntimeError as error:  # of several lines, with the reason in brackets at the end
            reason = re.search(r"\(([^()]+)\)\s*$", str(error))
            raise OSError(errno.EIO, reason[1] if reason else "faiss failed to write it", str(path)) from error

    @classmethod
    def read(cls, path: Path, settings: Decided) -> VectorIndex:
        """Return the index in a file whose hash was checked, with the settings that it was written with, mapped into
        memory: what is not searched is not read. Raises IndexFolderError where this version of faiss cannot read it, or
        it is of another kind."""
        faiss = _faiss()
        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise IndexFolderError(f"{path} cannot be read by faiss {faiss.__version__}: "
                                   "build the index anew") from error
        if type(index) is not type(_empty(settings, index.d)):
            raise IndexFolderError(f"{path} is no index of kind {settings.kind}: build the index anew")
        return cls(ChosenVectors(settings.fitted(index.ntotal, index.d), "as built"), index)


def _empty(settings: Decided, dimension: int) -> Any:
    faiss = _faiss()
    metric = faiss.METRIC_INNER_PRODUCT
    if isinstance(settings, Flat):
        return _compared(settings.codes, dimension)
    if isinstance(settings, Hnsw):
        index = (faiss.IndexHNSWFlat(dimension, settings.neighbours, metric) if settings.codes == "float32" else
                 faiss.IndexHNSWSQ(dimension, _quantised(settings.codes), settings.neighbours, metric))
        index.hnsw.efConstruction = settings.ef_build
        return index
    centres = faiss.IndexFlatIP(dimension)
    lists = settings.lists or 1
    if isinstance(settings, Ivf):
        return _taught(faiss.IndexIVFFlat(centres, dimension, lists, metric) if settings.codes == "float32" else
                       faiss.IndexIVFScalarQuantizer(centres, dimension, lists, _quantised(settings.codes), metric))
    index = _taught(faiss.IndexIVFPQ(centres, dimension, lists, settings.pieces, 8, metric))
    index.pq.cp.niter = ROUNDS
    index.pq.cp.min_points_per_centroid = 1
    if settings.refine == "float32":
        return faiss.IndexRefineFlat(index)
    return faiss.IndexRefine(index, _compared(settings.refine, dimension)) if settings.refine else index


def _compared(codes: Codes, dimension: int) -> Any:
    faiss = _faiss()
    if codes == "float32":
        return faiss.IndexFlatIP(dimension)
    return faiss.IndexScalarQuantizer(dimension, _quantised(codes), faiss.METRIC_INNER_PRODUCT)


def _quantised(codes: Codes) -> int:
    faiss = _faiss()
    kind: int = {"float16": faiss.ScalarQuantizer.QT_fp16, "sq8": faiss.ScalarQuantizer.QT_8bit}[codes]
    return kind


def _taught(lists: Any) -> Any:
    lists.cp.spherical = True
    lists.cp.seed = SEED
    lists.cp.niter = ROUNDS
    lists.cp.min_points_per_centroid = 1  # faiss warns on stderr below
    lists.cp.max_points_per_centroid = SAMPLE
    return lists


def _learn(index: Any, vectors: Matrix, settings: Decided) -> None:
    if not len(vectors):
        return
    lists = settings.lists or 0 if isinstance(settings, Ivf | IvfPq) else 0
    number = min(max(SAMPLE * lists, LEAST * LEAST), len(vectors))
    rows = np.sort(np.random.default_rng(SEED).choice(len(vectors), number, replace=False))
    # Again and again, where there are fewer than the 256 from which pieces can be learnt.
    sample = np.resize(_block(vectors[rows]), (max(number, LEAST), vectors.shape[1]))
    faiss = _faiss()
    if lists:
        faiss.omp_set_num_threads(count_cores())
        found = faiss.extract_index_ivf(index)
        faiss.Clustering(found.d, found.nlist, found.cp).train(sample, found.quantizer)
    # Learning pieces is many short steps, at whose ends threads wait for each other: on busy cores two took six times
    # as long as one.
    faiss.omp_set_num_threads(1)
    index.train(sample)


def _block(rows: Matrix) -> Matrix:
    block = np.ascontiguousarray(rows, dtype=np.float32)
    if not np.isfinite(block).all():
        raise ModelError("the embedder gave a vector with numbers that are not finite: it cannot be indexed")
    return block


def _plan(settings: Decided, index: Any, k: int, allowed: int, chosen: dict[str, Any]) -> tuple[Any, Any]:
    """What is searched, and with which of faiss's parameters, so that under a mask as much is found as without.

    Of vectors that are let through all are compared where they are few: a graph of 60,000 that leads to half of them,
    whole clusters, found 0.78 of the ten nearest in 1.6 ms, comparing them all took 3.9 ms.
    """
    faiss = _faiss()
    if isinstance(settings, Flat):
        return index, faiss.SearchParameters(**chosen)
    whole = index.ntotal / allowed
    few = bool(chosen) and allowed <= FLAT_LIMIT
    if isinstance(settings, Hnsw):
        # At least 2k, so that the graph is not left before k neighbours were seen.
        candidates = int(max(settings.ef_search, 2 * k) * whole)
        if few or allowed <= GRAPH_COST * candidates:
            return faiss.downcast_index(index.storage), faiss.SearchParameters(**chosen)
        return index, faiss.SearchParametersHNSW(efSearch=candidates, **chosen)
    lists = settings.lists or 1
    probes = lists if few else max((settings.probes or 1) * whole, 4 * k * lists / allowed)
    probed = faiss.SearchParametersIVF(nprobe=min(math.ceil(probes), lists), **chosen)
    if isinstance(settings, Ivf) or settings.refine is None:
        return index, probed
    again = max(min(settings.candidates, index.ntotal / k), 1)
    return index, faiss.IndexRefineSearchParameters(k_factor=again, base_index_params=probed)


def _faiss() -> Any:
    import faiss

    return faiss


def open_vectors(folder: Path, manifest: Manifest) -> VectorIndex | MilvusVectors:
    """Return the vectors of an index folder, whose store, on another machine, is asked only if the user named it once.
    Raises IndexFolderError where they cannot be read, or the store does not hold them."""
    if manifest.store is None:
        return VectorIndex.read(folder / VECTORS, manifest.kind)
    check_named(manifest.store.uri, folder, "keeps its vectors on", "MILVUS_TOKEN")
    return MilvusVectors.open(manifest.store, manifest.kind, manifest.embedder.dimension, folder / KEYS)
