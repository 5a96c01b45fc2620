"""Filters: conditions on what is known of chunks, which decide before a search which of them may be found."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from documents.errors import SettingsError
from documents.types import digest
from retrieval.filters.terms import FilterTerm, conditions
from retrieval.types import Collection, Matrix


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
    return collection if mask.all() else cast("Collection", Narrowed(collection, mask))


def _met(collection: Collection, read: Sequence[FilterTerm]) -> NDArray[np.bool_]:
    mask = np.zeros(len(collection.chunks), np.bool_)
    fields: dict[str, None] = {}
    # Many chunks share a value. 1 and true are equal in Python, and are two.
    meets = [lru_cache(maxsize=None, typed=True)(condition.meets) for condition in read]
    for row, said in enumerate(collection.metadata()):
        fields |= dict.fromkeys(said)
        mask[row] = all(met(said.get(condition.field)) for condition, met in zip(read, meets, strict=True))
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


@dataclass(frozen=True)
class Narrowed:
    """The chunks of a collection that a mask lets through; rows are those of the whole collection. `mask`: which may be
    found, of those that may be found anyway; shape (chunks,)."""

    whole: Collection
    mask: NDArray[np.bool_]

    def __getattr__(self, name: str) -> Any:
        """Give everything else as the whole collection does."""
        return getattr(self.whole, name)

    @property
    def content(self) -> str:
        return digest("narrowed", self.whole.content, np.packbits(self.mask).tobytes().hex())

    @property
    def among(self) -> NDArray[np.bool_]:
        return self.mask if self.whole.among is None else self.mask & self.whole.among

    def nearest(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
        return self.whole.nearest(queries, k, self.mask if among is None else self.mask & among)
