"""Restrict a collection to the chunks that meet a filter, before it is searched."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.errors import SettingsError, did_you_mean
from ragbed.documents.types import digest
from ragbed.retrieval.filters.parser import parse_conditions
from ragbed.retrieval.filters.terms import Condition, compile_condition, terms_of
from ragbed.retrieval.types import Collection, Matrix


def filter_collection(collection: Collection, where: Sequence[str]) -> Collection:
    """Restrict a collection to the chunks that meet all conditions; if all chunks do, return the collection itself.
    Raises SettingsError if a condition is malformed, names a field that no chunk has, or compares a numeric field
    with text."""
    read = parse_conditions(where)
    if not read or not len(collection.chunks):
        return collection
    mask = _matching_rows(collection, read)
    return collection if mask.all() else cast("Collection", FilteredCollection(collection, mask))


def _matching_rows(collection: Collection, read: Sequence[Condition]) -> NDArray[np.bool_]:
    mask = np.zeros(len(collection.chunks), np.bool_)
    fields: dict[str, None] = {}
    meets = [compile_condition(condition) for condition in read]
    for row, known in enumerate(collection.metadata()):
        fields |= dict.fromkeys(known)
        mask[row] = all(test(known) for test in meets)
    for term in (term for condition in read for term in terms_of(condition)):
        if term.field not in fields:
            raise SettingsError(f"where: {term}: unknown field {term.field!r}; "
                                f"{did_you_mean(term.field, fields)}the fields are: "
                                f"{', '.join(sorted(fields))}")
        values = {type(known.get(term.field)) for known in collection.metadata()} \
            if term.orders_text and not mask.any() else set()
        if {int, float} & values and values <= {int, float, type(None)}:
            raise SettingsError(f"where: {term}: {term.field!r} is numeric, but {term.value!r} is text; "
                                f"{'remove the quotes' if term.literal else 'compare it with a number'}")
    return mask


@dataclass(frozen=True)
class FilteredCollection:
    """A collection with a mask, of shape (chunks,), of the chunks that may be found. Rows count all chunks."""

    whole: Collection
    mask: NDArray[np.bool_]

    def __getattr__(self, name: str) -> Any:
        """Return attributes of the whole collection."""
        return getattr(self.whole, name)

    @property
    def content(self) -> str:
        return digest("narrowed", self.whole.content, np.packbits(self.mask).tobytes().hex())

    @property
    def among(self) -> NDArray[np.bool_]:
        return self.mask if self.whole.among is None else self.mask & self.whole.among

    def nearest(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
        return self.whole.nearest(queries, k, self.mask if among is None else self.mask & among)
