"""From nearest vectors to nearest chunks."""
from __future__ import annotations

from typing import TYPE_CHECKING

from retrieval.vectors import VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from retrieval.embedder import Matrix

DECIMALS = 6
"""Of a cosine: what differs by less is a tie, which the number of threads must not decide."""


def nearest_chunks(vectors: VectorIndex, owners: NDArray[np.intp], queries: Matrix, k: int,
                   among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
    """For each query at most `k` different chunks as (row, score), best first, then by row.

    A chunk's score is the highest of its windows'. The search is widened until `k` chunks are found, however many
    windows of one chunk are near, and all that tie with the last of them.

    Args:
        owners: the chunk's row of each vector, shape (vectors,).
        queries: unit vectors, shape (queries, d).
        among: which chunks may be found, shape (chunks,); None for all.
    """
    import numpy as np

    windows = None if among is None else among[owners]
    most = len(vectors) if windows is None else int(np.count_nonzero(windows))
    results: list[list[tuple[int, float]]] = [[] for _ in range(len(queries))]
    open_queries = list(range(len(queries))) if k > 0 and most else []
    reach = min(2 * k, most)
    while open_queries:
        scores, rows = vectors.search(queries[open_queries], reach, windows)
        for position, query in enumerate(open_queries):
            results[query] = _best(owners, scores[position], rows[position])
        open_queries = [query for position, query in enumerate(open_queries)
                        if reach < most and rows[position, 0] >= 0  # none is found for what is not a number
                        and not _enough(results[query], k, float(scores[position, -1]))]
        reach = min(4 * reach, most)
    return [found[:k] for found in results]


def _best(owners: NDArray[np.intp], scores: Matrix, rows: NDArray[np.int64]) -> list[tuple[int, float]]:
    best: dict[int, float] = {}
    for score, row in zip(scores.tolist(), rows.tolist(), strict=True):
        if row >= 0:
            best.setdefault(int(owners[row]), round(score, DECIMALS))
    return sorted(best.items(), key=lambda item: (-item[1], item[0]))


def _enough(found: list[tuple[int, float]], k: int, last: float) -> bool:
    """Whether nothing beyond the last vector seen can stand among the first `k`."""
    return len(found) >= k and found[k - 1][1] > round(last, DECIMALS)
