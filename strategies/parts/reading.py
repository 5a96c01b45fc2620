"""Read short replies: a list of questions, a query, a grade, or "none".

"None" (no fault, no further question) is recognized in English, Korean and Chinese. A reply which says that something
is missing (`no citation`, `출처 없음`) is a fault, not "none".
"""
from __future__ import annotations

import re
import tomllib
from importlib import resources
from typing import Literal

from ragbed.strategies.prompting import neutralize_turns
from ragbed.strategies.reading import fold, read_answer, strip_citations

MAX_QUERY = 400
_MAX_LENGTH = 200  # only this many characters are checked
_SAID = tomllib.loads(resources.files("ragbed.strategies.parts").joinpath("nothing.toml").read_text(encoding="utf-8"))
_WHOLE = re.compile("|{short}|{says_so}{english}|{korean}|{chinese}".format_map(_SAID))
_FIRST = re.compile("(?:{says_so}{none}|{korean}|{chinese})(?!\\w)".format_map(_SAID))


def says_nothing(text: str) -> bool:
    """Return whether a text only says "none". An empty text counts too."""
    return len(text) <= _MAX_LENGTH and bool(_WHOLE.fullmatch(fold(text)))


def begins_with_nothing(text: str) -> bool:
    """Return whether a text begins with "none". `No` and `nothing` alone do not count: they may begin any sentence."""
    return bool(_FIRST.match(fold(text[:_MAX_LENGTH])))


NO_ANSWER = "(no answer)"  # shown in prompts for a draft without an answer


Grade = Literal[0, 1, 2, 3]
LOWEST: Grade = 0
_GRADES: dict[str, Grade] = {"0": 0, "1": 1, "2": 2, "3": 3}
_EMPHASIS = r"[\s*_`#>:：=\"'()\[\]{}.]{0,8}"
_GRADE = rf"(?:(?:\d[.)]\s{{1,3}}(?=\D))?{_EMPHASIS}(?:relevance |final )?grade{_EMPHASIS})?([0-3])(?: ?/ ?3)?"
_LINE = re.compile(_EMPHASIS + _GRADE + _EMPHASIS, re.IGNORECASE)


def read_grade(text: str) -> Grade | None:
    """Read a grade, 0 to 3 as in the TREC Deep Learning track; None unless exactly one has its own line."""
    found = {match[1] for line in text.splitlines() if (match := _LINE.fullmatch(line.strip()))}
    return _GRADES[found.pop()] if len(found) == 1 else None


MAX_LINES = 6
_MAX_LINE, _MAX_LIST = 1_000, 50_000  # largest line and list, in characters; a longer line is not a question
# Only space or a mark may follow: `3.5 million`, `U.S.` and `-5 degrees` do not begin a list.
_NUMBERING = re.compile(
    r"(?:\s+|\*+|•|(?:[-–—]|\#{1,6}|\(?(?:\d{1,2}|[a-z])\)|\d{1,2}[.:]|q\d{1,2}\s?[.:)]"
    r"|(?:sub-?)?(?:question|query)(?:\s?\d{1,2})?\s?[.:)])(?=[\s*]|\Z))+", re.IGNORECASE)


def read_list(text: str, asked: str, most: int = MAX_LINES) -> list[str]:
    """Read up to `most` lines of a reply, without thinking, numbering, repeats and the text `asked`.

    Lines that end in a colon (headings), say "none", or exceed 1,000 characters are dropped.
    """
    found: dict[str, str] = {}
    for line in read_answer(text)[0][:_MAX_LIST].splitlines():
        if len(line) > _MAX_LINE:
            continue
        mark = _NUMBERING.match(line)
        bare = neutralize_turns(line[mark.end() if mark else 0:]).strip().rstrip("*").rstrip()
        key = fold(bare)
        if not says_nothing(bare) and key != fold(asked) and not bare.endswith((":", "：")):
            found.setdefault(key, bare)
    return list(found.values())[:most]


def to_query(text: str) -> str:
    """Turn a text into a query: one line of at most 400 characters, without citations and surrounding quotes."""
    line = " ".join(strip_citations(neutralize_turns(text[:4 * MAX_QUERY])).split())
    return line.strip("\"'`*<>[]() ")[:MAX_QUERY]
