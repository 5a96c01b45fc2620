"""ReAct: a thought, an action, what it brought, and the next thought (Yao et al. 2023, "ReAct: Synergizing reasoning
and acting in language models").

Actions are calls of the tools `search` and `finish` where server and model know tools, and lines of text where not.
Unlike there, the question itself is searched first, no exemplars are needed, several searches of one turn are made at
once, and the answer is asked for after the last action, as every strategy asks for it. The paper's third action, to
look a word up in the page last found, is missing: what is found is shown whole.
"""
from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from ragbed.strategies.parts.conversation import ReadTurn, converse
from ragbed.strategies.parts.reading import to_query
from ragbed.strategies.parts.tool_calls import call_tools
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Recipe, Task

Tools = Literal["auto", "native", "text"]

_LONGEST = 20_000  # characters of a reply that are read
_STOP = ("\nResult:", "\nObservation:", "\nDocuments:", "\n<documents>")
_ACTION = re.compile(r"^[ \t>*#_`-]{0,8}(?:action[*_`]{0,3} ?\d{0,2} ?[:：][ \t*_`]{0,4})?"
                     r"(?:(search)[*_`]{0,3} ?[:：(\[]([^\n]*)|(finish)\b[^\n]*)\n?", re.IGNORECASE | re.MULTILINE)


def react(task: Task, *, iterations: Annotated[int, Field(ge=1, le=10)] = 4, tools: Tools = "auto") -> Recipe:
    """Thinks and searches in turn, by tool calls or in text, until it has what the answer needs.

    With `tools: auto` calls are tried first. It goes on in text where the server says that it takes no tools, and
    where the first reply calls none, as models do that were never shown them; a model that knows them calls `finish`.
    """
    calls = None if tools == "text" else partial(call_tools, task, iterations=iterations, auto=tools == "auto")
    return (yield from converse(task, iterations, "react", action, _STOP, calls))


def action(text: str) -> ReadTurn:
    """Return the first action of a reply, and the reply up to it: what follows is what a model makes up."""
    text = strip_thinking(text)[:_LONGEST]
    act = _ACTION.search(text)
    if act is None:
        return ReadTurn(text, why="the reply holds no action")
    query = to_query(act[2] or "")
    return ReadTurn(text[:act.end()], query, "" if query else "finish" if act[3] else "the search has no words")
