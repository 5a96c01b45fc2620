"""ReAct: a thought, an action, what it brought, and the next thought (Yao et al. 2023, "ReAct: Synergizing reasoning
and acting in language models").

Actions are calls of the tools `search` and `finish` where server and model know tools, and lines of text where not.
Unlike there, the question itself is searched first, no exemplars are needed, several searches of one turn are made at
once, and the answer is asked for after the last action, as every strategy asks for it.
"""
from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from strategies.answering import answer
from strategies.parts.laps import (
    Found,
    Turn,
    as_query,
    begun,
    concluded,
    converse,
    nothing_more,
    opened,
    searched,
    shown,
    went_on,
)
from strategies.parts.tool_calls import MOST_CALLS, Call, calls_of, refuses_tools, said_with, search_tools
from strategies.prompting import fill, numbers, template
from strategies.reading import outside_think
from strategies.types import Asked, Decision, Draft, Failure, Generate, Message, Recipe, Task

Tools = Literal["auto", "native", "text"]

_LONGEST = 20_000  # characters of a reply that are read
_STOP = ("\nResult:", "\nObservation:", "\nDocuments:", "\n<documents>")
_ACTION = re.compile(r"^[ \t>*#_`-]{0,8}(?:action[*_`]{0,3} ?\d{0,2} ?[:：][ \t*_`]{0,4})?"
                     r"(?:(search)[*_`]{0,3} ?[:：(\[]([^\n]*)|(finish)\b[^\n]*)\n?", re.IGNORECASE | re.MULTILINE)


def react(task: Task, *, laps: Annotated[int, Field(ge=1, le=10)] = 4, tools: Tools = "auto") -> Recipe:
    """Thinks and searches in turn, by tool calls or in text, until it has what the answer needs.

    With `tools: auto` calls are tried first. It goes on in text where the server says that it takes no tools, and
    where the first reply calls none, as models do that were never shown them; a model that knows them calls `finish`.
    """
    if task.rules == "closed-book":
        return (yield from answer(task, "chain_of_thought", (), "no_search"))
    found = yield from begun(task)
    draft = None if tools == "text" else (yield from _calling(task, found, laps, tools == "auto"))
    return draft or (yield from converse(task, found, laps, "react", action, _STOP))


def action(text: str) -> Turn:
    """The first action of a reply, and the reply up to it: what follows is what a model makes up."""
    text = outside_think(text)[:_LONGEST]
    act = _ACTION.search(text)
    if act is None:
        return Turn(text, why="the reply holds no action")
    query = as_query(act[2] or "")
    return Turn(text[:act.end()], query, "" if query else "finish" if act[3] else "the search has no words")


def _calling(task: Task, found: Found, laps: int, auto: bool) -> Generator[Asked, Any, Draft | None]:
    """The draft; None where tools are not understood, which `auto` asks to be told."""
    talk = opened(task, found, "react_tools")
    for lap in range(laps):
        reply = yield (call := Generate(talk, "react", numbers(task, found.evidence), tools=search_tools(),
                                        see_failure=auto and not lap))
        if isinstance(reply, Failure) and refuses_tools(reply):
            yield Decision("goes on in text", "the server takes no tools")
            return None
        if isinstance(reply, Failure):  # of another sort: asked again, it ends the question, as any other call's would
            reply = yield replace(call, see_failure=False)
        calls = calls_of(reply, lap)
        if not calls and auto and not lap:
            yield Decision("goes on in text", "the first reply calls no tool")
            return None
        made = calls[:MOST_CALLS]
        queries = [one.query for one in made if one.query]
        if queries:
            found = yield from searched(task, found, queries)
        talk = (*talk, said_with(reply, made), *_results(task, made, found, len(calls) - len(made)))
        if not calls or any(one.ends for one in made):
            yield Decision("stops", "finish is called" if calls else "the reply calls no tool")
            break
        if found.over:
            yield nothing_more(lap)
            break
        yield went_on(lap, laps, found) if queries else Decision("goes on", f"lap {lap + 1}: no call could be read")
    return (yield from concluded(task, talk, found.evidence, tools=search_tools()))


def _results(task: Task, calls: Sequence[Call], found: Found, left_out: int) -> Iterator[Message]:
    """What each call brought, or why it brought nothing."""
    news = iter(found.news)
    for place, call in enumerate(calls, start=1):
        text = template("tool_finished" if call.ends else "tool_unread")
        brought = shown(task, next(news)) if call.query else text
        more = left_out and place == len(calls)
        note = (fill("tool_too_many", count=str(left_out), most=str(MOST_CALLS)),) if more else ()
        yield Message("tool", (brought, *note), call_id=call.id)
