"""Laps of calling tools and searching in one conversation: `parts.laps` for models that know tools."""
from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from strategies.parts.laps import Found, concluded, opened, searched, went_on
from strategies.parts.tool_calls import MOST_CALLS, Call, calls_of, refuses_tools, said_with, search_tools
from strategies.prompting import fill, numbers, template
from strategies.types import Asked, Decision, Draft, Failure, Generate, Message, Task


def calling(task: Task, found: Found, laps: int, auto: bool) -> Generator[Asked, Any, Draft | None]:
    """The draft; None where tools are not understood, which is asked for with `auto` alone.

    Args:
        found: by the first search.
        auto: whether a server that takes no tools, and a first reply that calls none, are looked out for.
    """
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
        talk = (*talk, said_with(reply, made), *_results(made, found, len(calls) - len(made)))
        if not calls or any(one.ends for one in made):
            yield Decision("stops", "finish is called" if calls else "the reply calls no tool")
            break
        unread = Decision("goes on", f"lap {lap + 1}: no call could be read")
        yield went_on(task, lap, laps, found) if queries else unread
        if found.over:
            break
    return (yield from concluded(task, talk, found.evidence, tools=search_tools()))


def _results(calls: Sequence[Call], found: Found, left_out: int) -> Iterator[Message]:
    """What each call brought, or why it brought nothing."""
    texts = iter(found.texts)
    for place, call in enumerate(calls, start=1):
        text = template("tool_finished" if call.ends else "tool_unread")
        brought = next(texts) if call.query else text
        more = left_out and place == len(calls)
        note = ("\n\n", fill("tool_too_many", count=str(left_out), most=str(MOST_CALLS)),) if more else ()
        yield Message("tool", (brought, *note), call_id=call.id)
