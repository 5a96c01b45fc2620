"""Conditions on the fields of a chunk, such as `page >= 3 and (source = reports/*.pdf or year in (2022, 2023))`."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from operator import ge, gt, le, lt
from typing import Any

from ragbed.documents.types import FieldValue, normalize

Known = Mapping[str, FieldValue]  # the fields of a chunk

QUOTED = r'"(?:[^"\\]|\\["\\])*"'
FIELD = r'[^\s"<>=!~](?:[^"<>=!~]*[^\s"<>=!~])?'
MARK = re.compile(rf"({QUOTED})|([()])|(?<=\s)(?:and|or)(?=[\s(]|\Z)|(\")", re.IGNORECASE)  # the last is never closed
"""Quoted text, a parenthesis, or a word that joins conditions."""

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,99})(?:\.\d{1,99})?(?:e[+-]?\d{1,3})?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:[t ]\d\d.*)?)?)?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class FilterTerm:
    """A condition on a field of a chunk. `str` returns text that parses to the same condition.

    Case is ignored. A chunk without the field meets only `= none`, `!=` and `!~`.

    Attributes:
        operator: `=` and `!=` accept the wildcards `*` and `?`. `~` means contains, and `!~` does not contain. `<`,
            `<=`, `>` and `>=` compare numbers, dates (2024, 2024-05, 2024-05-31), and other text alphabetically. Dates
            are compared with the condition's precision.
        literal: whether the value was quoted, so that it is text and not a pattern, number, boolean or `none`.
    """

    field: str
    operator: str
    value: str
    literal: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.operator} {self.operand}"

    @property
    def name(self) -> str:
        """The field as written in a filter."""
        bare = re.fullmatch(FIELD, self.field) and not MARK.search(self.field)
        return self.field if bare else quote(self.field)

    @property
    def operand(self) -> str:
        """The value as written in a filter."""
        return quote(self.value) if self.literal else self.value

    def meets(self, value: FieldValue) -> bool:
        """Tell whether a chunk whose field has this value meets the condition."""
        if self.operator in ("!=", "!~"):
            return not FilterTerm(self.field, self.operator[1:], self.value, self.literal).meets(value)
        if value is None:
            return self.operator == "=" and not self.literal and self._wanted == "none"
        text = fold_case(str(value))
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
        """Whether this compares with text that is neither number nor date, as in `> beta`. Numbers never meet it."""
        return self.operator[0] in "<>" and self._number is None and not _DATE.fullmatch(self._wanted)

    @cached_property
    def _wanted(self) -> str:
        return fold_case(self.value)

    @cached_property
    def _number(self) -> float | None:
        return None if self.literal else parse_number(self.value)

    @cached_property
    def _pattern(self) -> str | None:
        return self._wanted.replace("[", "[[]") if not self.literal and {"*", "?"} & set(self.value) else None

    @property
    def is_pattern(self) -> bool:
        """Whether the value has wildcards."""
        return self._pattern is not None


@dataclass(frozen=True)
class AnyOf:
    """A condition that is met if any of its parts is. Parts are distinct, and in alphabetical order."""

    parts: tuple[FilterTerm | AllOf, ...]

    def __str__(self) -> str:
        equal = [part for part in self.parts if isinstance(part, FilterTerm) and part.operator == "="
                 and (part.literal or "," not in part.value)]
        if len(equal) < len(self.parts) or len({part.field for part in equal}) > 1:
            return " or ".join(map(str, self.parts))
        return f"{equal[0].name} in ({', '.join(part.operand for part in equal)})"


@dataclass(frozen=True)
class AllOf:
    """A condition that is met if all of its parts are. Parts are distinct, and in alphabetical order."""

    parts: tuple[FilterTerm | AnyOf, ...]

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, AnyOf) else str(part) for part in self.parts)


Condition = FilterTerm | AnyOf | AllOf


def terms_of(condition: Condition) -> list[FilterTerm]:
    """Return the conditions on single fields inside a condition."""
    return [condition] if isinstance(condition, FilterTerm) else [
        term for part in condition.parts for term in terms_of(part)]


def compile_condition(condition: Condition) -> Callable[[Known], bool]:
    """Return a function that tells whether fields meet a condition. It caches, because many chunks share a value."""
    terms = terms_of(condition)
    equal = isinstance(condition, AnyOf) and {(term.field, term.operator) for term in terms} == {(terms[0].field, "=")}
    if equal or isinstance(condition, FilterTerm):
        # Types are compared too, because 1 == True in Python.
        meets = lru_cache(maxsize=None, typed=True)(_equals_any(terms) if equal else terms[0].meets)
        return lambda known: meets(known.get(terms[0].field))
    tests = [compile_condition(part) for part in condition.parts]
    combine = any if isinstance(condition, AnyOf) else all
    return lambda known: combine(test(known) for test in tests)


def _equals_any(terms: list[FilterTerm]) -> Callable[[FieldValue], bool]:
    """Return a function that tells whether a value meets any of these `=` conditions. Many values take no longer."""
    patterns = [term for term in terms if term.is_pattern]
    texts = {fold_case(term.value) for term in terms if not term.is_pattern}
    numbers = {parse_number(term.value) for term in terms if not term.literal} - {None}
    none = any(term.meets(None) for term in terms)

    def meets(value: FieldValue) -> bool:
        if value is None:
            return none
        return fold_case(str(value)) in texts or parse_number(value) in numbers or any(
            term.meets(value) for term in patterns)

    return meets


def parse_number(value: FieldValue) -> float | None:
    """Return a value as a number. None for booleans, other text, and numbers with leading zeros."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        return (float(value) if {".", "e"} & set(value.lower()) else int(value)) if _NUMBER.fullmatch(value) else None
    return value


def quote(text: str) -> str:
    """Return text in quotes, as in a filter."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def fold_case(text: str) -> str:
    """Return text without case and with composed letters, because file systems compose names differently."""
    return normalize("NFC", text).casefold()
