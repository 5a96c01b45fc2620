"""Kinds of vector index that FAISS searches: their settings, and how their file is built, read and searched.

Only this module imports faiss, on first use. A single query uses one faiss thread, because waking the others takes
longer than the search. On Linux, faiss and torch each load their own OpenMP runtime.
"""
from __future__ import annotations

import errno
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ByteSize, Field

from ragbed.documents.errors import IndexFolderError, ModelError
from ragbed.documents.paths import count_cores
from ragbed.retrieval.memory import free_memory
from ragbed.retrieval.types import Matrix, Vectors
from ragbed.retrieval.vectors import BuiltVectors, ChosenVectors, VectorKind, VectorTask

Codes = Literal["float32", "float16", "sq8"]
"""Storage of each number of a vector: 32 bits, 16 bits, or one of 256 steps (scalar quantization)."""

WIDTHS: dict[Codes, int] = {"float32": 4, "float16": 2, "sq8": 1}  # bytes per number
_CODES_PHRASE = {"float32": "", "float16": ", in 16-bit codes", "sq8": ", in 8-bit codes"}
Count = Annotated[int, Field(ge=1)]

FLAT_LIMIT = 100_000  # maximum vectors to compare one by one, in 6 ms at 384 dimensions; embedding a query takes longer
_FREE_SHARE = 2  # the index may take half of the free memory; the rest is for embedder and queries
_FACTORS = 8  # bytes of two numbers that are stored with each 1-bit code
_LINK_SECONDS = 3e-4  # seconds to link a vector of 384 numbers into a graph, on one core

FILE = "vectors.faiss"
BLOCK = 16_384  # vectors added at a time: 25 MB at 384 dimensions
_MIN_SAMPLE, _MAX_SAMPLE, _SEED = 256, 16_384, 7  # vectors to learn the range of codes from
_MAX_DENSE = 1_024  # numbers of a vector that a matrix can rotate in 20 microseconds

_PER_RESULT = 10  # vectors to compare a second time for each result
_MASKED = 2  # times as many under a mask, because a mask may leave out more of the nearest vectors than of others
_SCAN_COST = 3  # vectors that can be compared in the time of finding and comparing one candidate
_CODES_COST = 40  # 1-bit codes that can be compared in the time of one vector
_TOGETHER = 4_000_000  # maximum candidates of all queries of a block, which take about 50 MB
_GRAPH_COST = 50  # vectors that can be compared in the time of one candidate in the graph


class _Faiss(VectorKind):
    """Base of the kinds that FAISS searches.

    Attributes:
        codes: how vectors are stored; smaller codes need less memory.
    """

    codes: Codes = "float32"

    def build(self, task: VectorTask) -> BuiltVectors:
        return VectorIndex.build(task.vectors, self, task.advance, task.why)

    def open(self, folder: Path, dimension: int) -> Vectors:
        return VectorIndex.read(folder / FILE, self)


class Flat(_Faiss):
    """Compares every vector: exact with `float32`, nearly exact with the smaller codes."""

    kind: Literal["flat"] = "flat"

    def size(self, count: int, dimension: int) -> int:
        return count * dimension * WIDTHS[self.codes]

    def phrase(self) -> str:
        return f"are compared{_CODES_PHRASE[self.codes]}"

    def content_key(self) -> str:
        return "" if self.codes == "float32" else super().content_key()


class Hnsw(_Faiss):
    """Searches a graph of neighbours, walking from vector to vector (Malkov and Yashunin, arXiv:1603.09320).

    With a million vectors of 384 dimensions in 10,000 clusters (`bench/vectors.py`), the defaults find 99.5 % of the
    ten nearest vectors in 0.8 ms. Building the graph takes 15 minutes on one core.

    Attributes:
        neighbours: links per vector; twice as many on the lowest level of the graph.
        ef_build: candidates while a vector is linked.
        ef_search: candidates while a query is searched. More candidates find more neighbours but take longer.
        threads: threads that build the graph. With one thread, equal vectors give equal bytes. More threads build
            faster, but the graph and the search results then depend on their timing.
    """

    kind: Literal["hnsw"] = "hnsw"
    neighbours: Annotated[int, Field(ge=2, le=256)] = 32
    ef_build: Count = 100
    ef_search: Count = 128
    threads: Count = 1

    def size(self, count: int, dimension: int) -> int:
        links = 4 * (2 * self.neighbours + self.neighbours / (self.neighbours - 1)) + 12
        return int(count * (dimension * WIDTHS[self.codes] + links))

    def build_seconds(self, count: int, dimension: int) -> float:
        return count * _LINK_SECONDS * self.ef_build / 100 * dimension / 384 / min(self.threads, count_cores())

    def phrase(self) -> str:
        built = "" if self.threads == 1 else f", linked by {self.threads} threads, different each time"
        return f"in a graph with {self.neighbours} neighbours each{_CODES_PHRASE[self.codes]}{built}"


class RaBitQ(_Faiss):
    """Compares 1-bit codes of all vectors, then the vectors with the nearest codes (Gao and Long, arXiv:2405.12497).

    The vectors are rotated before they become 1-bit codes, because without a rotation, embedders whose numbers differ
    in size lose half of the nearest vectors.

    Attributes:
        codes: how the vectors are stored for the second comparison.
        candidates: vectors to compare a second time, at least; for more than 40 results, ten per result.
    """

    kind: Literal["rabitq"] = "rabitq"
    codes: Codes = "float16"
    candidates: Count = 400

    def size(self, count: int, dimension: int) -> int:
        bits = dimension if _rotates_by_matrix(dimension) else 1 << (dimension - 1).bit_length()
        return count * (dimension * WIDTHS[self.codes] + -(-bits // 8) + _FACTORS)

    @property
    def rounds(self) -> bool:
        return self.codes == "float16"

    def phrase(self) -> str:
        stored = {"float32": "in full", "float16": "in 16 bits", "sq8": "in 8 bits"}[self.codes]
        return f"are compared by 1-bit codes, and the nearest {self.candidates:,} again {stored}"


class Auto(VectorKind):
    """Chooses by the number of vectors and the memory: `flat` for few, or else `rabitq`, in 8-bit codes if needed.

    Attributes:
        memory: bytes that the index may take, or text such as `4GB`. Default: half of the free memory.
    """

    kind: Literal["auto"] = "auto"
    memory: ByteSize | None = None

    def choose(self, count: int, dimension: int) -> ChosenVectors:
        free = free_memory() if self.memory is None else None
        room, whose = (self.memory, "") if free is None else (free // _FREE_SHARE, ", half of what is free")
        few = count <= FLAT_LIMIT
        whole, small = (Flat(), Flat(codes="sq8")) if few else (RaBitQ(), RaBitQ(codes="sq8"))
        why = f"chosen {'up to' if few else 'above'} {FLAT_LIMIT:,} vectors"
        if room is None or whole.size(count, dimension) <= room:
            return ChosenVectors(whole, why)
        fits = small.size(count, dimension) <= room
        large, limit = (ByteSize(size).human_readable(decimal=True, separator=" ")
                        for size in ((whole if fits else small).size(count, dimension), room))
        smallest = "" if fits else ", and this is the smallest"
        return ChosenVectors(small, f"{why}, and {large} do not fit into {limit} of memory{whose}{smallest}")


class VectorIndex:
    """Unit vectors in a faiss index. Searching is thread-safe.

    Attributes:
        settings: `Flat`, `RaBitQ` or `Hnsw`.
    """

    def __init__(self, settings: VectorKind, index: Any, why: str) -> None:
        self.settings = settings
        self._index = index
        self._why = why

    @classmethod
    def build(cls, vectors: Matrix, settings: VectorKind | None = None, advance: Callable[[int], None] | None = None,
              why: str | None = None) -> VectorIndex:
        """Index the rows of `vectors`, float32 of shape (n, d), in memory or mapped from a file. `advance` gets the
        number of further vectors that were added; `why` says why the kind was chosen, and None lets `build` choose.
        Equal vectors give an equal index on one machine, unless several threads link a graph. Raises ModelError if a
        number of a vector is not finite."""
        faiss = _faiss()
        kind = settings or Auto()
        kind, why = kind.choose(*vectors.shape) if why is None else (kind, why)
        index = _empty(kind, vectors.shape[1])
        # A product with a matrix is rounded differently by each number of threads, and so are the codes of RaBitQ.
        faiss.omp_set_num_threads(kind.threads if isinstance(kind, Hnsw) else
                                  1 if isinstance(kind, RaBitQ) else count_cores())
        if not index.is_trained and len(vectors):
            index.train(_sample(vectors, kind))
        # Add blocks in order, because the graph depends on it.
        # Reserve the memory at once: an array that grows by doubling takes three times its size while it grows.
        stored = _stored_index(kind, index)
        stored.codes.resize(len(vectors) * stored.code_size)
        stored.codes.resize(0)
        for start in range(0, len(vectors), BLOCK):
            index.add(_block(vectors[start:start + BLOCK], kind))
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
        """Search as `retrieval.types.Vectors.search` describes."""
        faiss = _faiss()
        allowed = len(self) if among is None else int(np.count_nonzero(among))
        if not allowed or not k or not len(queries):
            shape = len(queries), k
            return np.full(shape, np.finfo(np.float32).min, np.float32), np.full(shape, -1, np.int64)
        faiss.omp_set_num_threads(1 if len(queries) == 1 else count_cores())
        if isinstance(self.settings, RaBitQ):
            return _search_codes(self.settings, self._index, queries, k, among, allowed)
        bits = None if among is None else np.packbits(among, bitorder="little")
        selector = {} if bits is None else {"sel": faiss.IDSelectorBitmap(bits)}
        index, parameters = _plan_search(self.settings, self._index, k, allowed, selector)
        scores, rows = index.search(queries, k, params=parameters)
        return scores, rows

    def stored(self, first: int, end: int) -> Matrix | None:
        """Return the vectors in rows `[first, end)`; None if another index of this kind cannot be built from them."""
        if getattr(self.settings, "codes", None) != "float32" and not self.settings.rounds:
            return None
        vectors: Matrix = _stored_index(self.settings, self._index).reconstruct_n(first, end - first)
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
        """Do nothing, because the old file is deleted with the old folder."""

    @classmethod
    def read(cls, path: Path, settings: VectorKind) -> VectorIndex:
        """Open an index file whose hash was checked, built with `settings`. It is mapped into memory, so that only
        searched parts are read. Raises IndexFolderError if faiss cannot read it, or it is of another kind."""
        faiss = _faiss()
        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise IndexFolderError(f"{path} cannot be read by faiss {faiss.__version__}: rebuild the index") from error
        if not _has_parts(index, _empty(settings, index.d)):
            raise IndexFolderError(f"{path} is not an index of kind {settings.kind}: rebuild it")
        return cls(settings, index, "as built")


def _has_parts(index: Any, expected: Any) -> bool:
    """Tell whether an index that was read has the types, dimensions and rows that its kind has. Searching an index
    whose parts do not belong together would read memory that is not its own."""
    faiss = _faiss()
    if not (isinstance(expected, faiss.IndexRefine) and isinstance(index, faiss.IndexRefine)):
        return type(index) is type(expected)
    own, others = ([*_rotated_codes(one), faiss.downcast_index(one.refine_index)] for one in (index, expected))
    codes, exact = own[1], own[2]
    same = [(type(part), part.d, part.metric_type, part.code_size) for part in own[1:]] == [
        (type(part), part.d, part.metric_type, part.code_size) for part in others[1:]]
    return (same and own[0] == others[0] and codes.bbs == others[1].bbs
            and index.ntotal == index.base_index.ntotal == codes.ntotal == exact.ntotal
            and codes.codes.size() == -(-index.ntotal // codes.bbs) * codes.get_block_stride()
            and exact.codes.size() == index.ntotal * exact.code_size)


def _rotated_codes(index: Any) -> tuple[tuple[Any, ...], Any]:
    """Return what describes the rotation of a `RaBitQ` index, and the index of 1-bit codes inside it."""
    faiss = _faiss()
    base = faiss.downcast_index(index.base_index)
    if not isinstance(base, faiss.IndexPreTransform) or base.chain.size() != 1:
        return (), base
    rotation = faiss.downcast_VectorTransform(base.chain.at(0))
    return (type(rotation), rotation.d_in, rotation.d_out), faiss.downcast_index(base.index)


def _stored_index(settings: VectorKind, index: Any) -> Any:
    """Return the part of a faiss index that stores the vectors."""
    part = {"hnsw": "storage", "rabitq": "refine_index"}.get(settings.kind)
    return _faiss().downcast_index(getattr(index, part) if part else index)


def _empty(settings: VectorKind, dimension: int) -> Any:
    faiss = _faiss()
    metric = faiss.METRIC_INNER_PRODUCT
    codes = {"float16": faiss.ScalarQuantizer.QT_fp16, "sq8": faiss.ScalarQuantizer.QT_8bit}
    if isinstance(settings, Flat):
        return (faiss.IndexFlatIP(dimension) if settings.codes == "float32" else
                faiss.IndexScalarQuantizer(dimension, codes[settings.codes], metric))
    if isinstance(settings, RaBitQ):
        rotation = (faiss.RandomRotationMatrix(dimension, dimension) if _rotates_by_matrix(dimension) else
                    faiss.HadamardRotation(dimension, _SEED))
        bits = faiss.IndexRaBitQFastScan(rotation.d_out, metric)
        return faiss.IndexRefine(faiss.IndexPreTransform(rotation, bits),
                                 _empty(Flat(codes=settings.codes), dimension))
    if not isinstance(settings, Hnsw):
        raise TypeError(f"{settings.kind} is not a kind of faiss index")
    index = (faiss.IndexHNSWFlat(dimension, settings.neighbours, metric) if settings.codes == "float32" else
             faiss.IndexHNSWSQ(dimension, codes[settings.codes], settings.neighbours, metric))
    index.hnsw.efConstruction = settings.ef_build
    return index


def _rotates_by_matrix(dimension: int) -> bool:
    """Return whether vectors are rotated by a matrix. A Hadamard transform is faster for large vectors, but rounds
    their size up to a power of two, which makes codes longer and searches slower."""
    return dimension & (dimension - 1) != 0 and dimension <= _MAX_DENSE


def _sample(vectors: Matrix, kind: VectorKind) -> Matrix:
    number = min(_MAX_SAMPLE, len(vectors))
    rows = np.sort(np.random.default_rng(_SEED).choice(len(vectors), number, replace=False))
    return np.resize(_block(vectors[rows], kind), (max(number, _MIN_SAMPLE), vectors.shape[1]))


def _block(rows: Matrix, kind: VectorKind) -> Matrix:
    block = np.ascontiguousarray(rows, dtype=np.float32)
    if kind.rounds:
        block = block.astype(np.float16).astype(np.float32)
    if not np.isfinite(block).all():
        raise ModelError("the embedder returned a vector with numbers that are not finite; it cannot be indexed")
    return block


def _plan_search(settings: VectorKind, index: Any, k: int, allowed: int, selector: dict[str, Any]) -> tuple[Any, Any]:
    """Return the faiss index to search and its parameters. If a mask allows few vectors, all of them are compared,
    because walking the graph would miss too many: with a mask that allowed half of 60,000 vectors, in whole clusters,
    it found 0.78 of the ten nearest."""
    faiss = _faiss()
    if not isinstance(settings, Hnsw):
        return index, faiss.SearchParameters(**selector)
    # At least 2k candidates, so that the walk sees enough neighbours.
    candidates = int(max(settings.ef_search, 2 * k) * index.ntotal / allowed)
    if (selector and allowed <= FLAT_LIMIT) or allowed <= _GRAPH_COST * candidates:
        return faiss.downcast_index(index.storage), faiss.SearchParameters(**selector)
    return index, faiss.SearchParametersHNSW(efSearch=candidates, **selector)


def _search_codes(settings: RaBitQ, index: Any, queries: Matrix, k: int, among: NDArray[np.bool_] | None, allowed: int,
                  ) -> tuple[Matrix, NDArray[np.int64]]:
    """Compare the candidates with the nearest codes. All allowed vectors are compared if that takes no longer, or if a
    mask leaves too few candidates."""
    faiss = _faiss()
    least = max(settings.candidates, _PER_RESULT * k)
    reach = least if among is None else int(_MASKED * least * index.ntotal / allowed)
    few = allowed <= _SCAN_COST * reach + index.ntotal // _CODES_COST
    if among is None and not few:
        found: tuple[Matrix, NDArray[np.int64]] = index.search(
            queries, k, params=faiss.IndexRefineSearchParameters(k_factor=reach / k))
        return found
    shape = len(queries), k
    scores, rows = np.full(shape, np.finfo(np.float32).min, np.float32), np.full(shape, -1, np.int64)
    left = np.ones(len(queries), np.bool_)  # queries for which all allowed vectors have to be compared
    step = max(1, _TOGETHER // reach)
    if among is not None and not few:
        for first in range(0, len(queries), step):
            near, candidates = index.search(queries[first:first + step], reach)
            kept = among[candidates] & (candidates >= 0)
            for place in np.flatnonzero(kept.sum(axis=1) >= least):
                best = np.flatnonzero(kept[place])[:k]
                scores[first + place], rows[first + place] = near[place, best], candidates[place, best]
                left[first + place] = False
    if left.any():
        bits = None if among is None else np.packbits(among, bitorder="little")
        selector = {} if bits is None else {"sel": faiss.IDSelectorBitmap(bits)}
        scores[left], rows[left] = _stored_index(settings, index).search(
            np.ascontiguousarray(queries[left]), k, params=faiss.SearchParameters(**selector))
    return scores, rows


def _faiss() -> Any:
    import faiss

    return faiss
