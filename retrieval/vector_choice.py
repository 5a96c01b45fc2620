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
    """
    if not isinstance(settings, Auto):
        return Choice(settings.fitted(count, dimension), "as set")
    room, whose = _room(settings)
    usual: list[Decided] = [Hnsw(), Hnsw(codes="sq8")]
    if count <= FLAT_LIMIT:
        usual = [Flat(), Flat(codes="sq8")]
    usual.append(IvfPq())
    sizes = [one.size(count, dimension) for one in usual]
    place = next((place for place, size in enumerate(sizes) if room is None or size <= room), len(usual) - 1)
    number = f"chosen {'up to' if count <= FLAT_LIMIT else 'above'} {FLAT_LIMIT:,} vectors"
    if place:
        number += f", and {_told(sizes[place - 1])} do not fit into {_told(room or 0)} of memory{whose}"
    return Choice(usual[place].fitted(count, dimension), number)


def _room(settings: Auto) -> tuple[int | None, str]:
    if settings.memory is not None:
        return settings.memory, ""
    free = free_memory()
    return (None if free is None else free // FREE_SHARE), ", half of what is free"


def _told(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
