"""Dense retrieval: the chunks whose vectors, of which long ones have several, are nearest to the query's."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.types import Chunk
from ragbed.retrieval.hits import DECIMALS
from ragbed.retrieval.rerankers.reranker import RerankerDeps
from ragbed.retrieval.types import Collection, Embedder, Hit, Matrix, RetrieverKind, Vectors


def windows_of(chunks: Sequence[Chunk], known: Callable[[Chunk], Matrix | None], header: Callable[[str], str],
               embedder: Callable[[], Embedder]) -> tuple[Matrix, NDArray[np.intp]]:
    """Return the unit vectors of the chunks' windows, float32 of shape (windows, dimension), and where each chunk's
    begin. Those that are `known` need not be embedded; the others are, behind their document's header, by the embedder,
    which is asked for where there are such."""
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


BLOCK = 4_000_000  # vectors that are looked at for all queries together: some 50 MB of rows and scores


def nearest_chunks(vectors: Vectors, owners: NDArray[np.intp], queries: Matrix, k: int,
                   among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
    """Return for each query at most `k` different chunks as (row, score), best first, then by row.

    A chunk's score is the highest of its windows'. The search is widened until `k` chunks are found, however many
    windows of one chunk are near, and all that tie with the last of them. `owners` is the chunk's row of each vector,
    queries are unit vectors of shape (queries, d), and `among` says which chunks may be found, shape (chunks,); None
    for all.
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
                # Enough where nothing beyond the last vector seen can stand among the first `k`; none for a NaN.
                enough = len(best) >= k and results[query][-1][1] > round(float(scores[-1]), DECIMALS)
                if reach < most and rows[0] >= 0 and not enough:
                    left.append(query)
        unfinished, reach = left, min(4 * reach, most)
    return results


class Dense(RetrieverKind):
    """Cosine of the query's vector and that of a chunk's nearest window."""

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
        """Raises ModelError where the embedder is not on this machine."""
        if not queries:
            return []
        chunks = self.collection.chunks
        found = self.collection.nearest(self.collection.embedder.embed_queries(queries), k)
        return [[Hit(chunks[row], score, rank, "dense") for rank, (row, score) in enumerate(best, 1)] for best in found]
