"""Measure retrievers apart from their scores: size, recall of approximate search, build time and speed."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from ragbed.agents.search import Searcher
from ragbed.documents.types import Chunk
from ragbed.experiments.metrics import Extent
from ragbed.experiments.metrics.ranking import merge_extents, overlap_length, total_length
from ragbed.experiments.question import Question
from ragbed.experiments.running.fingerprint import IndexKey
from ragbed.experiments.running.open_resources import index_folder
from ragbed.experiments.running.resources import Pooled, Resources, scope_name
from ragbed.experiments.settings.retrievers import RetrieverFactor
from ragbed.retrieval.filters.filtered_collection import filter_collection
from ragbed.retrieval.index import Index
from ragbed.retrieval.pool import Pool
from ragbed.retrieval.types import DECIMALS, Collection, Matrix

RECALL_AT = 10  # cut of the recall against exact search, or the retriever's `k` if that is smaller
_EXACT_BLOCK = 4_096  # chunks to compare at a time in exact search
_MAX_QUERIES = 1_000  # queries to compare with exact search, evenly spread


@dataclass(frozen=True, slots=True)
class SearchStatistics:
    """Size of what a retriever searches, and how its vectors are searched. None if unknown or not applicable.

    Attributes:
        chunks: number of searched chunks; None if a replay did not open them.
        characters: mean characters of a chunk, without a repeated header.
        omega: mean precision over characters if exactly the chunks with gold were found.
        memory: bytes of the vectors, or of their index.
        disk: bytes of the index folder; None if the questions' chunks are searched.
        exact_recall: mean share of the chunks that exact search ranks first, which the retriever's vectors find.
        cut: number of chunks for `exact_recall`.
    """

    chunks: int | None = None
    characters: float | None = None
    omega: float | None = None
    memory: int | None = None
    disk: int | None = None
    exact_recall: float | None = None
    cut: int | None = None


@dataclass(frozen=True, slots=True)
class SearchTiming:
    """Times of one process, which differ between runs.

    Attributes:
        build: seconds of building the vector index, without embedding; None if it was built before.
        first: seconds of the first search, which loads models and builds indexes.
        rate: queries per second after the first search, or of the only search.
        vector_rate: queries per second of the search among vectors alone, with embedded queries.
    """

    build: float | None = None
    first: float | None = None
    rate: float | None = None
    vector_rate: float | None = None


Measured = tuple[SearchStatistics, SearchTiming]


def measure_searches(resources: Resources) -> dict[IndexKey, Measured]:
    """Return the measurements by the name of the retriever and by format. A question's own chunks have no format."""
    finders = resources.plan.finders
    return {**{key: _measure_index(resources, key, searcher, finders[str(key[0])].retriever)
               for key, searcher in resources.searchers.items()},
            **{(name, None): _measure_pool(resources, pooled, finders[name].retriever)
               for name, pooled in resources.pools.items()}}


def _measure_index(resources: Resources, key: IndexKey, searcher: Searcher[Any],
                   retriever: RetrieverFactor) -> Measured:
    index, questions = resources.indexes.get(key), resources.benchmark.questions
    if index is None:
        return SearchStatistics(), _timing(searcher)
    sizes = replace(_sizes(index.chunks, questions), disk=sum(
        file.stat().st_size for file in index.folder.iterdir() if file.is_file()))
    built = resources.indexing.get(index_folder(resources.plan.settings, retriever, index.manifest.settings.formats[0]))
    if not retriever.embeds:
        return sizes, _timing(searcher)
    kind = index.manifest.kind
    sizes = replace(sizes, memory=kind.size(index.manifest.windows, index.manifest.embedder.dimension))
    return _with_recall(sizes, replace(_timing(searcher), build=built), not kind.content_key(), retriever.k,
                        _index_queries(index, questions, retriever))


def _measure_pool(resources: Resources, pooled: Pooled, retriever: RetrieverFactor) -> Measured:
    pool, questions, timing = pooled.pool, resources.benchmark.questions, _timing(pooled.searcher)
    if pool is None:
        return SearchStatistics(), timing
    sizes = _sizes(pool.chunks, questions)
    if not retriever.embeds or timing.first is None:
        return sizes, timing
    queries = _pool_queries(pool, pooled.everything, questions, retriever)
    sizes, timing = _with_recall(sizes, timing, pool.settings.vectors is None, retriever.k, queries)
    build = sum(seconds for seconds, _ in pool.built.values()) if pool.settings.vectors is not None else None
    return replace(sizes, memory=pool.memory), replace(timing, build=build)


def _timing(searcher: Searcher[Any]) -> SearchTiming:
    return SearchTiming(first=searcher.times.first, rate=searcher.times.rate)


def _sizes(chunks: Sequence[Chunk], questions: Sequence[Question]) -> SearchStatistics:
    if not chunks:
        return SearchStatistics()
    lengths = [chunk.end - chunk.start for chunk in chunks]
    return SearchStatistics(len(chunks), sum(lengths) / len(lengths), _omega(chunks, questions))


def precision_omega(chunks: Iterable[Extent], gold: Sequence[Extent]) -> float:
    """Compute precision if every chunk that contains gold is retrieved: the gold characters in these chunks, divided
    by all characters of these chunks and of the gold. Return 0 if no chunk contains gold."""
    wanted = merge_extents(gold)
    holding = merge_extents(one for one in chunks if overlap_length(wanted, merge_extents([one])))
    both = overlap_length(wanted, holding)
    return both / (total_length(holding) + total_length(wanted) - both) if both else 0.0


def _omega(chunks: Sequence[Chunk], questions: Sequence[Question]) -> float | None:
    extents: dict[tuple[str, str], list[Extent]] = {}
    for chunk in chunks:
        extents.setdefault((chunk.document, chunk.format), []).append(
            Extent(chunk.document, chunk.format, chunk.start, chunk.end))
    found = []
    for question in questions:
        spans = [Extent(item.document, item.format, item.start, item.end) for item in question.gold
                 if item.chunk is None and item.format is not None and item.start is not None and item.end is not None]
        if spans:
            places = {(span.document, span.format) for span in spans}
            found.append(precision_omega([one for place in places for one in extents.get(place, ())], spans))
    return sum(found) / len(found) if found else None


def _index_queries(index: Index, questions: Sequence[Question],
                   retriever: RetrieverFactor) -> Iterator[tuple[Collection, Matrix]]:
    texts = [question.text for question in _spread(questions)]
    yield filter_collection(index, retriever.where), index.embedder.embed_queries(texts)


def _pool_queries(pool: Pool, everything: bool, questions: Sequence[Question],
                  retriever: RetrieverFactor) -> Iterator[tuple[Collection, Matrix]]:
    texts: dict[str, list[str]] = {}
    for question in _spread(questions):
        texts.setdefault(scope_name(question, everything), []).append(question.text)
    for scope in texts.keys() & set(pool.scopes):
        yield filter_collection(pool.scope(scope), retriever.where), pool.embedder.embed_queries(texts[scope])


def _spread(questions: Sequence[Question]) -> Sequence[Question]:
    return questions[::-(-len(questions) // _MAX_QUERIES) or 1]


def _with_recall(sizes: SearchStatistics, timing: SearchTiming, exact: bool, k: int,
                 searches: Iterator[tuple[Collection, Matrix]]) -> Measured:
    """Add the recall against exact search, and the speed among vectors, if this process searched."""
    if timing.first is None:
        return sizes, timing
    cut, seconds, shares, counts = min(RECALL_AT, k), 0.0, list[float](), list[int]()
    for collection, queries in searches:
        collection.nearest(queries[:1], k)  # builds and loads what is needed
        started = perf_counter()
        collection.nearest(queries, k)
        seconds += perf_counter() - started
        recall = 1.0 if exact else recall_of_exact(collection, queries, cut, k)
        shares += [] if recall is None else [recall]
        counts += [] if recall is None else [len(queries)]
    found = float(np.average(shares, weights=counts)) if counts else None
    return (replace(sizes, exact_recall=found, cut=cut),
            replace(timing, vector_rate=sum(counts) / seconds if seconds else None))


def exact_nearest(collection: Collection, queries: Matrix, k: int) -> list[list[tuple[int, float]]]:
    """Return for each query the `k` nearest chunks, as `nearest_chunks` does, but compare every vector."""
    best: list[list[tuple[int, float]]] = [[] for _ in queries]
    for first in range(0, len(collection.chunks), _EXACT_BLOCK):
        chunks = collection.chunks[first:first + _EXACT_BLOCK]
        rows = np.arange(first, first + len(chunks))
        if collection.among is not None:
            rows = rows[collection.among[rows]]
            chunks = [chunks[row - first] for row in rows.tolist()]
        if not chunks:
            continue
        vectors, starts = collection.vectors(chunks)
        cosines = np.maximum.reduceat(queries @ vectors.T, starts, axis=1).round(DECIMALS)
        for found, scores in zip(best, cosines, strict=True):
            nearest = np.argsort(-scores, kind="stable")[:k]
            found += zip(rows[nearest].tolist(), scores[nearest].tolist(), strict=True)
            found.sort(key=lambda item: (-item[1], item[0]))
            del found[k:]
    return best


def recall_of_exact(collection: Collection, queries: Matrix, k: int, depth: int | None = None) -> float | None:
    """Return the mean share of the `k` exactly nearest chunks that the collection's own search for `depth` chunks has
    among its first `k`; None if there are no queries. A chunk that ties with the last of them counts as one of them."""
    shares = []
    found = [hits[:k] for hits in collection.nearest(queries, depth or k)]
    for own, exact in zip(found, exact_nearest(collection, queries, 2 * k), strict=True):
        wanted = min(k, len(exact))
        near = {row for row, score in exact if score >= exact[wanted - 1][1]}
        shares += [sum(row in near for row, _ in own) / wanted] if wanted else []
    return sum(shares) / len(shares) if shares else None
