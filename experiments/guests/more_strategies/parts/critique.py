"""Read what a model finds wrong with a draft, and mark the draft that was revised after it."""
from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ragbed.strategies.parts.reading import begins_with_nothing, says_nothing, to_query
from ragbed.strategies.reading import fold, read_answer
from ragbed.strategies.types import Draft

_MAX_REPLY, _MAX_FAULT, _MAX_FAULTS, _MAX_QUERIES = 50_000, 500, 6, 3  # characters; numbers per reply
_MARK = r"[\s>#*_•-]{0,8}(?:\(?\d{1,2}[.)]\s?)?[*_]{0,3}"
_COLON = r"\s?\d{0,2}[*_]{0,3}\s?[:：]"
_FAULT = re.compile(rf"{_MARK}(?:faults?|errors?|problems?|issues?|missing){_COLON}", re.IGNORECASE)
_QUERY = re.compile(rf"{_MARK}(?:search(?: for)?|query|look (?:for|up)){_COLON}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Critique:
    """The result of checking a draft. The draft is accepted if there are neither faults nor queries."""

    faults: tuple[str, ...] = ()  # to correct, each on one line
    queries: tuple[str, ...] = ()  # missing information to search for


def read_critique(text: str, question: str) -> Critique:
    """Read the lines `Fault: ...` and `Search: ...` of a reply.

    A reply without such lines is one fault, unless it begins with "none". A search for the question itself is ignored.
    """
    lines = read_answer(text[:_MAX_REPLY])[0].splitlines()
    faults, queries = _after(_FAULT, lines), [to_query(one) for one in _after(_QUERY, lines)]
    if not any(map(_FAULT.match, lines)) and not any(queries):
        said = "\n".join(line for line in lines if not _QUERY.match(line))
        faults = [] if begins_with_nothing(said) else [said]
    asked = {fold(query): query for query in reversed(queries) if fold(query) not in ("", fold(question))}
    return Critique(tuple(" ".join(one.split())[:_MAX_FAULT] for one in faults if fold(one))[:_MAX_FAULTS],
                    tuple(reversed(asked.values()))[:_MAX_QUERIES])


def _after(mark: re.Pattern[str], lines: list[str]) -> list[str]:
    said = [line[found.end():].strip(" *_") for line in lines if (found := mark.match(line))]
    return [one for one in said if not says_nothing(one)]


def mark_revised(before: Draft, after: Draft, **figures: float) -> Draft:
    """Return the later draft with the notes and figures of both. The figure `revised` is 1.0 if their texts differ."""
    changed = {"revised": float(fold(before.text) != fold(after.text))}
    return replace(after, notes=tuple(dict.fromkeys([*before.notes, *after.notes])),
                   figures={**before.figures, **after.figures, **figures, **changed})
