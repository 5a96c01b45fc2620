"""Reading a list of questions or queries, one on a line, in the forms that models write one."""
from __future__ import annotations

import re

from strategies.framing import without_turns
from strategies.parts.nothing import says_nothing
from strategies.reading import fold, read_answer

MOST_LINES = 6
_LONGEST_LINE, _LONGEST_LIST = 1_000, 50_000  # characters; a longer line is no question
# Nothing may follow but space or a mark: `3.5 million`, `U.S.` and `-5 degrees` begin no list.
_NUMBERING = re.compile(
    r"(?:\s+|\*+|•|(?:[-–—]|\#{1,6}|\(?(?:\d{1,2}|[a-z])\)|\d{1,2}[.:]|q\d{1,2}\s?[.:)]"
    r"|(?:sub-?)?(?:question|query)(?:\s?\d{1,2})?\s?[.:)])(?=[\s*]|\Z))+", re.IGNORECASE)


def listed(text: str, asked: str, most: int = MOST_LINES) -> list[str]:
    """The lines of a reply, `most` of them, without its thinking, numbering, repeats and what was asked itself.

    Headings, which end in a colon, are dropped, and what says that there is none; and so are lines of more than 1,000
    characters: the model does not ask in them, and each would be repeated in every later prompt.
    """
    found: dict[str, str] = {}
    for line in read_answer(text)[0][:_LONGEST_LIST].splitlines():
        if len(line) > _LONGEST_LINE:
            continue
        bare = _bare(line)
        key = fold(bare)
        if not says_nothing(bare) and key != fold(asked) and not bare.endswith((":", "：")):
            found.setdefault(key, bare)
    return list(found.values())[:most]


def _bare(line: str) -> str:
    """The line without its list mark, number and emphasis, however they are nested."""
    mark = _NUMBERING.match(line)
    return without_turns(line[mark.end() if mark else 0:]).strip().rstrip("*").rstrip()
