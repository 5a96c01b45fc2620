"""Self-ask: follow-up questions, each searched and answered before the next (Press et al. 2023, "Measuring and
narrowing the compositionality gap in language models").

Unlike in the paper, the question itself is searched first, follow-ups are answered from documents rather than by a
search engine, no exemplars are needed, and the final answer is a separate call.
"""
from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from ragbed.experiments.guests.agent.reading import ReadTurn
from ragbed.experiments.guests.agent.searching import converse, search_call
from ragbed.strategies.parts.reading import says_nothing, to_query
from ragbed.strategies.reading import fold, strip_thinking
from ragbed.strategies.types import Recipe, Task

_MAX_LENGTH = 20_000  # characters read of a reply
_ASKS = re.compile(r"^[ \t>*#_`-]{0,8}follow[ -]?up(?: question)?(?: ?\d{1,2})?[*_`]{0,3} ?[:：]([^\n]*)\n?",
                   re.IGNORECASE | re.MULTILINE)
_NO_MORE = ("none ", "no more", "no further", "no follow", "nothing more", "not needed")


def self_ask(task: Task, *, iterations: Annotated[int, Field(ge=1, le=10)] = 4) -> Recipe:
    """Ask follow-up questions, search for each and answer it, until none is left."""
    return (yield from converse(task, iterations, "self_ask", follow_up))


def follow_up(text: str) -> ReadTurn:
    """Read the first follow-up question of a reply, and keep the reply up to it, since the model makes up what follows.
    If there is no follow-up line, use the last line if it is a question."""
    text = strip_thinking(text)[:_MAX_LENGTH]
    asked = _ASKS.search(text)
    last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    if asked is None and not last.rstrip().endswith(("?", "？")):
        return ReadTurn(text, why="the reply asks no follow-up question")
    query, kept = (last, text) if asked is None else (asked[1], text[:asked.end()])
    if says_nothing(query) or fold(query[:200]).startswith(_NO_MORE):
        return ReadTurn(kept, why="no follow-up question is left")
    return ReadTurn(kept, search_call(to_query(query)))
