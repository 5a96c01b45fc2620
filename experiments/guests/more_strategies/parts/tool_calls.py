"""Search by tool calls in one conversation. It replaces the text format of `parts.conversation`."""
from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragbed.strategies.parts.conversation import (
    SearchState,
    assistant_message,
    final_answer,
    next_step,
    search_new,
    start,
)
from ragbed.strategies.parts.reading import to_query
from ragbed.strategies.prompting import fill, neutralize_turns, shown_numbers, template
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Asked, Decision, Draft, Failure, Generate, Message, Reply, Task

MAX_CALLS = 4  # calls performed per reply
_MAX_LENGTH, _MAX_TEXT = 4_000, 20_000  # longest arguments of a call, and longest text without calls, that are read
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_REFUSED = frozenset({"http_400", "http_404", "http_405", "http_422", "http_500", "http_501"})
_OF_TOOLS = re.compile(r"tool|function", re.IGNORECASE)
_WRITTEN = re.compile(r'"name"\s?:\s?"(search|finish)"')
_QUERY = re.compile(r'"query"\s?:\s?("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the conversation keeps it."""

    id: str
    name: str
    query: str = ""  # query of a `search` call; empty if it could not be read
    ends: bool = False  # whether this is a call of `finish`

    @property
    def sent(self) -> dict[str, Any]:
        """Return the call as JSON. Its arguments are always an object, since servers refuse anything else."""
        arguments = {"query": self.query} if self.query else {}
        return {"id": self.id, "type": "function",
                "function": {"name": self.name, "arguments": json.dumps(arguments, ensure_ascii=False)}}


def search_tools() -> tuple[Mapping[str, Any], ...]:
    """Return the tools `search`, which takes a query, and `finish`, as functions for chat completions."""
    query = {"query": {"type": "string", "description": template("tool_query")}}
    return _function("search", query), _function("finish", {})


def read_calls(reply: Reply, iteration: int) -> list[ToolCall]:
    """Read the tool calls of a reply. If the server found none, read calls that the model wrote as JSON in its text. A
    call without a valid id gets one made from the iteration and its position."""
    calls: list[ToolCall] = []
    if not reply.tool_calls:
        text = strip_thinking(reply.text)[:_MAX_TEXT]
        starts = list(_WRITTEN.finditer(text))
        ends = [*(found.start() for found in starts[1:]), len(text)]
        for place, (found, end) in enumerate(zip(starts, ends, strict=False)):
            query = _QUERY.search(text, found.end(), end)
            function = {"name": found[1], "arguments": f'{{"query": {query[1]}}}' if query else "{}"}
            calls.append(_call(f"call_{iteration}_{place}", function))
        return calls
    ids: set[str] = set()
    for place, raw in enumerate(reply.tool_calls):
        id = raw.get("id")
        own = id if isinstance(id, str) and _ID.fullmatch(id) and id not in ids else f"call_{iteration}_{place}"
        ids.add(own)
        calls.append(_call(own, raw.get("function")))
    return calls


def reply_message(reply: Reply, calls: Sequence[ToolCall]) -> Message:
    """Return the reply as the conversation keeps it."""
    text = neutralize_turns(strip_thinking(reply.text)[:_MAX_LENGTH].strip())
    if not calls:
        return assistant_message(text)
    # Calls written in the text are sent as calls only.
    return Message("assistant", (text,) if text and reply.tool_calls else (), tuple(call.sent for call in calls))


def refuses_tools(failure: Failure) -> bool:
    """Return whether a call failed because the server or its model reports that it does not support tools."""
    return failure.kind in _REFUSED and bool(_OF_TOOLS.search(failure.message))


def _function(name: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": template(f"tool_{name}"),
                                             "parameters": parameters}}


def _call(id: str, function: Any) -> ToolCall:
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return ToolCall(id, "unknown")
    if name == "finish":
        return ToolCall(id, name, ends=True)
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments[:_MAX_LENGTH])
        except (ValueError, RecursionError):
            arguments = None
    query = arguments.get("query") if name == "search" and isinstance(arguments, Mapping) else None
    return ToolCall(id, name, to_query(query) if isinstance(query, str) else "")


def call_tools(task: Task, found: SearchState, iterations: int, auto: bool) -> Generator[Asked, Any, Draft | None]:
    """Let the model search by tool calls, starting from what the first search `found`, and return the draft. With
    `auto`, return None if tools do not work: the server rejects them, or the first reply calls none."""
    talk = start(task, found, "react_tools")
    for iteration in range(iterations):
        reply = yield (call := Generate(talk, "react", shown_numbers(task, found.evidence), tools=search_tools(),
                                        see_failure=auto and not iteration))
        if isinstance(reply, Failure) and refuses_tools(reply):
            yield Decision("goes on in text", "the server takes no tools")
            return None
        if isinstance(reply, Failure):  # retry after any other failure; a second failure ends the question
            reply = yield replace(call, see_failure=False)
        calls = read_calls(reply, iteration)
        if not calls and auto and not iteration:
            yield Decision("goes on in text", "the first reply calls no tool")
            return None
        made = calls[:MAX_CALLS]
        queries = [one.query for one in made if one.query]
        if queries:
            found = yield from search_new(task, found, queries)
        talk = (*talk, reply_message(reply, made), *_results(made, found, len(calls) - len(made)))
        if not calls or any(one.ends for one in made):
            yield Decision("stops", "finish is called" if calls else "the reply calls no tool")
            break
        unread = Decision("goes on", f"iteration {iteration + 1}: no call could be read")
        yield next_step(task, iteration, iterations, found) if queries else unread
        if found.over:
            break
    return (yield from final_answer(task, talk, found.evidence, tools=search_tools()))


def _results(calls: Sequence[ToolCall], found: SearchState, left_out: int) -> Iterator[Message]:
    texts = iter(found.texts)
    for place, call in enumerate(calls, start=1):
        text = template("tool_finished" if call.ends else "tool_unread")
        brought = next(texts) if call.query else text
        more = left_out and place == len(calls)
        note = ("\n\n", fill("tool_too_many", count=str(left_out), most=str(MAX_CALLS)),) if more else ()
        yield Message("tool", (brought, *note), call_id=call.id)
