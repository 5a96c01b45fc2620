"""Parse filters, such as `page >= 3 and (source = reports/*.pdf or year in (2022, 2023))`."""
from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Annotated, Any, cast

from pydantic import BeforeValidator

from ragbed.documents.errors import SettingsError
from ragbed.retrieval.filters.terms import FIELD, MARK, QUOTED, AllOf, AnyOf, Condition, FilterTerm, terms_of

_MAX_LENGTH, _MAX_TERM = 100_000, 2_000  # maximum characters of a filter, and of one condition or value
_MAX_TERMS, _MAX_DEPTH = 1_000, 16  # maximum conditions in a filter, and levels of parentheses
_OPERATOR = r"!=|!~|<=|>=|==|=|<|>|~"
_BARE = r'[^\s"<>=~][^"<>=~]*'
_VALUE = re.compile(rf"{QUOTED}|{_BARE}", re.DOTALL)
_CONDITION = re.compile(
    rf"(?P<field>{QUOTED}|{FIELD})\s*(?P<operator>{_OPERATOR})\s*(?P<value>{QUOTED}|{_BARE})", re.DOTALL)
_WORD = re.compile(r"\s*(?:(?<=[\s)])(and|or)(?=[\s(]|\Z)\s*)?", re.IGNORECASE)
_SPACES = re.compile(r"\s*")
_LISTED = re.compile(rf'({QUOTED}|[^"<>=!~()\[\]]+?)\s+(not\s+)?in\s*', re.IGNORECASE)
_ITEM = re.compile(rf'\s*({QUOTED}|[^,"]*?)\s*(?:,|\Z)')
_FORM = ("expected a condition such as `page >= 3 and source = reports/*.pdf` or `year in (2022, 2023)` (operators: = "
         "!= < <= > >= ~ !~ in; quote a value that contains an operator, a parenthesis, `and` or `or`)")


def parse_conditions(where: Any) -> list[Condition]:
    """Parse a filter into conditions, all of which must be met.

    A filter is text, a list of texts, or a mapping of fields, as in `{year: ">= 2022", format: plain}`. A list in a
    mapping gives several conditions on one field, and `{year: {in: [2022, 2023]}}` lists values. `{or: [...]}` has a
    list of filters, any of which must be met. Raises SettingsError if a filter is malformed or too long.
    """
    read = _parse_where(where)
    if sum(len(terms_of(condition)) for condition in read) > _MAX_TERMS:
        raise SettingsError(f"where: more than {_MAX_TERMS:,} conditions or values; use a pattern such as reports/*")
    return read


def normalise_filter(where: Any) -> tuple[str, ...]:
    """Return the distinct conditions of a filter in alphabetical order. Raises SettingsError like `parse_conditions`.
    """
    parts = [part for one in parse_conditions(where) for part in (one.parts if isinstance(one, AllOf) else (one,))]
    return tuple(sorted(set(map(str, parts))))


def _validate(where: Any) -> tuple[str, ...]:
    try:
        return normalise_filter(where)
    except SettingsError as error:
        raise ValueError(str(error).removeprefix("where: ")) from error


Where = Annotated[tuple[str, ...], BeforeValidator(_validate, json_schema_input_type=str | list[str] | dict[str, Any])]
"""A normalised filter in settings."""


class _Parser:
    """Parses text: conditions joined by `and` and `or`, of which `and` binds tighter, and parentheses."""

    def __init__(self, text: str) -> None:
        if len(text) > _MAX_LENGTH:
            raise SettingsError(f"where: {text[:40]}...: {len(text):,} characters; at most {_MAX_LENGTH:,} are allowed")
        self._text, self._at = text, 0

    def parse(self) -> Condition:
        found = self._join(0)
        if self._at < len(self._text):
            raise SettingsError(f"where: {self._text[self._at:][:40]!r}: unexpected parenthesis; {_FORM}")
        return found

    def _join(self, depth: int) -> Condition:
        """Read conditions up to the end of the text, or of these parentheses."""
        groups = [[self._read(depth)]]
        while (word := cast(re.Match[str], _WORD.match(self._text, self._at)))[1]:
            self._at = word.end()
            if word[1].lower() == "or":
                groups.append([])
            groups[-1].append(self._read(depth))
        self._at = word.end()
        return _join(AnyOf, [_join(AllOf, group) for group in groups])

    def _read(self, depth: int) -> Condition:
        start = self._at = cast(re.Match[str], _SPACES.match(self._text, self._at)).end()
        if not self._text.startswith("(", start):
            self._at = self._end()
            return _read_term(self._text[start:self._at].strip())
        if depth == _MAX_DEPTH:
            raise SettingsError(f"where: more than {_MAX_DEPTH} levels of parentheses; simplify the filter")
        self._at += 1
        found = self._join(depth + 1)
        if not self._text.startswith(")", self._at):
            raise SettingsError(f"where: {self._text[start:][:40]!r}: a parenthesis is not closed; {_FORM}")
        self._at += 1
        return found

    def _end(self) -> int:
        """Return where a condition ends: before `and`, `or`, or a parenthesis that it does not open."""
        level = 0
        for mark in MARK.finditer(self._text, self._at):
            if mark[3]:
                break
            if mark[2]:
                level += 1 if mark[2] == "(" else -1
            if level < 0 or (level == 0 and not mark[1] and not mark[2]):
                return mark.start()
        return len(self._text)


def _read_term(part: str) -> Condition:
    opening = min((at for at in map(part.find, "([") if at >= 0), default=0)
    listed = _LISTED.fullmatch(part[:opening]) if 0 < opening <= _MAX_TERM and part[-1] in ")]" else None
    if listed is None:
        return _read_simple(part)
    text = part[opening + 1:-1]
    items = list(_ITEM.finditer(text))
    if len(items) > 1 and not items[-1][1]:
        items.pop()  # the end of the text is an empty item
    field, operator = _plain(listed[1]), "!=" if listed[2] else "="
    if sum(len(item[0]) for item in items) < len(text) or not all(_VALUE.fullmatch(item[1]) for item in items):
        raise SettingsError(f"where: {part[:80]!r}: {_FORM}")
    return _join(AllOf if listed[2] else AnyOf, [_field_term(field, operator, item[1]) for item in items])


def _read_simple(part: str) -> FilterTerm:
    if len(part) > _MAX_TERM:
        raise SettingsError(f"where: {part[:40]}...: {len(part):,} characters; at most {_MAX_TERM:,} are allowed")
    match = _CONDITION.fullmatch(part)
    bare = "" if match is None or match["value"].startswith('"') else match["value"]
    if match is None or _unbalanced(bare):
        raise SettingsError(f"where: {part[:200]!r}: {_FORM}")
    return _condition(_plain(match["field"]), match["operator"], match["value"])


def _unbalanced(value: str) -> bool:
    levels = list(accumulate(1 if one == "(" else -1 for one in value if one in "()"))
    return bool(levels) and (min(levels) < 0 or levels[-1] != 0)


def _condition(field: str, operator: str, value: str) -> FilterTerm:
    literal = re.fullmatch(QUOTED, value, re.DOTALL) is not None
    return FilterTerm(field, "=" if operator == "==" else operator, _plain(value), literal)


def _parse_where(where: Any, depth: int = 0) -> list[Condition]:
    if depth > _MAX_DEPTH:
        raise SettingsError(f"where: more than {_MAX_DEPTH} levels of `or`; simplify the filter")
    if isinstance(where, str):
        where = [where]
    if isinstance(where, Mapping):
        return [condition for field, wanted in where.items() for condition in _parse_field(field, wanted, depth)]
    if isinstance(where, list | tuple) and all(isinstance(text, str) for text in where):
        return [_Parser(text).parse() for text in where]
    raise SettingsError(f"where: expected a mapping from fields to values, or a condition; {_FORM}")


def _parse_field(field: Any, wanted: Any, depth: int) -> Iterator[Condition]:
    if field == "or" and isinstance(wanted, list | tuple) and wanted:
        either = [_parse_where(one, depth + 1) for one in wanted]
        if not all(either):
            raise SettingsError("where: or: expected a condition in each filter of the list, not an empty one")
        yield _join(AnyOf, [_join(AllOf, one) for one in either])
        return
    if not isinstance(field, str) or not field.strip():
        raise SettingsError(f"where: {field!r}: expected a field name")
    if isinstance(wanted, Mapping):
        operator, values = next(iter(wanted.items())) if len(wanted) == 1 else ("", ())
        if operator not in ("in", "not in") or not isinstance(values, list | tuple) or not values:
            raise SettingsError(f"where: {field}: expected a value, or a list of values as in {{in: [2022, 2023]}}")
        terms = [_field_term(field, "=" if operator == "in" else "!=", _value_text(field, one)) for one in values]
        yield _join(AnyOf if operator == "in" else AllOf, terms)
        return
    for each in wanted if isinstance(wanted, list | tuple) else [wanted]:
        text = _value_text(field, each)
        match = re.match(rf"\s*({_OPERATOR})\s*", text)
        yield _field_term(field, match[1] if match else "=", text[match.end() if match else 0:].strip())


def _value_text(field: str, value: Any) -> str:
    text = value if isinstance(value, str) else _format_value(value)
    if text is None or not text.strip() or len(text) > _MAX_TERM:
        raise SettingsError(f"where: {field}: expected a value, or an operator and a value, as in '>= 2022'")
    return text


def _format_value(value: Any) -> str | None:
    """Return a YAML value as text; None for values that a field cannot have."""
    if isinstance(value, int) and abs(value) >= 10 ** 100:
        return None
    return str(value).lower() if value is None or isinstance(value, int | float | datetime.date) else None


def _field_term(field: str, operator: str, value: str) -> FilterTerm:
    if re.fullmatch(QUOTED, value, re.DOTALL):
        return _condition(field, operator, value)
    bare, quoted = (FilterTerm(field, operator.replace("==", "="), value, literal) for literal in (False, True))
    try:
        reads_back = _Parser(str(bare)).parse() == bare
    except SettingsError:
        reads_back = False
    if not reads_back and ({"*", "?"} & set(value) or not value):
        raise SettingsError(f"where: {field}: {value!r}: expected a value; a pattern cannot contain operators or "
                            "`and`: use ? for each of these characters")
    return bare if reads_back else quoted


def _join(kind: type[AnyOf] | type[AllOf], parts: Iterable[Condition]) -> Condition:
    """Combine conditions, and merge parts of the same kind. A single condition is returned as it is."""
    merged = {one for part in parts for one in (part.parts if isinstance(part, kind) else (part,))}
    ordered: Any = tuple(sorted(merged, key=str))
    return ordered[0] if len(ordered) == 1 else kind(ordered)


def _plain(token: str) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.DOTALL) if token.startswith('"') else token.strip()
