"""Rules that say which documents a key may read, such as `public == true or groups in key.groups`.

A rule is a filter (`retrieval.filters`) that may compare fields with the claims of the key. It has no negations, so a
missing field or claim never allows anything. It is data: nothing in it is executed.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ragbed.documents.errors import SettingsError
from ragbed.documents.types import FieldValue
from ragbed.experiments.guests.access.key_claims import CLAIM, Claims, split_values
from ragbed.retrieval.filters.parser import parse_conditions
from ragbed.retrieval.filters.terms import QUOTED, AllOf, AnyOf, Condition, FilterTerm, parse_number, terms_of

Fields = Mapping[str, FieldValue]  # fields of a document

_CLAIM = re.compile(rf"key\.({CLAIM})", re.ASCII)
_LISTED = re.compile(rf"{QUOTED}|\bin\s+(key\.[\w-]+)", re.IGNORECASE)
_CHUNK_FIELDS = ("title", "format", "page", "document")  # known of every chunk, but not given by the operator
_FORM = "write a condition such as `groups in key.groups` or `public == true or owner == key.name`"


@dataclass(frozen=True)
class AccessRule:
    """A rule. `text` is as the operator wrote it."""

    text: str
    conditions: tuple[Condition, ...]

    @classmethod
    def parse(cls, text: str) -> AccessRule:
        """Read a rule. Raises SettingsError, with what to write instead, if it is malformed or has a negation."""
        try:
            # the grammar of filters has lists in parentheses only
            read = parse_conditions(_LISTED.sub(lambda found: f"in ({found[1]})" if found[1] else found[0], text))
        except SettingsError as error:
            raise SettingsError(f"allow: {str(error).removeprefix('where: ')}") from error
        for term in (term for one in read for term in terms_of(one)):
            _check_term(term)
        return cls(text, tuple(read))

    @cached_property
    def claims(self) -> frozenset[str]:
        """The claims that the rule names."""
        return frozenset(name for term in self._terms for name in (_claim(term.field), _value_claim(term)) if name)

    @cached_property
    def fields(self) -> frozenset[str]:
        """The fields of documents that the rule names."""
        return frozenset(term.field for term in self._terms if not _claim(term.field))

    @cached_property
    def _listed(self) -> frozenset[str]:
        """The fields whose values are compared with those of a claim."""
        return frozenset(term.field for term in self._terms if term.operator == "=" and _value_claim(term))

    @property
    def _terms(self) -> list[FilterTerm]:
        return [term for one in self.conditions for term in terms_of(one)]

    def malformed(self, fields: Fields) -> str | None:
        """Return a field of a document whose value the rule cannot read. Such a document is visible to no key."""
        return next((name for name in sorted(self._listed) if split_values(fields.get(name)) is None), None)

    def allows(self, fields: Fields, claims: Claims) -> bool:
        """Tell whether a key with these claims may read a document with these fields."""
        return self.malformed(fields) is None and all(_meets(one, fields, claims) for one in self.conditions)


def check_rule(rule: Any) -> str:
    """Tells `ragbed serve` who may read which documents, as in `groups in key.groups`."""
    try:
        return AccessRule.parse(str(rule)).text
    except SettingsError as error:
        raise ValueError(str(error).removeprefix("allow: ")) from error


def _claim(text: str) -> str | None:
    found = _CLAIM.fullmatch(text)
    return found and found[1]


def _value_claim(term: FilterTerm) -> str | None:
    return None if term.literal else _claim(term.value)


def _check_term(term: FilterTerm) -> None:
    if term.operator in ("!=", "!~") or term.meets(None):
        raise SettingsError(f"allow: {term}: a rule says what is allowed, so it has no negation and no `none`; {_FORM}")
    for text in (term.field, "" if term.literal else term.value):
        if text.casefold().startswith("key.") and not _claim(text):
            raise SettingsError(f"allow: {term}: {text!r:.60} is not a claim of a key; {_FORM}")
    if _claim(term.field) and (_value_claim(term) or term.operator != "=" or term.is_pattern):
        raise SettingsError(f"allow: {term}: compare a claim with a value, as in `key.role == auditor`; {_FORM}")
    if _value_claim(term) and term.operator == "~":
        raise SettingsError(f"allow: {term}: a part of a value is not enough for a claim; {_FORM}")
    if term.field in _CHUNK_FIELDS:
        raise SettingsError(f"allow: {term}: documents state their own {term.field}; use `source`, or a field of "
                            "`ragbed index --metadata`")


def _meets(condition: Condition, fields: Fields, claims: Claims) -> bool:
    if isinstance(condition, AllOf):
        return all(_meets(part, fields, claims) for part in condition.parts)
    if isinstance(condition, AnyOf):
        return any(_meets(part, fields, claims) for part in condition.parts)
    if name := _claim(condition.field):
        return condition.value in claims.get(name, ())
    value, wanted = fields.get(condition.field), _value_claim(condition)
    if wanted is None:
        parts = value.split(",") if isinstance(value, str) and condition.field != "source" else ()
        return value is not None and (condition.meets(value) or any(condition.meets(part.strip()) for part in parts))
    if condition.operator == "=":
        return not claims.get(wanted, frozenset()).isdisjoint(split_values(value) or ())
    if parse_number(value) is None:
        return False
    numbers = (one for one in claims.get(wanted, ()) if parse_number(one) is not None)
    return any(FilterTerm(condition.field, condition.operator, one).meets(value) for one in numbers)
