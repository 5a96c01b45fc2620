"""Dense retrieval: find the chunks whose vectors are nearest to the query's. Long chunks have several vectors."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.types import Chunk
from ragbed.retrieval.types import (
    DECIMALS,
    Collection,
    Embedder,
    Hit,
    Matrix,
    RerankerDeps,
    RetrieverKind,
    Vectors,
    check_queries,
)


def window_vectors(chunks: Sequence[Chunk], known: Callable[[Chunk], Matrix | None], header: Callable[[str], str],
                   embedder: Callable[[], Embedder]) -> tuple[Matrix, NDArray[np.intp]]:
    """Return unit vectors of the chunks' windows, float32 of shape (windows, d), and the first row of each chunk.

    Args:
        known: returns the vectors of a chunk, or None if it must be embedded.
        header: returns the header of a document, which is embedded in front of its chunks.
        embedder: returns the embedder; called only if a chunk must be embedded.
    """
    parts = [known(chunk) for chunk in chunks]
    missing = [place for place, vectors in enumerate(parts) if vectors is None]
    if missing:
        used = embedder()
        texts = [[above + chunk.content[start:end] for start, end in used.windows([chunk.content], above)[0]]
                 for chunk in (chunks[place] for place in missing) for above in [header(chunk.document)]]
        vectors = used.embed_passages([text for windows in texts for text in windows])
        for place, own in zip(missing, np.split(vectors, list(accumulate(map(len, texts)))[:-1]), strict=True):
            parts[place] = own
    whole = [vectors for vectors in parts if vectors is not None]
    starts: NDArray[np.intp] = np.array([0, *accumulate(map(len, whole))][:-1], np.intp)
    return (whole[0] if len(whole) == 1 else np.concatenate(whole)), starts


BLOCK = 4_000_000  # maximum nearest vectors to request for all queries together, which take about 50 MB


def nearest_chunks(vectors: Vectors, owners: NDArray[np.intp], queries: Matrix, k: int,
                   among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
    """Return for each query at most `k` distinct chunks as (row, score), best first, ties by row.

    A chunk's score is the highest score of its windows. More vectors are requested until there are `k` chunks and all
    that tie with the last one, since many windows may belong to one chunk.

    Args:
        owners: row of each vector's chunk.
        queries: unit vectors of shape (queries, d).
        among: mask of the chunks that may be found, of shape (chunks,); None for all.
    """
    windows = None if among is None else among[owners]
    most = len(vectors) if windows is None else int(np.count_nonzero(windows))
    results: list[list[tuple[int, float]]] = [[] for _ in range(len(queries))]
    unfinished = list(range(len(queries))) if k > 0 and most else []
    reach = min(2 * k, most)
    while unfinished:
        left = []
        size = max(BLOCK // reach, 1)
        for block in (unfinished[first:first + size] for first in range(0, len(unfinished), size)):
            for query, scores, rows in zip(block, *vectors.search(queries[block], reach, windows), strict=True):
                best: dict[int, float] = {}
                for score, row in zip(scores.tolist(), rows.tolist(), strict=True):
                    if row >= 0:
                        best.setdefault(int(owners[row]), round(score, DECIMALS))
                results[query] = sorted(best.items(), key=lambda item: (-item[1], item[0]))[:k]
                # Stop if no further vector can be among the first `k`. A NaN finds nothing.
                enough = len(best) >= k and results[query][-1][1] > round(float(scores[-1]), DECIMALS)
                if reach < most and rows[0] >= 0 and not enough:
                    left.append(query)
        unfinished, reach = left, min(4 * reach, most)
    return results


class Dense(RetrieverKind):
    """Ranks chunks by the cosine between the query and the chunk's nearest window."""

    kind: Literal["dense"] = "dense"

    def open(self, collection: Collection, deps: RerankerDeps) -> DenseRetriever:
        return DenseRetriever(collection)

    def identity(self) -> str:
        return "dense"


@dataclass(frozen=True, slots=True)
class DenseRetriever:
    """Dense retrieval over a collection."""

    collection: Collection

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the hits of each query. Raises ModelError if the embedder is not on this machine."""
        check_queries(queries)
        if not queries:
            return []
        chunks = self.collection.chunks
        found = self.collection.nearest(self.collection.embedder.embed_queries(queries), k)
        return [[Hit(chunks[row], score, rank, "dense") for rank, (row, score) in enumerate(best, 1)] for best in found]
