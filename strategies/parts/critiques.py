"""Reading what a check of a draft found: its faults, and what to search for."""
from __future__ import annotations

import re
from dataclasses import dataclass

from strategies.parts.laps import as_query
from strategies.parts.nothing import begins_with_nothing, says_nothing
from strategies.reading import fold, read_answer

_LONGEST_REPLY, _LONGEST_FAULT, _MOST_FAULTS, _MOST_QUERIES = 50_000, 500, 6, 3  # characters; of a reply
_MARK = r"[\s>#*_•-]{0,8}(?:\(?\d{1,2}[.)]\s?)?[*_]{0,3}"
_COLON = r"\s?\d{0,2}[*_]{0,3}\s?[:：]"
_FAULT = re.compile(rf"{_MARK}(?:faults?|errors?|problems?|issues?|missing){_COLON}", re.IGNORECASE)
_QUERY = re.compile(rf"{_MARK}(?:search(?: for)?|query|look (?:for|up)){_COLON}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Critique:
    """What a check found; a draft is accepted where there is neither.

    Attributes:
        faults: what is to be mended, each on one line.
        queries: what is missing, to be searched for.
    """

    faults: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()


def read_critique(text: str, question: str) -> Critique:
    """The lines `Fault: ...` and `Search: ...` of a reply.

    What else a reply says that has no such lines is one fault, unless it begins by saying that there is none. To
    search for the question itself once more is no query.
    """
    lines = read_answer(text[:_LONGEST_REPLY])[0].splitlines()
    faults, queries = _after(_FAULT, lines), [as_query(one) for one in _after(_QUERY, lines)]
    if not any(map(_FAULT.match, lines)) and not any(queries):
        said = "\n".join(line for line in lines if not _QUERY.match(line))
        faults = [] if begins_with_nothing(said) else [said]
    asked = {fold(query): query for query in reversed(queries) if fold(query) not in ("", fold(question))}
    return Critique(tuple(" ".join(one.split())[:_LONGEST_FAULT] for one in faults if fold(one))[:_MOST_FAULTS],
                    tuple(reversed(asked.values()))[:_MOST_QUERIES])


def _after(mark: re.Pattern[str], lines: list[str]) -> list[str]:
    """What lines say behind a mark, those that say that there is nothing left out."""
    said = [line[found.end():].strip(" *_") for line in lines if (found := mark.match(line))]
    return [one for one in said if not says_nothing(one)]
