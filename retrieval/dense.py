"""From nearest vectors to nearest chunks."""
from __future__ import annotations

from typing import TYPE_CHECKING

from retrieval.vectors import VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from retrieval.embedder import Matrix


def nearest_chunks(vectors: VectorIndex, owners: NDArray[np.intp], queries: Matrix,
                   k: int) -> list[list[tuple[int, float]]]:
    """For each query at most `k` different chunks as (row, score), best first, then by row.

    A chunk's score is the highest of its windows'. The search is widened until `k` chunks are found, however
    many windows of one chunk are near.

    Args:
        owners: the chunk's row of each vector, shape (vectors,).
        queries: unit vectors, shape (queries, d).
    """
    results: list[list[tuple[int, float]]] = [[] for _ in range(len(queries))]
    open_queries = list(range(len(queries))) if k > 0 else []
    reach = min(2 * k, len(vectors))
    while open_queries:
        scores, rows = vectors.search(queries[open_queries], reach)
        for position, query in enumerate(open_queries):
            results[query] = _best(owners, scores[position], rows[position], k)
        open_queries = [query for query in open_queries if len(results[query]) < k and reach < len(vectors)]
        reach = min(4 * reach, len(vectors))
    return results


def _best(owners: NDArray[np.intp], scores: Matrix, rows: NDArray[np.int64], k: int) -> list[tuple[int, float]]:
    best: dict[int, float] = {}
    for score, row in zip(scores.tolist(), rows.tolist(), strict=True):
        if row >= 0:
            best.setdefault(int(owners[row]), score)
    return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:k]
