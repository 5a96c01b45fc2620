"""Check the actions of a recipe before they are performed, since a recipe may be a user's own code."""
from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from ragbed.documents.errors import RecipeFailed
from ragbed.documents.types import replace_surrogates
from ragbed.strategies.types import Action, Decision, Draft, Generate, Message, Role, Search, ToolCall

MAX_DECISIONS = 5_000
"""Decisions that a recipe may yield in a row. A thousand samples may each decide several times before the next call."""


def list_actions(asked: Any) -> list[Action]:
    """Return the actions that a recipe yielded as a list. Raises RecipeFailed unless all are of one type, with valid
    fields."""
    actions = asked if isinstance(asked, list) else [asked]
    if {type(one) for one in actions} not in ({Search}, {Generate}, {ToolCall}):
        raise RecipeFailed(f"the strategy yielded {asked!r:.60}; yield searches, calls of the model or calls of tools, "
                           "and do not mix them in one list")
    for one in actions:
        if isinstance(one, ToolCall):
            _demand("a tool call", (
                (f"of {one.tool!r:.40}, which is not a name", isinstance(one.tool, str) and bool(one.tool)),
                ("whose arguments are not a JSON object", _are_objects((one.arguments,)))))
        elif isinstance(one, Search):
            _demand("a search", (
                ("for something that is not a string", isinstance(one.query, str)),
                (f"for {one.k!r:.40} chunks", one.k is None or (type(one.k) is int and one.k >= 1))))
        else:
            _check_call(one)
    return [_storable(one) if isinstance(one, ToolCall) else one for one in actions]


def _storable(call: ToolCall) -> ToolCall:
    """Return a call without lone surrogates and infinite numbers, which a model may write and no store can hold."""
    text = replace_surrogates(json.dumps(call.arguments, ensure_ascii=False))
    return ToolCall(replace_surrogates(call.tool), json.loads(text, parse_constant=lambda name: None))


def check_asked(asked: Any) -> None:
    """Check a value that a recipe yielded. Raises RecipeFailed as `list_actions` does."""
    if isinstance(asked, Decision):
        _demand("a decision", (("whose words are not strings", _are((asked.what, asked.why), str)),))
    elif not isinstance(asked, list) or asked:
        list_actions(asked)


def check_draft(value: Any) -> Draft:
    """Return the result of a recipe. Raises RecipeFailed if it is not a Draft, or has fields that a record cannot
    hold."""
    if not isinstance(value, Draft):
        raise RecipeFailed(f"the strategy returned {type(value).__name__}, not a Draft")
    _demand("a draft whose", (
        ("text is not a string", isinstance(value.text, str)),
        ("citations are not a tuple of numbers", _are(value.cited, int)),
        ("notes are not a tuple of strings", _are(value.notes, str)),
        ("figures are not finite numbers by name", isinstance(value.figures, Mapping) and all(
            isinstance(name, str) and _is_finite(figure) for name, figure in value.figures.items())),
        ("refused, well_formed or tagged is not True or False", _are((value.refused, value.well_formed), bool)
         and (value.tagged is None or type(value.tagged) is bool)),
        ("gathered is not a tuple of numbers", value.gathered is None or _are(value.gathered, int))))
    return value


def _check_call(call: Generate) -> None:
    messages = isinstance(call.messages, tuple) and bool(call.messages) and all(
        isinstance(one, Message) for one in call.messages)
    _demand("a call", (
        ("without messages, or with something else among them", messages),
        ("with a message whose parts are not strings", messages and all(_are(one.parts, str) for one in call.messages)),
        ("with a message without a known role", messages and all(one.role in get_args(Role) for one in call.messages)),
        ("with a message whose tool calls are not a tuple of JSON objects",
         messages and all(_are_objects(one.tool_calls) and type(one.call_id) is str for one in call.messages)),
        ("without a purpose", isinstance(call.purpose, str) and bool(call.purpose)),
        ("whose shown is not a tuple of numbers", _are(call.shown, int)),
        ("whose sample is not a number of at least 0", type(call.sample) is int and call.sample >= 0),
        ("whose temperature is not a number of at least 0", call.temperature is None or (_is_finite(call.temperature)
                                                                   and call.temperature >= 0)),
        ("of less than one token", call.max_tokens is None or (type(call.max_tokens) is int and call.max_tokens >= 1)),
        ("whose stop is not a tuple of strings", _are(call.stop, str)),
        ("whose schema or tools are not JSON objects", (call.schema is None or _are_objects((call.schema,)))
         and _are_objects(call.tools)),
        ("whose tool_choice is neither auto nor none", call.tool_choice in ("auto", "none")),
        ("whose see_failure is not True or False", type(call.see_failure) is bool),
        ("whose effort is not a string", call.effort is None or (isinstance(call.effort, str) and bool(call.effort)))))


def _demand(what: str, demands: Iterable[tuple[str, bool]]) -> None:
    wrong = next((said for said, holds in demands if not holds), None)
    if wrong is not None:
        raise RecipeFailed(f"the strategy makes {what} {wrong}")


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, tuple) and all(type(value) is kind for value in values)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _are_objects(values: Any) -> bool:
    if values == ():
        return True
    if not isinstance(values, tuple) or not all(isinstance(value, dict) for value in values):
        return False
    try:
        json.dumps(values, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return False
    return True

