"""Filters: conditions on what is known of chunks, which decide before a search which of them may be found."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from documents.errors import SettingsError
from documents.types import Chunk, Document, digest
from retrieval.filters.terms import FilterTerm, conditions
from retrieval.types import Collection, Embedder, FieldValue, Matrix


def narrowed(collection: Collection, where: Sequence[str]) -> Collection:
    """Narrow a collection to the chunks that meet all conditions, texts as `Where` holds them.

    It is the collection itself where all chunks do.

    Raises:
        SettingsError: a condition cannot be read, asks for a field that nothing in the collection has, or compares
            with something else a field that is a number wherever there is one.
    """
    read = conditions(where)
    if not read or not len(collection.chunks):
        return collection
    mask = _met(collection, read)
    return collection if mask.all() else Narrowed(collection, mask)


def _met(collection: Collection, read: Sequence[FilterTerm]) -> NDArray[np.bool_]:
    mask = np.zeros(len(collection.chunks), np.bool_)
    fields: dict[str, None] = {}
    known: list[dict[tuple[type, FieldValue], bool]] = [{} for _ in read]
    for row, said in enumerate(collection.metadata()):
        fields |= dict.fromkeys(said)
        mask[row] = all(_once(condition, said.get(condition.field), results)
                        for condition, results in zip(read, known, strict=True))
    for condition in read:
        if condition.field not in fields:
            raise SettingsError(f"where: {condition}: there is no field {condition.field!r}; there are: "
                                f"{', '.join(sorted(fields))}")
        values = {type(said.get(condition.field)) for said in collection.metadata()} \
            if condition.orders_text and not mask.any() else set()
        if {int, float} & values and values <= {int, float, type(None)}:
            raise SettingsError(f"where: {condition}: {condition.field!r} is a number wherever there is one, and "
                                f"{condition.value!r} is none{' in quotes' if condition.literal else ''}")
    return mask


def _once(condition: FilterTerm, value: FieldValue, results: dict[tuple[type, FieldValue], bool]) -> bool:
    """Many chunks share a value. 1 and true are equal in Python, and are two."""
    key = type(value), value
    if key not in results:
        results[key] = condition.meets(value)
    return results[key]


@dataclass(frozen=True)
class Narrowed:
    """The chunks of a collection that a mask lets through; rows are those of the whole collection. `mask`: which may be
    found, of those that may be found anyway; shape (chunks,)."""

    whole: Collection
    mask: NDArray[np.bool_]

    @property
    def chunks(self) -> Sequence[Chunk]:
        return self.whole.chunks

    @property
    def content(self) -> str:
        return digest("narrowed", self.whole.content, np.packbits(self.mask).tobytes().hex())

    @property
    def wording(self) -> str:
        return self.whole.wording

    @property
    def embedder(self) -> Embedder:
        return self.whole.embedder

    @property
    def among(self) -> NDArray[np.bool_]:
        return self.mask if self.whole.among is None else self.mask & self.whole.among

    def texts(self) -> Iterator[str]:
        return self.whole.texts()

    def nearest(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
        return self.whole.nearest(queries, k, self.mask if among is None else self.mask & among)

    def vectors(self, chunks: Sequence[Chunk]) -> tuple[Matrix, NDArray[np.intp]]:
        return self.whole.vectors(chunks)

    def document(self, id: str) -> Document:
        return self.whole.document(id)

    def metadata(self) -> Iterator[Mapping[str, FieldValue]]:
        return self.whole.metadata()
