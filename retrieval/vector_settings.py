"""Settings of each kind of index of vectors, and which kind suits so many vectors. Imports no faiss."""
from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import ByteSize, Field

from ragbed.documents.errors import SettingsError
from ragbed.retrieval.kinds import Named, discriminated
from ragbed.retrieval.memory import free_memory

Codes = Literal["float32", "float16", "sq8"]
"""What is kept of each number of a vector: all of it, half of its bits, or one of 256 steps (scalar-quantised)."""

WIDTHS: dict[Codes, int] = {"float32": 4, "float16": 2, "sq8": 1}  # bytes a number
Count = Annotated[int, Field(ge=1)]

LISTS = 8
"""Lists, for each square root of the number of vectors. Of 160,000 vectors in clusters of 100, 32 probes found 0.98 of
the ten nearest; with half as many lists 0.88, for a third of the time of learning them."""

PROBES = 32


class Auto(Named):
    """Chosen by the number of vectors and the memory at hand (`retrieval.vector_settings`).

    Attributes:
        memory: bytes that the index may take, or text such as `4GB`; if None, half of what the machine has free.
    """

    kind: Literal["auto"] = "auto"
    memory: ByteSize | None = None


class VectorKind(Named):
    """One kind of index of vectors."""

    def size(self, count: int, dimension: int) -> int:
        """Return bytes of the index of so many vectors, in its file and in memory, within a few per cent."""
        raise NotImplementedError

    def fitted(self, count: int, dimension: int) -> Self:
        """Fill in what depends on the vectors; SettingsError where a setting does not go with their dimensions."""
        return self

    def phrase(self) -> str:
        """Say how the vectors are searched; `fitted` goes before."""
        raise NotImplementedError


class Flat(VectorKind):
    """Every vector is compared: exact with `float32`, nearly so with the smaller codes."""

    kind: Literal["flat"] = "flat"
    codes: Codes = "float32"

    def size(self, count: int, dimension: int) -> int:
        return count * dimension * WIDTHS[self.codes]

    def phrase(self) -> str:
        return f"are compared{_as(self.codes)}"


class Hnsw(VectorKind):
    """A graph of neighbours, walked from vector to vector (Malkov and Yashunin, arXiv:1603.09320).

    Of a million vectors of 384 dimensions in 10,000 clusters (`bench/vectors.py`) the defaults find 0.995 of the ten
    nearest, in 0.8 ms; linking them takes a core 15 minutes.

    Attributes:
        neighbours: links of a vector; twice as many on the graph's lowest level.
        ef_build: candidates while a vector is linked.
        ef_search: candidates while a query walks: more of them find more and take longer.
        threads: that build the graph. With one, equal vectors give equal bytes. With more, building takes that much
            less time, and the graph, and so what is found, depends on their timing.
    """

    kind: Literal["hnsw"] = "hnsw"
    codes: Codes = "float32"
    neighbours: Annotated[int, Field(ge=2, le=256)] = 32
    ef_build: Count = 100
    ef_search: Count = 128
    threads: Count = 1

    def size(self, count: int, dimension: int) -> int:
        links = 4 * (2 * self.neighbours + self.neighbours / (self.neighbours - 1)) + 12
        return int(count * (dimension * WIDTHS[self.codes] + links))

    def phrase(self) -> str:
        built = "" if self.threads == 1 else f", linked by {self.threads} threads, otherwise each time"
        return f"in a graph with {self.neighbours} neighbours each{_as(self.codes)}{built}"


class _Lists(VectorKind):
    """Lists of vectors around centres that were learnt from a sample; the lists nearest to a query are compared."""

    lists: Count | None = None
    probes: Count | None = None

    def fitted(self, count: int, dimension: int) -> Self:
        lists = max(min(self.lists or min(round(LISTS * math.sqrt(count)), count // 10), count), 1)
        probes = min(self.probes or max(lists // 8, 1), self.probes or PROBES, lists)
        return self.model_copy(update={"lists": lists, "probes": probes})

    def phrase(self) -> str:
        return f"in {self.lists:,} lists, of which a query reads {self.probes:,}"


class Ivf(_Lists):
    """Lists of whole vectors.

    Attributes:
        lists: if None, eight times the square root of the number of vectors, at most a tenth of it.
        probes: lists that a query reads; if None, an eighth of the lists, at most 32.
    """

    kind: Literal["ivf"] = "ivf"
    codes: Codes = "float32"

    def size(self, count: int, dimension: int) -> int:
        lists = self.fitted(count, dimension).lists or 0
        return count * (dimension * WIDTHS[self.codes] + 8) + 4 * lists * dimension

    def phrase(self) -> str:
        return super().phrase() + _as(self.codes)


class IvfPq(_Lists):
    """Lists as in `ivf`; of each piece of a vector is kept which of 256 it is like (Jégou et al., TPAMI 2011).

    Of the million vectors that `Hnsw` tells of, the defaults find 0.88 of the ten nearest, in 0.5 ms, in a quarter of
    the room and 40 % of the time to build; of 100,000 they find 0.99. Without `refine` it was half, of 30,000.

    Attributes:
        pieces: of a vector, a byte each; if None, an eighth of its numbers. Must divide their number.
        refine: codes by which the candidates are compared again; read from the file where needed, they take disk
            and little memory. If None, the pieces are trusted.
        candidates: that are compared again for each vector asked for.
    """

    kind: Literal["ivf_pq"] = "ivf_pq"
    pieces: Count | None = None
    refine: Codes | None = "sq8"
    candidates: Count = 8

    def fitted(self, count: int, dimension: int) -> Self:
        if self.pieces and dimension % self.pieces:
            raise SettingsError(f"vectors: {self.pieces} pieces do not divide the vectors' {dimension} numbers: "
                                f"take {_divisor(dimension, self.pieces)}")
        pieces = self.pieces or _divisor(dimension, dimension // 8)
        return super().fitted(count, dimension).model_copy(update={"pieces": pieces})

    def size(self, count: int, dimension: int) -> int:
        fitted = self.fitted(count, dimension)
        refined = dimension * WIDTHS[self.refine] if self.refine else 0
        return count * ((fitted.pieces or 0) + 8 + refined) + 4 * ((fitted.lists or 0) + 256) * dimension

    def phrase(self) -> str:
        again = f", the best {self.candidates} times as many compared again{_as(self.refine)}" if self.refine else ""
        return f"{super().phrase()}, as {self.pieces} bytes each{again}"


KINDS = (Flat, Hnsw, Ivf, IvfPq)

if TYPE_CHECKING:
    Decided: TypeAlias = Flat | Hnsw | Ivf | IvfPq
    VectorSettings: TypeAlias = Auto | Decided
else:
    Decided = discriminated(KINDS)
    VectorSettings = discriminated((Auto, *KINDS))


def _divisor(number: int, most: int) -> int:
    return next((one for one in range(min(most, number), 0, -1) if number % one == 0), 1)


def _as(codes: Codes | None) -> str:
    return {"float16": ", in 16-bit codes", "sq8": ", in 8-bit codes"}.get(codes or "", "")


FLAT_LIMIT = 100_000  # vectors up to which all are compared: 6 ms a query at 384 dimensions, less than to embed it
FREE_SHARE = 2  # the index may take one in so many free bytes: the rest is for the embedder and whoever asks


class ChosenVectors(NamedTuple):
    """A kind of index with everything filled in, and why it is that one."""

    settings: Decided
    why: str


def choose(settings: VectorSettings, count: int, dimension: int) -> ChosenVectors:
    """Choose what `settings` come to for so many vectors of so many dimensions. `auto` compares all vectors where they
    are few, and else takes the first of a graph, a graph of 8-bit codes, and lists of pieces that fits into the memory.
    Raises SettingsError where a setting does not go with the vectors' dimensions."""
    if not isinstance(settings, Auto):
        return ChosenVectors(settings.fitted(count, dimension), "as set")
    free = free_memory() if settings.memory is None else None
    room, whose = (settings.memory, "") if free is None else (free // FREE_SHARE, ", half of what is free")
    usual: list[Decided] = [Hnsw(), Hnsw(codes="sq8")]
    if count <= FLAT_LIMIT:
        usual = [Flat(), Flat(codes="sq8")]
    usual.append(IvfPq())
    sizes = [one.size(count, dimension) for one in usual]
    why = f"chosen {'up to' if count <= FLAT_LIMIT else 'above'} {FLAT_LIMIT:,} vectors"
    if room is None or sizes[0] <= room:
        return ChosenVectors(usual[0].fitted(count, dimension), why)
    fits = next((place for place, size in enumerate(sizes) if size <= room), None)
    place = sizes.index(min(sizes)) if fits is None else fits
    large, limit = (ByteSize(size).human_readable(decimal=True, separator=" ")
                    for size in (sizes[place] if fits is None else sizes[place - 1], room))
    small = ", and this is the smallest" if fits is None else ""
    return ChosenVectors(usual[place].fitted(count, dimension),
                         f"{why}, and {large} do not fit into {limit} of memory{whose}{small}")


def choose_stored(settings: VectorSettings, count: int) -> ChosenVectors:
    """Choose how Milvus searches so many vectors: `auto` compares all where they are few, and else takes a graph, with
    twice as many candidates as faiss's, whose graphs are linked in another order: of 200,000 vectors it found 0.979 of
    the ten nearest with as many. Raises SettingsError for a kind that is faiss's alone."""
    if isinstance(settings, Auto):
        few = count <= FLAT_LIMIT
        usual = Flat() if few else Hnsw(ef_search=2 * Hnsw().ef_search)
        return ChosenVectors(usual, f"chosen {'up to' if few else 'above'} {FLAT_LIMIT:,} vectors")
    if not isinstance(settings, Flat | Hnsw) or settings.codes != "float32":
        raise SettingsError(f"vectors: {settings.kind} with these settings is for faiss; with a store, name auto, flat "
                            "or hnsw, and no codes")
    return ChosenVectors(settings, "as set")


def checked_store(text: str) -> str:
    """Return a store as it is recorded, `milvus:URI`, a file's path from the root. Raises SettingsError for another
    form, and for a URL that holds a password."""
    kind, _, uri = text.partition(":")
    parts = urlsplit(uri)
    if parts.username or parts.password or parts.query:
        raise SettingsError("a store's address must not hold a user, password or query; the token goes into "
                            "MILVUS_TOKEN")
    if kind == "milvus" and parts.scheme in ("http", "https") and parts.hostname:
        return f"milvus:{uri.rstrip('/')}"
    if kind == "milvus" and not parts.scheme and uri.endswith(".db"):
        return f"milvus:{Path(uri).absolute()}"
    raise SettingsError("a store is written milvus:FILE.db, or milvus:http://host:19530")
