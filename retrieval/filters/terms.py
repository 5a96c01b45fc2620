"""Filters, such as `page >= 3 and source = reports/*.pdf`: parse conditions, and filter collections by them."""
from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from itertools import pairwise
from operator import ge, gt, le, lt
from typing import Annotated, Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from ragbed.documents.errors import SettingsError
from ragbed.documents.types import digest, normalize
from ragbed.retrieval.types import Collection, FieldValue, Matrix

_MAX_LENGTH = 2_000  # maximum characters of a filter; a longer one is a mistake
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_OPERATOR = r"!=|!~|<=|>=|==|=|<|>|~"
_QUOTED = r'"(?:[^"\\]|\\["\\])*"'
_FIELD = r'[^\s"<>=!~](?:[^"<>=!~]*[^\s"<>=!~])?'
_CONDITION = re.compile(
    rf'(?P<field>{_QUOTED}|{_FIELD})\s*(?P<operator>{_OPERATOR})\s*(?P<value>{_QUOTED}|[^\s"<>=~][^"<>=~]*)', re.DOTALL)
_AND = re.compile(rf"({_QUOTED})|\s+and(?:\s+|$)", re.IGNORECASE)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,99})(?:\.\d{1,99})?(?:e[+-]?\d{1,3})?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:[t ]\d\d.*)?)?)?", re.IGNORECASE | re.DOTALL)
_FORM = ("expected a condition such as `page >= 3 and source = reports/*.pdf` (operators: = != < <= > >= ~ !~; quote a "
         "value that contains an operator or `and`)")


@dataclass(frozen=True)
class FilterTerm:
    """A condition on a field of a chunk. Its text parses back to the same condition.

    Case is ignored. A chunk without the field meets only `= none`, `!=` and `!~`.

    Attributes:
        operator: `=` and `!=` accept the wildcards `*` and `?`; `~` and `!~` mean contains; `<`, `<=`, `>` and `>=`
            compare numbers with numbers, dates (2024, 2024-05, 2024-05-31) with the precision of the condition, and
            other text by its characters.
        literal: the value was quoted, so it is not a pattern, number, boolean or `none`.
    """

    field: str
    operator: str
    value: str
    literal: bool = False

    def __str__(self) -> str:
        bare = re.fullmatch(_FIELD, self.field) and not _AND.search(self.field)
        field = self.field if bare else _quote(self.field)
        return f"{field} {self.operator} {_quote(self.value) if self.literal else self.value}"

    def meets(self, value: FieldValue) -> bool:
        """Tell whether a chunk whose field has this value meets the condition."""
        if self.operator in ("!=", "!~"):
            return not FilterTerm(self.field, self.operator[1:], self.value, self.literal).meets(value)
        if value is None:
            return self.operator == "=" and not self.literal and self._wanted == "none"
        text = _fold_case(str(value))
        if self.operator == "~":
            return self._wanted in text
        number = parse_number(value)
        both = self._number is not None and number is not None
        if self.operator == "=":
            if self._pattern is not None:
                return fnmatchcase(text, self._pattern)
            return self._number == number if both else self._wanted == text
        if both:
            return _ORDERS[self.operator](number, self._number)
        if _DATE.fullmatch(self._wanted) and _DATE.fullmatch(text):
            return _ORDERS[self.operator](text[:len(self._wanted)], self._wanted)
        return self._number is None and number is None and _ORDERS[self.operator](text, self._wanted)

    @property
    def orders_text(self) -> bool:
        """Whether this orders by text that is neither number nor date, as in `> beta`. No number meets it."""
        return self.operator[0] in "<>" and self._number is None and not _DATE.fullmatch(self._wanted)

    @cached_property
    def _wanted(self) -> str:
        return _fold_case(self.value)

    @cached_property
    def _number(self) -> float | None:
        return None if self.literal else parse_number(self.value)

    @cached_property
    def _pattern(self) -> str | None:
        return self._wanted.replace("[", "[[]") if not self.literal and {"*", "?"} & set(self.value) else None


def parse_number(value: FieldValue) -> float | None:
    """Return a value as a number; None for booleans, other text, and digits after a leading zero."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        return (float(value) if {".", "e"} & set(value.lower()) else int(value)) if _NUMBER.fullmatch(value) else None
    return value


def parse_conditions(where: Iterable[str]) -> list[FilterTerm]:
    """Parse conditions. Raises SettingsError if one has another form."""
    return [condition for text in where for condition in _read(text)]


def normalise_filter(where: Any) -> tuple[str, ...]:
    """Return the distinct conditions of a filter in alphabetical order. A filter is text, a list of texts, or a mapping
    of fields, as in `{year: ">= 2022", format: plain}`; a list in a mapping gives several conditions on one field.
    Raises SettingsError if it has another form."""
    if isinstance(where, str):
        where = [where]
    if isinstance(where, Mapping):
        read = [condition for field, wanted in where.items() for condition in _of_field(field, wanted)]
    elif isinstance(where, list | tuple) and all(isinstance(text, str) for text in where):
        read = parse_conditions(where)
    else:
        raise SettingsError(f"where: expected a mapping from fields to values, or a condition; {_FORM}")
    return tuple(sorted(set(map(str, read))))


def _validate(where: Any) -> tuple[str, ...]:
    try:
        return normalise_filter(where)
    except SettingsError as error:
        raise ValueError(str(error).removeprefix("where: ")) from error


Where = Annotated[tuple[str, ...], BeforeValidator(_validate, json_schema_input_type=str | list[str] | dict[str, Any])]
"""A filter in settings, normalised."""


def _read(text: str) -> Iterator[FilterTerm]:
    if len(text) > _MAX_LENGTH:
        raise SettingsError(f"where: {text[:40]}...: {len(text):,} characters; at most {_MAX_LENGTH:,} are allowed")
    ands = [match.span() for match in _AND.finditer(text) if not match[1]]
    for (_, start), (end, _) in pairwise([(0, 0), *ands, (len(text), len(text))]):
        part = text[start:end].strip()
        match = _CONDITION.fullmatch(part)
        if match is None:
            raise SettingsError(f"where: {part!r}: {_FORM}")
        yield _condition(_plain(match["field"]), match["operator"], match["value"])


def _condition(field: str, operator: str, value: str) -> FilterTerm:
    literal = re.fullmatch(_QUOTED, value, re.DOTALL) is not None
    return FilterTerm(field, "=" if operator == "==" else operator, _plain(value), literal)


def _of_field(field: Any, wanted: Any) -> Iterator[FilterTerm]:
    if not isinstance(field, str) or not field.strip():
        raise SettingsError(f"where: {field!r}: expected a field name")
    for each in wanted if isinstance(wanted, list | tuple) else [wanted]:
        text = each if isinstance(each, str) else _written(each)
        if text is None or not text.strip() or len(text) > _MAX_LENGTH:
            raise SettingsError(f"where: {field}: expected a value, or an operator and a value, as in '>= 2022'")
        match = re.match(rf"\s*({_OPERATOR})\s*", text)
        yield _safe(field, match[1] if match else "=", text[match.end() if match else 0:].strip())


def _written(value: Any) -> str | None:
    """Return a YAML value as text; None for values that a field cannot have."""
    if isinstance(value, int) and abs(value) >= 10 ** 100:
        return None
    return str(value).lower() if value is None or isinstance(value, int | float | datetime.date) else None


def _safe(field: str, operator: str, value: str) -> FilterTerm:
    """Return the condition, quoted if the value would not parse back otherwise."""
    if re.fullmatch(_QUOTED, value, re.DOTALL):
        return _condition(field, operator, value)
    bare, quoted = (FilterTerm(field, operator.replace("==", "="), value, literal) for literal in (False, True))
    try:
        reads_back = list(_read(str(bare))) == [bare]
    except SettingsError:
        reads_back = False
    if not reads_back and ({"*", "?"} & set(value) or not value):
        raise SettingsError(f"where: {field}: {value!r}: expected a value; a pattern cannot contain operators or "
                            "`and`: use ? for each of these characters")
    return bare if reads_back else quoted


def _plain(token: str) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.DOTALL) if token.startswith('"') else token.strip()


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _fold_case(text: str) -> str:
    """Return text without case and with composed letters, because file systems compose names differently."""
    return normalize("NFC", text).casefold()


def filter_collection(collection: Collection, where: Sequence[str]) -> Collection:
    """Restrict a collection to the chunks that meet all conditions; if all chunks do, return the collection itself.
    Raises SettingsError if a condition has another form, names a field that no chunk has, or compares a numeric field
    with text."""
    read = parse_conditions(where)
    if not read or not len(collection.chunks):
        return collection
    mask = _matching_rows(collection, read)
    return collection if mask.all() else cast("Collection", FilteredCollection(collection, mask))


def _matching_rows(collection: Collection, read: Sequence[FilterTerm]) -> NDArray[np.bool_]:
    mask = np.zeros(len(collection.chunks), np.bool_)
    fields: dict[str, None] = {}
    # Cached, because many chunks share a value; typed, because 1 == True in Python.
    meets = [lru_cache(maxsize=None, typed=True)(condition.meets) for condition in read]
    for row, known in enumerate(collection.metadata()):
        fields |= dict.fromkeys(known)
        mask[row] = all(met(known.get(condition.field)) for condition, met in zip(read, meets, strict=True))
    for condition in read:
        if condition.field not in fields:
            raise SettingsError(f"where: {condition}: unknown field {condition.field!r}; there are: "
                                f"{', '.join(sorted(fields))}")
        values = {type(known.get(condition.field)) for known in collection.metadata()} \
            if condition.orders_text and not mask.any() else set()
        if {int, float} & values and values <= {int, float, type(None)}:
            raise SettingsError(f"where: {condition}: {condition.field!r} is numeric, but {condition.value!r} is text; "
                                f"{'remove the quotes' if condition.literal else 'compare it with a number'}")
    return mask


@dataclass(frozen=True)
class FilteredCollection:
    """A collection with a mask of findable chunks, of shape (chunks,). Rows are those of the whole collection."""

    whole: Collection
    mask: NDArray[np.bool_]

    def __getattr__(self, name: str) -> Any:
        """Delegate everything else to the whole collection."""
        return getattr(self.whole, name)

    @property
    def content(self) -> str:
        return digest("narrowed", self.whole.content, np.packbits(self.mask).tobytes().hex())

    @property
    def among(self) -> NDArray[np.bool_]:
        return self.mask if self.whole.among is None else self.mask & self.whole.among

    def nearest(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
        return self.whole.nearest(queries, k, self.mask if among is None else self.mask & among)
