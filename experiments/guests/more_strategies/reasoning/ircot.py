"""IRCoT: search with each thought, and let the results lead to the next thought (Trivedi et al. 2023, "Interleaving
retrieval with chain-of-thought reasoning for knowledge-intensive multi-step questions").

Unlike in the paper, no exemplars are needed, and searching also ends when it finds nothing new. The answer comes from
the same conversation, which shows everything found, not from a separate prompt.
"""
from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from ragbed.experiments.guests.agent.reading import ReadTurn
from ragbed.experiments.guests.agent.searching import converse, search_call
from ragbed.strategies.parts.reading import to_query
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Recipe, Task

_MAX_THOUGHT = 600  # characters
_OPENS = r"(?:^|[,;:.]|\b(?:so|thus|therefore|hence|that))[, ]{0,3}"
_UNKNOWN = r"(?: (?:not|unknown|unclear|uncertain|undetermined|still|yet|missing|to be)\b)"
_ANSWERS = re.compile(rf"{_OPENS}the (?:final )?answer(?: to the question)? is\b(?!{_UNKNOWN})"
                      r"|^(?:the )?(?:final )?answer ?[:：]|\bis the (?:final )?answer[\s\d.!*\[\]]*$|<answer>"
                      r"|(?:정답|답)은|答案(?:是|为|為)", re.IGNORECASE)
_NAME = r"(?:next )?(?:step|thought)(?: ?\d{1,2})?[*_]{0,2} ?[:：.]"
_MARK = re.compile(rf"\s*(?:[-*>#]+ )?[*_]{{0,2}}(?:{_NAME}|\d{{1,2}}[.)])?[*_]{{0,2}}\s*", re.IGNORECASE)


def ircot(task: Task, *, iterations: Annotated[int, Field(ge=1, le=10)] = 4) -> Recipe:
    """Think one step, search with it, and think the next, until a step gives the answer."""
    return (yield from converse(task, iterations, "ircot", thought))


def thought(text: str) -> ReadTurn:
    """Read the first line with content as the next search, unless it gives the answer."""
    lines = strip_thinking(text)[:20 * _MAX_THOUGHT].splitlines()
    bare = (_bare(line) for line in lines)
    step = next((line for line in bare if any(map(str.isalnum, line)) and not line.endswith((":", "："))), "")
    if not step:
        return ReadTurn("", why="the reply holds no thought")
    if _ANSWERS.search(step):
        return ReadTurn(step, why="the thought holds the answer")
    return ReadTurn(step, search_call(to_query(step)))


def _bare(line: str) -> str:
    mark = _MARK.match(line)
    return line[mark.end() if mark else 0:][:_MAX_THOUGHT].strip()
