"""ReAct: a thought, an action, its result, and the next thought (Yao et al. 2023, "ReAct: Synergizing reasoning
and acting in language models").

It is the agent with `search` alone, in the paper's form. Unlike in the paper, the question itself is searched first, no
exemplars are needed, searches of the same turn run in parallel, and a separate call asks for the answer. The paper's
third action, looking up a word in the last page, is not needed: results are shown in full.
"""
from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ragbed.experiments.guests.agent.protocols import STOP, ProtocolName
from ragbed.experiments.guests.agent.reading import MAX_TEXT, ReadTurn, action_pattern
from ragbed.experiments.guests.agent.searching import SEARCH, converse, search_call
from ragbed.strategies.parts.reading import to_query
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Recipe, Task


def react(task: Task, *, iterations: Annotated[int, Field(ge=1, le=10)] = 4, tools: ProtocolName = "auto") -> Recipe:
    """Think and search in turn, by tool calls or in text, until the answer is known.

    `tools: auto` tries tool calls first. It continues in text if the server does not support tools, or if the first
    reply calls none, since a model that supports tools would at least call `finish`.
    """
    return (yield from converse(task, iterations, "react", read_action, STOP, tools))


def read_action(text: str) -> ReadTurn:
    """Read the first action of a reply, and keep the reply up to it, since the model makes up what follows."""
    text = strip_thinking(text)[:MAX_TEXT]
    act = action_pattern((SEARCH,)).search(text)
    if act is None:
        return ReadTurn(text, why="the reply holds no action")
    calls = search_call(to_query(act[3] or ""))
    return ReadTurn(text[:act.end()], calls, "finish" if act[4] else "the search has no words")
