"""Miners of hard negatives: by a retriever, within the same documents, by a shared name, or at random."""
from __future__ import annotations

import random
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from math import log
from typing import Protocol

import numpy as np
from pydantic import TypeAdapter

from ragbed.documents.errors import SettingsError, did_you_mean
from ragbed.documents.types import Chunk
from ragbed.experiments.conditions import draw_lazily
from ragbed.experiments.guests.hard_negatives.names import extract_names, extract_numbers, extract_subject
from ragbed.retrieval.retrievers import KINDS, RetrieverSettings
from ragbed.retrieval.types import DECIMALS, Collection, Hit, Matrix, RerankerDeps, Retriever, RetrieverKind


@dataclass(frozen=True, slots=True)
class MiningQuery:
    """A query to mine chunks for.

    Attributes:
        key: identifies the query, and seeds random draws.
        related: chunks whose documents, names and numbers count as the query's own.
        exclude: ids of chunks that must not be found.
    """

    key: str
    query: str
    related: tuple[Chunk, ...] = ()
    exclude: frozenset[str] = frozenset()


class Miner(Protocol):
    """Finds chunks that resemble a query. Each miner has its own measure of similarity."""

    def mine(self, asked: Sequence[MiningQuery], k: int) -> list[list[Hit]]:
        """Return at most `k` hits per query, best first and without excluded chunks. A larger `k` only adds hits at the
        end."""


@dataclass(frozen=True)
class Rows:
    """The rows of a collection by chunk id, shared by all miners."""

    collection: Collection

    def rows_of(self, ids: Iterable[str]) -> list[int]:
        """Return the rows of chunks. The collection must have all of them."""
        return [self._rows_by_id[id] for id in ids]

    def known_rows(self, ids: Iterable[str]) -> set[int]:
        """Return the rows of the chunks that the collection has."""
        return {self._rows_by_id[id] for id in ids if id in self._rows_by_id}

    def hits(self, scored: Iterable[tuple[int, float]], k: int, name: str) -> list[Hit]:
        """Return the `k` rows with the highest scores as hits; ties are ordered by row."""
        best = sorted(scored, key=lambda one: (-one[1], one[0]))[:k]
        return [Hit(self.collection.chunks[row], score, rank, name) for rank, (row, score) in enumerate(best, 1)]

    @cached_property
    def _rows_by_id(self) -> dict[str, int]:
        return {chunk.id: row for row, chunk in enumerate(self.collection.chunks)}


class Nearness:
    """Cosine similarity of queries and chunks."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def of(self, queries: Sequence[str], rows: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return each query's cosine with each of its rows. Raises ModelError if the embedder cannot be loaded."""
        return self.of_chunks(queries, [[self._collection.chunks[row] for row in wanted] for wanted in rows])

    def of_chunks(self, queries: Sequence[str], chunks: Sequence[Sequence[Chunk]]) -> list[list[float]]:
        """Return each query's cosine with each of its chunks, which may be from elsewhere. Raises ModelError: the
        embedder cannot be loaded."""
        if not any(chunks):
            return [[] for _ in chunks]
        vectors = self._collection.embedder.embed_queries(queries)
        return [self._cosines(vector, wanted) for vector, wanted in zip(vectors, chunks, strict=True)]

    def _cosines(self, query: Matrix, chunks: Sequence[Chunk]) -> list[float]:
        if not chunks:
            return []
        vectors, firsts = self._collection.vectors(chunks)
        cosines: list[float] = np.maximum.reduceat(vectors @ query, firsts).round(DECIMALS).tolist()
        return cosines


@dataclass(frozen=True, slots=True)
class RetrieverMiner:
    """Finds the chunks that a retriever returns for the query."""

    name: str
    retriever: Retriever

    def mine(self, asked: Sequence[MiningQuery], k: int) -> list[list[Hit]]:
        """Search, and leave out excluded chunks.

        Excluded chunks may rank first, so each query searches for more hits than `k`. To need few searches, queries are
        grouped by the binary digits of their number of excluded chunks, and a group searches for 2^digits - 1 more.
        """
        places: dict[int, list[int]] = defaultdict(list)
        for place, one in enumerate(asked):
            places[len(one.exclude).bit_length()].append(place)
        found: dict[int, list[Hit]] = {}
        for digits, at in places.items():
            searched = self.retriever.search([asked[place].query for place in at], k + 2**digits - 1)
            for place, hits in zip(at, searched, strict=True):
                left = [hit for hit in hits if hit.chunk.id not in asked[place].exclude][:k]
                found[place] = [replace(hit, rank=rank, found_by=self.name) for rank, hit in enumerate(left, 1)]
        return [found[place] for place in range(len(asked))]


DRAWN = "random"  # name of the random miner


class RandomMiner:
    """Draws chunks in random order for each query; the score is always 0."""

    def __init__(self, rows: Rows, seed: int) -> None:
        self._rows, self._seed = rows, seed

    def mine(self, asked: Sequence[MiningQuery], k: int) -> list[list[Hit]]:
        return [self._mine_query(one, k) for one in asked]

    def _mine_query(self, one: MiningQuery, k: int) -> list[Hit]:
        chunks = self._rows.collection.chunks
        order = draw_lazily(range(len(chunks)), random.Random(f"{self._seed}:{one.key}:drawn"))
        left_out = self._rows.known_rows(one.exclude)
        rows = islice((row for row in order if row not in left_out), k)
        return [Hit(chunks[row], 0.0, rank, DRAWN) for rank, row in enumerate(rows, 1)]


class SameDocumentMiner:
    """Finds chunks of the documents of `related`, by the cosine of their nearest window with the query."""

    def __init__(self, rows: Rows, nearness: Nearness) -> None:
        self._rows, self._nearness = rows, nearness

    def mine(self, asked: Sequence[MiningQuery], k: int) -> list[list[Hit]]:
        others = []
        for one in asked:
            documents = dict.fromkeys(chunk.document for chunk in one.related)
            left_out = self._rows.known_rows(one.exclude)
            others.append([row for document in documents for row in self._rows_by_document.get(document, ())
                           if row not in left_out])
        cosines = self._nearness.of([one.query for one in asked], others)
        return [self._rows.hits(zip(rows, near, strict=True), k, "same_document")
                for rows, near in zip(others, cosines, strict=True)]

    @cached_property
    def _rows_by_document(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for row, chunk in enumerate(self._rows.collection.chunks):
            found[chunk.document].append(row)
        return found


_COMMON = 0.02  # a name is too common in a larger share of the chunks, unless fewer than `_FEW` have it
_FEW = 50


class SameNameMiner:
    """Finds chunks that share a name with the query, or with the subject of a related chunk, but state another number.

    A chunk with all numbers of the query is left out, because it is about the same year or amount. The score is the sum
    of log(1 + chunks / chunks with that name) over the shared names.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def mine(self, asked: Sequence[MiningQuery], k: int) -> list[list[Hit]]:
        return [self._mine_query(one, k) for one in asked]

    def _mine_query(self, one: MiningQuery, k: int) -> list[Hit]:
        count = len(self._rows.collection.chunks)
        scores: dict[int, float] = defaultdict(float)
        subjects = {name for chunk in one.related if (name := extract_subject(chunk.content))}
        for name in sorted(extract_names(one.query) | subjects):
            holders = self._holders.get(name, ())
            for row in holders:
                scores[row] += log(1 + count / len(holders))
        for row in self._rows.known_rows(one.exclude):
            scores.pop(row, None)
        rounded = [(round(score, DECIMALS), row) for row, score in scores.items()]
        ranked = sorted(rounded, key=lambda each: (-each[0], each[1]))
        return self._keep_other_numbers(one, ranked, k)

    def _keep_other_numbers(self, one: MiningQuery, ranked: Sequence[tuple[float, int]], k: int) -> list[Hit]:
        asked = extract_numbers(one.query)
        known = asked.union(*(extract_numbers(chunk.content) for chunk in one.related))
        hits: list[Hit] = []
        for score, row in ranked:
            if len(hits) == k:
                break
            chunk = self._rows.collection.chunks[row]
            stated = extract_numbers(chunk.content)
            if stated - known and not (asked and asked <= stated):
                hits.append(Hit(chunk, score, len(hits) + 1, "entity"))
        return hits

    @cached_property
    def _holders(self) -> dict[str, array[int]]:
        found: dict[str, array[int]] = defaultdict(lambda: array("I"))
        for row, chunk in enumerate(self._rows.collection.chunks):
            for name in extract_names(chunk.content):
                found[name].append(row)
        most = max(_FEW, _COMMON * len(self._rows.collection.chunks))
        return {name: rows for name, rows in found.items() if len(rows) <= most}


MINERS: Mapping[str, str] = {
    "same_document": "other chunks of the documents of the gold, nearest first",
    "entity": "chunks that share a name with the question or its gold, and state a different number or year",
    DRAWN: "random chunks"}
"""Miners other than retrievers, with what each finds."""


def miner_names() -> dict[str, str]:
    """Return the name and description of every miner: each kind of retriever with default settings, and `MINERS`."""
    kinds = {str(kind.model_fields["kind"].default): f"what a search by {kind.model_fields['kind'].default} finds"
             for kind in KINDS if not any(field.is_required() for name, field in kind.model_fields.items())}
    return {**kinds, **MINERS}


def check_miners(names: Iterable[str]) -> None:
    """Raise SettingsError if a name is not a miner's."""
    known = miner_names()
    if unknown := [name for name in names if name not in known]:
        raise SettingsError(f"unknown miner {unknown[0]!r}; "
                            f"{did_you_mean(unknown[0], known)}choose from: {', '.join(known)}")


def open_miner(name: str, rows: Rows, seed: int) -> tuple[Miner, str]:
    """Return the named miner over a collection, and its identity. Raises SettingsError if there is no such miner.
    Raises UserError if a model or package that it needs is missing.
    """
    check_miners([name])
    if name == "same_document":
        return SameDocumentMiner(rows, Nearness(rows.collection)), name
    if name == "entity":
        return SameNameMiner(rows), name
    if name == DRAWN:
        return RandomMiner(rows, seed), f"{name} {seed}"
    kind: RetrieverKind = TypeAdapter(RetrieverSettings).validate_python(name)
    return RetrieverMiner(name, kind.open(rows.collection, RerankerDeps())), kind.identity()
