"""Which kind of index suits so many vectors in so much memory, and why, in a few words."""
from __future__ import annotations

from typing import NamedTuple

from retrieval.memory import free_memory
from retrieval.vector_settings import Auto, Decided, Flat, Hnsw, IvfPq, VectorSettings

FLAT_LIMIT = 100_000
"""Vectors up to which all are compared: 6 ms a query at 384 dimensions, below the time to embed the query."""

FREE_SHARE = 2
"""The index may take one in so many bytes of what is free: the rest is for the embedder and for whoever asks."""


class Choice(NamedTuple):
    """A kind of index with everything filled in, and why it is that one."""

    settings: Decided
    why: str


def choose(settings: VectorSettings, count: int, dimension: int) -> Choice:
    """What `settings` come to for so many vectors of so many dimensions.

    `auto` compares all vectors where they are few, and else takes the first of a graph, a graph of 8-bit codes, and
    lists of pieces that fits into the memory.

    Raises:
        SettingsError: a setting does not go with the vectors' dimensions.
    """
    if not isinstance(settings, Auto):
        return Choice(settings.fitted(count, dimension), "as set")
    room, whose = _room(settings)
    usual: list[Decided] = [Hnsw(), Hnsw(codes="sq8")]
    if count <= FLAT_LIMIT:
        usual = [Flat(), Flat(codes="sq8")]
    usual.append(IvfPq())
    sizes = [one.size(count, dimension) for one in usual]
    why = f"chosen {'up to' if count <= FLAT_LIMIT else 'above'} {FLAT_LIMIT:,} vectors"
    if room is None or sizes[0] <= room:
        return Choice(usual[0].fitted(count, dimension), why)
    fits = next((place for place, size in enumerate(sizes) if size <= room), None)
    place = sizes.index(min(sizes)) if fits is None else fits
    large = _told(sizes[place] if fits is None else sizes[place - 1])
    small = ", and this is the smallest" if fits is None else ""
    return Choice(usual[place].fitted(count, dimension),
                  f"{why}, and {large} do not fit into {_told(room)} of memory{whose}{small}")


def _room(settings: Auto) -> tuple[int | None, str]:
    if settings.memory is not None:
        return settings.memory, ""
    free = free_memory()
    return (None if free is None else free // FREE_SHARE), ", half of what is free"


def _told(size: int) -> str:
    unit, name = next(((unit, name) for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if size >= unit),
                      (1, "bytes"))
    return f"{size / unit:.{0 if unit == 1 else 1}f} {name}"
