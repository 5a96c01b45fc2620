"""What a recipe may ask for, checked before it is carried out: a recipe may be anybody's."""
from __future__ import annotations

from typing import Any

from agents.types import DecisionStep
from strategies.types import Action, Decision, Generate, Message, Search

MOST_DECISIONS = 200
"""Of a recipe between two things that it asks for, empty lists included: one that goes on so would never end."""

_LONGEST_WHAT, _LONGEST_WHY = 80, 300  # characters


def actions_of(asked: Any) -> list[Action]:
    """What a recipe asks for as a list.

    Raises:
        TypeError: it is neither one search or call nor several of one kind, or lacks what they need.
    """
    actions = asked if isinstance(asked, list) else [asked]
    if {type(one) for one in actions} not in ({Search}, {Generate}):
        raise TypeError("the strategy yielded something other than searches or calls, or searches and calls in one "
                        "list")
    for one in actions:
        if isinstance(one, Search):
            _check_search(one)
        else:
            _check_call(one)
    return actions


def step_of(decision: Decision) -> DecisionStep:
    """A decision as the trace has it: one short line."""
    return DecisionStep(_line(decision.what, _LONGEST_WHAT), _line(decision.why, _LONGEST_WHY))


def _check_search(search: Search) -> None:
    if not isinstance(search.query, str):
        raise TypeError(f"the strategy searches for {type(search.query).__name__}, not for a text")
    if search.k is not None and (type(search.k) is not int or search.k < 1):
        raise TypeError(f"the strategy searches for {search.k!r:.40} chunks")


def _check_call(call: Generate) -> None:
    if not call.messages or not all(isinstance(one, Message) for one in call.messages):
        raise TypeError("the strategy makes a call without messages, or with something else among them")
    if not all(isinstance(part, str) for one in call.messages for part in one.parts):
        raise TypeError("the strategy makes a call with a message whose parts are no texts")


def _line(text: str, longest: int) -> str:
    said = " ".join(str(text)[:4 * longest].split())
    return said if len(said) <= longest else said[:longest - 1] + "…"
