"""ReAct: a thought, an action, its result, and the next thought (Yao et al. 2023, "ReAct: Synergizing reasoning
and acting in language models").

Actions are calls of the tools `search` and `finish` if both server and model support tools, and lines of text
otherwise. Unlike in the paper, the question itself is searched first, no exemplars are needed, searches of the same
turn run in parallel, and a separate call asks for the answer. The paper's third action, looking up a word in the last
page, is not needed: results are shown in full.
"""
from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from ragbed.experiments.guests.more_strategies.parts.tool_calls import call_tools
from ragbed.strategies.parts.conversation import ReadTurn, converse
from ragbed.strategies.parts.reading import to_query
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Recipe, Task

Tools = Literal["auto", "native", "text"]

_MAX_LENGTH = 20_000  # only this many characters of a reply are read
_STOP = ("\nResult:", "\nObservation:", "\nDocuments:", "\n<documents>")
_ACTION = re.compile(r"^[ \t>*#_`-]{0,8}(?:action[*_`]{0,3} ?\d{0,2} ?[:：][ \t*_`]{0,4})?"
                     r"(?:(search)[*_`]{0,3} ?[:：(\[]([^\n]*)|(finish)\b[^\n]*)\n?", re.IGNORECASE | re.MULTILINE)


def react(task: Task, *, iterations: Annotated[int, Field(ge=1, le=10)] = 4, tools: Tools = "auto") -> Recipe:
    """Think and search in turn, by tool calls or in text, until the answer is known.

    `tools: auto` tries tool calls first. It continues in text if the server does not support tools, or if the first
    reply calls none, since a model that supports tools would at least call `finish`.
    """
    calls = None if tools == "text" else partial(call_tools, task, iterations=iterations, auto=tools == "auto")
    return (yield from converse(task, iterations, "react", action, _STOP, calls))


def action(text: str) -> ReadTurn:
    """Read the first action of a reply, and keep the reply up to it, since the model makes up what follows."""
    text = strip_thinking(text)[:_MAX_LENGTH]
    act = _ACTION.search(text)
    if act is None:
        return ReadTurn(text, why="the reply holds no action")
    query = to_query(act[2] or "")
    return ReadTurn(text[:act.end()], query, "" if query else "finish" if act[3] else "the search has no words")
