"""Stand-ins for a model: one that answers well, one that refuses, and those that no strategy may stumble over."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from strategies.reading import REFUSAL
from strategies.types import Failure, Generate, Reply, Task, Usage

StandIn = Callable[[Task, Generate, int], Reply | Failure]
"""What is replied to a call, by how many were made before it."""

_USED = Usage(100, 10, calls=1)
_MALFORMED = (
    "", " \n ", "{", "null", "[1, 2", "<Answer>", "</Answer><Answer></Answer>", "\ufffd\u0000", "1.\n2.\n-\n",
    "Search:", "search[", '{"answer": null}', "[999] [0]", "(" * 500, "x" * 5_000, "| a |\n|---|\n| 1",
    "1 / 0 ** 99999", "<think>", "Yes? No!", "\u202e\u2028", "".join(f"{n}. What is {n}?\n" for n in range(400)))
_UNSATISFIED = (
    "No.", "Yes.", "Insufficient.", "Partially.", "Irrelevant.", "Wrong; it has to be revised.", "0", "Not supported.",
    "Follow up: what is {turn}?", "Search: {turn}", "1. What is {turn}?\n2. What was {turn}?",
    "Thought {turn}: more is needed.\nAction: search[{turn}]", "Paris {turn}", "Sentence {turn} needs more of it.",
    "".join(f"{n}. What is {{turn}} of the {n} parts?\n" for n in range(1, 41)),
    "Fault: {turn} is wrong\nSearch: the {turn} parts\nSearch: the {turn} people\nSearch: the {turn} towns",
    "part = {turn} / 0\nwhole = part + nothing", "Grade: 0", "1: no\n2: no")
_LACKING = "Missing: the {turn} parts\nSufficiency: 1"
_TOOLS_A_TURN = 6
_PARSED: tuple[Any, ...] = (None, [], 5, "text", {}, {"answer": 5, "citations": "x", "refused": "no"},
                            {"answer": ["a"], "citations": [None, True, 1.5, 10**30]}, {"items": [[[]]]})


def good(task: Task, call: Generate, turn: int) -> Reply:
    """Answers, with a citation where the rules ask for one."""
    return _said(task, call, "A" if task.chooses else f"Paris{' [1]' if task.cites else ''}", refuses=False)


def refusing(task: Task, call: Generate, turn: int) -> Reply:
    """Refuses, whatever it is asked."""
    return _said(task, call, REFUSAL, refuses=True)


def stand_ins() -> Iterator[tuple[str, StandIn]]:
    """Those that are never satisfied, reply something malformed, have no tools, or fail."""
    yield "a model that replies nothing of use", lambda task, call, turn: _reply(_MALFORMED[turn % len(_MALFORMED)])
    yield "a model whose replies are cut", lambda task, call, turn: replace(_reply("<Thinking>Par"),
                                                                            finish_reason="length")
    yield "a model that replies JSON of another form", lambda task, call, turn: replace(
        _reply("{}"), parsed=_PARSED[turn % len(_PARSED)])
    yield "a model that wants ever more", lambda task, call, turn: _wanting(call, turn, turn)
    for place, text in enumerate(_UNSATISFIED):
        yield f"a model that always says {text[:20]!r}", _always(place)
    yield "a model that lacks something at its first look", lambda task, call, turn: (
        good(task, call, turn) if turn else _reply(_LACKING.format(turn=turn)))
    yield "a model that calls tools several times a turn", _calling_often
    yield "a server without tools", _without_tools
    yield "a server without tools, whose model wants ever more", lambda task, call, turn: (
        Failure("http_400", "this server has no tools") if call.tools else
        _reply(f"Thought {turn}: more is needed.\nAction: search[{turn}]"))
    yield "a model that calls tools wrongly", _with_bad_tools
    yield "a server that fails", lambda task, call, turn: Failure("http_500", "the server failed")


def _always(place: int) -> StandIn:
    return lambda task, call, turn: _wanting(call, turn, place)


def _wanting(call: Generate, turn: int, place: int) -> Reply:
    """Never satisfied, in the words of this place, with other details each time."""
    text = _UNSATISFIED[place % len(_UNSATISFIED)].replace("{turn}", str(turn))
    if call.tools:
        return replace(_reply(""), finish_reason="tool_calls", tool_calls=(
            _tool_call(call.tools[0], json.dumps({"query": f"what is {turn}?"}), f"call{turn}"),))
    if call.schema is not None:
        fields = _instance(call.schema, text, place % 2 == 0)
        return replace(_reply(json.dumps(fields)), parsed=fields)
    return _reply(text)


def _without_tools(task: Task, call: Generate, turn: int) -> Reply | Failure:
    return Failure("http_400", "this server has no tools") if call.tools else good(task, call, turn)


def _calling_often(task: Task, call: Generate, turn: int) -> Reply:
    if not call.tools or call.tool_choice == "none":
        return good(task, call, turn)
    return replace(_reply(""), finish_reason="tool_calls", tool_calls=tuple(
        _tool_call(call.tools[0], json.dumps({"query": f"what is {turn} of {place}?"}), f"call{turn}_{place}")
        for place in range(_TOOLS_A_TURN)))


def _with_bad_tools(task: Task, call: Generate, turn: int) -> Reply:
    if not call.tools:
        return good(task, call, turn)
    calls: tuple[Mapping[str, Any], ...] = (
        _tool_call(call.tools[0], "{", "a"), _tool_call(call.tools[0], '{"other": 1}', "a"), {},
        {"id": None, "type": "function", "function": {"name": "none_such", "arguments": None}}, {"function": []})
    return replace(_reply("", ), finish_reason="tool_calls", tool_calls=calls[turn % 3:] if turn % 2 else calls)


def _tool_call(tool: Mapping[str, Any], arguments: str, id: str) -> Mapping[str, Any]:
    return {"id": id, "type": "function", "function": {"name": tool["function"]["name"], "arguments": arguments}}


def _said(task: Task, call: Generate, text: str, refuses: bool) -> Reply:
    if call.schema is None:
        return _reply(f"<Thinking>The documents say it.</Thinking>\n<Answer>{text}</Answer>")
    fields = _instance(call.schema, text, refuses)
    return replace(_reply(json.dumps(fields)), parsed=fields)


def _reply(text: str) -> Reply:
    return Reply(text, usage=_USED)


def _instance(schema: Mapping[str, Any], text: str, yes: bool) -> Any:
    """A value that fits a schema: this text, or the first value that is allowed, one item, and `yes` or not."""
    if "enum" in schema or "const" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if "anyOf" in schema:
        return _instance(schema["anyOf"][0], text, yes)
    kind = schema.get("type")
    if kind == "object":
        return {name: _instance(inner, text, yes) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [_instance(schema.get("items", {}), text, yes)]
    return {"boolean": yes, "integer": max(1, schema.get("minimum", 1)), "number": 1.0}.get(str(kind), text)
