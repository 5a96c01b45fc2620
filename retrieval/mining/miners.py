"""Miners: neighbours by a retriever, chunks of the same documents or by chance; and how they are opened."""
from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np
from pydantic import TypeAdapter

from ragbed.documents.errors import SettingsError
from ragbed.retrieval.conditions import drawn
from ragbed.retrieval.hits import DECIMALS
from ragbed.retrieval.mining.miner import Miner, MiningQuery, Rows
from ragbed.retrieval.mining.same_name import SameName
from ragbed.retrieval.rerankers.reranker import Aids
from ragbed.retrieval.retrievers import KINDS, RetrieverKind, RetrieverSettings
from ragbed.retrieval.types import Collection, Hit, Matrix, Retriever


class Nearness:
    """Cosines of queries with chunks of a collection."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def of(self, queries: Sequence[str], rows: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return for each query the cosine with each of its rows; ModelError where the embedder is not here."""
        if not any(rows):
            return [[] for _ in rows]
        vectors = self._collection.embedder.embed_queries(queries)
        return [self._cosines(vector, wanted) for vector, wanted in zip(vectors, rows, strict=True)]

    def _cosines(self, query: Matrix, rows: Sequence[int]) -> list[float]:
        if not rows:
            return []
        vectors, firsts = self._collection.vectors([self._collection.chunks[row] for row in rows])
        cosines: list[float] = np.maximum.reduceat(vectors @ query, firsts).round(DECIMALS).tolist()
        return cosines


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The chunks that a retriever finds for the query."""

    name: str
    retriever: Retriever

    def mine(self, asked: Sequence[MiningQuery], k: int) -> list[list[Hit]]:
        """Find chunks. Queries are searched together where they leave out about as many chunks.

        What is left out may come first, so a query is searched for that many more. Counts of as many binary digits
        stand together and are searched for the greatest of them, 2^digits - 1: less than twice what any of them needs,
        and a handful of searches whatever the counts are.
        """
        places: dict[int, list[int]] = defaultdict(list)
        for place, one in enumerate(asked):
            places[len(one.leave_out).bit_length()].append(place)
        found: dict[int, list[Hit]] = {}
        for digits, at in places.items():
            searched = self.retriever.search([asked[place].query for place in at], k + 2**digits - 1)
            for place, hits in zip(at, searched, strict=True):
                left = [hit for hit in hits if hit.chunk.id not in asked[place].leave_out][:k]
                found[place] = [replace(hit, rank=rank, found_by=self.name) for rank, hit in enumerate(left, 1)]
        return [found[place] for place in range(len(asked))]


DRAWN = "random"  # what the miner is called


class RandomMiner:
    """Chunks in an order drawn for each query; their score says nothing and is 0."""

    def __init__(self, rows: Rows, seed: int) -> None:
        self._rows, self._seed = rows, seed

    def mine(self, asked: Sequence[MiningQuery], k: int) -> list[list[Hit]]:
        return [self._mined(one, k) for one in asked]

    def _mined(self, one: MiningQuery, k: int) -> list[Hit]:
        chunks = self._rows.collection.chunks
        order = drawn(range(len(chunks)), random.Random(f"{self._seed}:{one.key}:drawn"))
        left_out = self._rows.of_ids(one.leave_out)
        rows = islice((row for row in order if row not in left_out), k)
        return [Hit(chunks[row], 0.0, rank, DRAWN) for rank, row in enumerate(rows, 1)]


class SameDocument:
    """Chunks of the documents of `around`, by the cosine of their nearest window with the query."""

    def __init__(self, rows: Rows, nearness: Nearness) -> None:
        self._rows, self._nearness = rows, nearness

    def mine(self, asked: Sequence[MiningQuery], k: int) -> list[list[Hit]]:
        others = []
        for one in asked:
            documents = dict.fromkeys(chunk.document for chunk in one.around)
            left_out = self._rows.of_ids(one.leave_out)
            others.append([row for document in documents for row in self._by_document.get(document, ())
                           if row not in left_out])
        cosines = self._nearness.of([one.query for one in asked], others)
        return [self._rows.hits(zip(rows, near, strict=True), k, "same_document")
                for rows, near in zip(others, cosines, strict=True)]

    @cached_property
    def _by_document(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for row, chunk in enumerate(self._rows.collection.chunks):
            found[chunk.document].append(row)
        return found


ALONE: Mapping[str, str] = {
    "same_document": "other chunks of the documents of the gold, nearest first",
    "entity": "chunks that share a name with the question or its gold, and state another number or year",
    DRAWN: "chunks drawn by chance"}
"""Miners that are no retriever, and what each finds."""


def miner_names() -> dict[str, str]:
    """Return every miner's name and what it finds: each kind of retriever, with its usual settings, and `ALONE`."""
    kinds = {str(kind.model_fields["kind"].default): f"what a search by {kind.model_fields['kind'].default} finds"
             for kind in KINDS if not any(field.is_required() for name, field in kind.model_fields.items())}
    return {**kinds, **ALONE}


def check_miners(names: Iterable[str]) -> None:
    """Raise SettingsError where there is no miner of one of the names."""
    known = miner_names()
    if unknown := [name for name in names if name not in known]:
        raise SettingsError(f"there is no miner {unknown[0]!r}; there are: {', '.join(known)}")


def open_miner(name: str, rows: Rows, seed: int) -> tuple[Miner, str]:
    """Return the miner of that name over a collection, and what tells it apart from one that finds otherwise. Raises
    SettingsError where there is none of that name, and UserError where a model or package that it needs is not to be
    had."""
    check_miners([name])
    if name == "same_document":
        return SameDocument(rows, Nearness(rows.collection)), name
    if name == "entity":
        return SameName(rows), name
    if name == DRAWN:
        return RandomMiner(rows, seed), f"{name} {seed}"
    kind: RetrieverKind = TypeAdapter(RetrieverSettings).validate_python(name)
    return Neighbours(name, kind.open(rows.collection, Aids())), kind.identity()
