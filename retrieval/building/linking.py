"""About how long vectors take to be indexed, by what their kind of index computes, at rates that were measured."""
from __future__ import annotations

from documents.processors import processors
from retrieval.vector_settings import Decided, Hnsw, Ivf, IvfPq
from retrieval.vectors import LEAST, ROUNDS, SAMPLE

PRODUCTS = 5.5e10
"""Multiplications a second on one core, of vectors with centres: 40,000 vectors of 384 numbers and their 1,600 centres
took 4.4 seconds of a core."""

LINK = 3e-4
"""Seconds that linking a vector of 384 numbers into a graph takes on one core: 0.1 ms in one of 8,000 that fits the
processor's own memory, 0.18 ms in one of 24,000; it goes on growing, slowly."""


def indexing(kind: Decided, count: int, dimension: int) -> float:
    """Seconds that learning from so many vectors and adding them takes, on as many cores as it uses.

    Args:
        kind: with everything filled in.
    """
    if isinstance(kind, Hnsw):
        return count * LINK * kind.ef_build / 100 * dimension / 384 / min(kind.threads, processors())
    if not isinstance(kind, Ivf | IvfPq):
        return 0.0
    lists, pieces = kind.lists or 1, LEAST if isinstance(kind, IvfPq) else 0
    learnt = min(max(SAMPLE * lists, LEAST * LEAST), count)
    shared = (learnt * ROUNDS * lists + count * (lists + pieces)) / processors()
    return (shared + learnt * ROUNDS * pieces) * dimension / PRODUCTS  # pieces are learnt on one core
