"""Kinds of vector index, their settings, and the choice of a kind by the number of vectors. Does not import faiss."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, Protocol

from pydantic import ByteSize, Field

from ragbed.documents.paths import count_cores
from ragbed.retrieval.memory import free_memory
from ragbed.retrieval.tagged_union import KindModel
from ragbed.retrieval.types import Matrix, Vectors

Codes = Literal["float32", "float16", "sq8"]
"""Storage of each number of a vector: 32 bits, 16 bits, or one of 256 steps (scalar quantization)."""

WIDTHS: dict[Codes, int] = {"float32": 4, "float16": 2, "sq8": 1}  # bytes per number
_CODES_PHRASE = {"float32": "", "float16": ", in 16-bit codes", "sq8": ", in 8-bit codes"}
Count = Annotated[int, Field(ge=1)]

FLAT_LIMIT = 100_000  # maximum vectors to compare one by one: 6 ms at 384 dimensions, less than embedding the query
_FREE_SHARE = 2  # the index may take this fraction (1/2) of the free memory; the rest is for embedder and queries
_LINK_SECONDS = 3e-4  # seconds to link a vector of 384 numbers into a graph, on one core


class BuiltVectors(Vectors, Protocol):
    """Vectors that a build has indexed but not yet written."""

    @property
    def settings(self) -> VectorKind:
        """The kind, with all settings resolved for these vectors; stored in the manifest."""
        ...

    def describe(self) -> str:
        """Say in one sentence how the vectors are searched, and why."""
        ...

    def write(self, folder: Path) -> None:
        """Write files whose names begin with `vectors.` into the folder. Raises OSError, for example if the disk is
        full."""
        ...

    def remove_outdated(self, previous: Vectors | None) -> None:
        """Remove data that only the `previous` vectors used, once the new index is in place."""
        ...


@dataclass(frozen=True, slots=True)
class VectorTask:
    """Vectors to index."""

    vectors: Matrix  # float32 of shape (n, d), in memory or mapped from a file
    why: str  # why this kind was chosen, for `describe`
    out: Path  # folder of the index
    embedder: str  # identity of the embedder
    previous: Vectors | None  # vectors of the replaced index, if they are outside its folder
    advance: Callable[[int], None]  # called with the number of further vectors that were added


class VectorKind(KindModel):
    """Settings of one kind of vector index, which build and open it. Guests add kinds in the slot `vectors`."""

    in_folder: ClassVar[bool] = True  # whether the vectors are in the index folder, not in an external store

    def choose(self, count: int, dimension: int) -> ChosenVectors:
        """Resolve the settings that depend on the vectors. Raises SettingsError if a setting does not suit them."""
        return ChosenVectors(self, "as set")

    def matches(self, built: VectorKind) -> bool:
        """Tell whether these settings, after `choose`, would build the same index as the settings `built`."""
        return self == built

    def size(self, count: int, dimension: int) -> int:
        """Return the bytes of the index in its file and in memory, within a few per cent."""
        raise NotImplementedError

    def build_seconds(self, count: int, dimension: int) -> float:
        """Estimate the seconds that building takes on this machine."""
        return 0.0

    def phrase(self) -> str:
        """Describe how the vectors are searched, to complete the sentence "300 vectors ..."."""
        raise NotImplementedError

    def build(self, task: VectorTask) -> BuiltVectors:
        """Index vectors. Call it on the result of `choose`."""
        raise NotImplementedError

    def open(self, folder: Path, dimension: int) -> Vectors:
        """Open the vectors of an index folder. Raises IndexFolderError if they cannot be read."""
        raise NotImplementedError

    def content_key(self) -> str:
        """Return text that differs for kinds that find different neighbours; empty for exact search."""
        return self.model_dump_json()

    def allow_server(self) -> None:
        """Remember that the user named the server of these settings, if they have one."""

    def check_server(self) -> None:
        """Raise IndexFolderError if these settings name a server that does not answer."""


class ChosenVectors(NamedTuple):
    """A kind with all settings resolved, and the reason for its choice."""

    settings: VectorKind
    why: str


class _Faiss(VectorKind):
    """Vectors that FAISS searches.

    Attributes:
        codes: how vectors are stored; smaller codes need less memory.
    """

    codes: Codes = "float32"

    def build(self, task: VectorTask) -> BuiltVectors:
        from ragbed.retrieval.vectors import VectorIndex

        return VectorIndex.build(task.vectors, self, task.advance, task.why)

    def open(self, folder: Path, dimension: int) -> Vectors:
        from ragbed.retrieval.vectors import FILE, VectorIndex

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

    With a million vectors of 384 dimensions in 10,000 clusters (`bench/vectors.py`), the defaults find 0.995 of the ten
    nearest in 0.8 ms. Building the graph takes 15 minutes on one core.

    Attributes:
        neighbours: links per vector; twice as many on the lowest level of the graph.
        ef_build: candidates while a vector is linked.
        ef_search: candidates while a query is searched. More candidates find more neighbours but take longer.
        threads: threads that build the graph. One thread makes equal vectors give equal bytes. More make building
            faster, but then the graph and the search results depend on their timing.
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


class Auto(VectorKind):
    """Chooses by the number of vectors and the memory: `flat` for few vectors, otherwise `hnsw`, in 8-bit codes if
    float32 does not fit.

    Attributes:
        memory: bytes that the index may take, or text such as `4GB`. Default: half of the free memory.
    """

    kind: Literal["auto"] = "auto"
    memory: ByteSize | None = None

    def choose(self, count: int, dimension: int) -> ChosenVectors:
        free = free_memory() if self.memory is None else None
        room, whose = (self.memory, "") if free is None else (free // _FREE_SHARE, ", half of what is free")
        few = count <= FLAT_LIMIT
        whole, small = (Flat(), Flat(codes="sq8")) if few else (Hnsw(), Hnsw(codes="sq8"))
        why = f"chosen {'up to' if few else 'above'} {FLAT_LIMIT:,} vectors"
        if room is None or whole.size(count, dimension) <= room:
            return ChosenVectors(whole, why)
        fits = small.size(count, dimension) <= room
        large, limit = (ByteSize(size).human_readable(decimal=True, separator=" ")
                        for size in ((whole if fits else small).size(count, dimension), room))
        smallest = "" if fits else ", and this is the smallest"
        return ChosenVectors(small, f"{why}, and {large} do not fit into {limit} of memory{whose}{smallest}")
