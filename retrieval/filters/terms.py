"""Conditions of a filter, `page >= 3 and source = reports/*.pdf`: read, written, met, and what they let through."""
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

LONGEST = 2_000  # characters of a filter: what is longer is a mistake
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_OPERATOR = r"!=|!~|<=|>=|==|=|<|>|~"
_QUOTED = r'"(?:[^"\\]|\\["\\])*"'
_FIELD = r'[^\s"<>=!~](?:[^"<>=!~]*[^\s"<>=!~])?'
_CONDITION = re.compile(
    rf'(?P<field>{_QUOTED}|{_FIELD})\s*(?P<operator>{_OPERATOR})\s*(?P<value>{_QUOTED}|[^\s"<>=~][^"<>=~]*)', re.DOTALL)
_AND = re.compile(rf"({_QUOTED})|\s+and(?:\s+|$)", re.IGNORECASE)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,99})(?:\.\d{1,99})?(?:e[+-]?\d{1,3})?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:[t ]\d\d.*)?)?)?", re.IGNORECASE | re.DOTALL)
_SHAPE = ("expected a field, one of = != < <= > >= ~ !~, and a value, in double quotes where it holds such signs or "
          "`and`; between several conditions stands `and`, as in `page >= 3 and source = reports/*.pdf`")


@dataclass(frozen=True)
class FilterTerm:
    """A condition on a field of a chunk. Its text reads back as the same condition.

    Case does not count. A chunk without the field meets `= none`, `!=` and `!~`, and nothing else.

    Attributes:
        operator: `=` and `!=` (`*` and `?` stand for any characters and any one), `~` and `!~` (contains), and
            `<`, `<=`, `>`, `>=`, which compare numbers with numbers, dates (2024, 2024-05, 2024-05-31) as far as the
            condition names them, and other texts by their characters.
        literal: the value is meant as it is written: quoted, and so no pattern, number, truth or `none`.
    """

    field: str
    operator: str
    value: str
    literal: bool = False

    def __str__(self) -> str:
        bare = re.fullmatch(_FIELD, self.field) and not _AND.search(self.field)
        field = self.field if bare else _quoted(self.field)
        return f"{field} {self.operator} {_quoted(self.value) if self.literal else self.value}"

    def meets(self, value: FieldValue) -> bool:
        """Tell whether a chunk meets it whose field has this value."""
        if self.operator in ("!=", "!~"):
            return not FilterTerm(self.field, self.operator[1:], self.value, self.literal).meets(value)
        if value is None:
            return self.operator == "=" and not self.literal and self._wanted == "none"
        text = _folded(str(value))
        if self.operator == "~":
            return self._wanted in text
        number = number_of(value)
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
        """True where it asks for what comes before or after something that is no number and no date: no number does."""
        return self.operator[0] in "<>" and self._number is None and not _DATE.fullmatch(self._wanted)

    @cached_property
    def _wanted(self) -> str:
        return _folded(self.value)

    @cached_property
    def _number(self) -> float | None:
        return None if self.literal else number_of(self.value)

    @cached_property
    def _pattern(self) -> str | None:
        return self._wanted.replace("[", "[[]") if not self.literal and {"*", "?"} & set(self.value) else None


def number_of(value: FieldValue) -> float | None:
    """Return the number that a value is or says; truths are none, nor are digits behind a leading zero."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        return (float(value) if {".", "e"} & set(value.lower()) else int(value)) if _NUMBER.fullmatch(value) else None
    return value


def conditions(where: Iterable[str]) -> list[FilterTerm]:
    """Conditions from their texts; SettingsError where one cannot be read."""
    return [condition for text in where for condition in _read(text)]


def normal(where: Any) -> tuple[str, ...]:
    """Return the one form of a filter: the text of each condition, once, in alphabetical order. It is given as a text,
    several, or a mapping of fields to what they must be, as in `{year: ">= 2022", format: plain}`, where a list holds
    several conditions on one field. Raises SettingsError for anything else, and where a condition cannot be read."""
    if isinstance(where, str):
        where = [where]
    if isinstance(where, Mapping):
        read = [condition for field, wanted in where.items() for condition in _of_field(field, wanted)]
    elif isinstance(where, list | tuple) and all(isinstance(text, str) for text in where):
        read = conditions(where)
    else:
        raise SettingsError(f"where: {_SHAPE}, or a mapping of fields to what they must be")
    return tuple(sorted(set(map(str, read))))


def _validated(where: Any) -> tuple[str, ...]:
    try:
        return normal(where)
    except SettingsError as error:
        raise ValueError(str(error).removeprefix("where: ")) from error


Where = Annotated[tuple[str, ...], BeforeValidator(_validated, json_schema_input_type=str | list[str] | dict[str, Any])]
"""A filter in settings, in its one form."""


def _read(text: str) -> Iterator[FilterTerm]:
    if len(text) > LONGEST:
        raise SettingsError(f"where: {text[:40]}...: {len(text):,} characters, and at most {LONGEST:,} are read")
    ands = [match.span() for match in _AND.finditer(text) if not match[1]]
    for (_, start), (end, _) in pairwise([(0, 0), *ands, (len(text), len(text))]):
        part = text[start:end].strip()
        match = _CONDITION.fullmatch(part)
        if match is None:
            raise SettingsError(f"where: {part!r}: {_SHAPE}")
        yield _condition(_plain(match["field"]), match["operator"], match["value"])


def _condition(field: str, operator: str, value: str) -> FilterTerm:
    literal = re.fullmatch(_QUOTED, value, re.DOTALL) is not None
    return FilterTerm(field, "=" if operator == "==" else operator, _plain(value), literal)


def _of_field(field: Any, wanted: Any) -> Iterator[FilterTerm]:
    if not isinstance(field, str) or not field.strip():
        raise SettingsError(f"where: {field!r}: expected the name of a field")
    for each in wanted if isinstance(wanted, list | tuple) else [wanted]:
        text = each if isinstance(each, str) else _written(each)
        if text is None or not text.strip() or len(text) > LONGEST:
            raise SettingsError(f"where: {field}: expected a value, or an operator and a value, as in '>= 2022'")
        match = re.match(rf"\s*({_OPERATOR})\s*", text)
        yield _safe(field, match[1] if match else "=", text[match.end() if match else 0:].strip())


def _written(value: Any) -> str | None:
    """A value of YAML as a text; None for what no field can be."""
    if isinstance(value, int) and abs(value) >= 10 ** 100:
        return None
    return str(value).lower() if value is None or isinstance(value, int | float | datetime.date) else None


def _safe(field: str, operator: str, value: str) -> FilterTerm:
    """The condition; a value that would not read back bare is quoted."""
    if re.fullmatch(_QUOTED, value, re.DOTALL):
        return _condition(field, operator, value)
    bare, quoted = (FilterTerm(field, operator.replace("==", "="), value, literal) for literal in (False, True))
    try:
        reads_back = list(_read(str(bare))) == [bare]
    except SettingsError:
        reads_back = False
    if not reads_back and ({"*", "?"} & set(value) or not value):
        raise SettingsError(f"where: {field}: {value!r}: {_SHAPE}; in a pattern, ? may stand for such a sign "
                            "or a space")
    return bare if reads_back else quoted


def _plain(token: str) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.DOTALL) if token.startswith('"') else token.strip()


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _folded(text: str) -> str:
    """Without case, and with each letter composed: file names are not everywhere."""
    return normalize("NFC", text).casefold()


def narrowed(collection: Collection, where: Sequence[str]) -> Collection:
    """Narrow a collection to the chunks that meet all conditions, texts as `Where` holds them; where all do, it is the
    collection itself. Raises SettingsError where a condition cannot be read, asks for a field that nothing in the
    collection has, or compares with something else a field that is a number wherever there is one."""
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
