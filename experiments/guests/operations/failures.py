"""Replace the details of failures by sentences for clients. Details, such as a model server's URL and its replies, stay
in records and in the log."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ragbed.agents.types import Answer, GenerateStep, SearchStep, Step
from ragbed.strategies.types import Failure

# Kinds whose messages ragbed writes.
_SAFE = frozenset(("settings", "stopped", "internal", "interrupted", "budget", "store"))
_SENTENCES: Mapping[str, str] = {
    "timeout": "there was no answer within the time limit",
    "too_long": "the question and its sources do not fit the model's context",
    "strategy": "the strategy failed"}
_EVENTS: Mapping[str, str] = {"reply": "the call of the model failed", "search": "the search failed"}


def hide_details(failure: Failure) -> Failure:
    """Return a failure with a message that any client may see. Its kind stays."""
    if failure.kind in _SAFE:
        return failure
    return replace(failure, message=_SENTENCES.get(failure.kind, f"the model or the search failed ({failure.kind})"))


def hide_answer(answer: Answer) -> Answer:
    """Return an answer without the details of its failures. Results of tools stay as the model saw them."""
    if answer.failure is None and not any(map(_has_details, answer.trace)):
        return answer
    return replace(answer, failure=answer.failure and hide_details(answer.failure),
                   trace=tuple(map(_hide_step, answer.trace)))


def hide_event(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event of `ragbed.agents.graph` without the details of a failure."""
    if event["event"] == "retry":
        return {**event, "why": "the call failed"}
    return {**event, "failure": _EVENTS[event["event"]]} if event["event"] in _EVENTS and event["failure"] else event


def _hide_step(step: Step) -> Step:
    if isinstance(step, SearchStep | GenerateStep) and step.failure is not None:
        return replace(step, failure=hide_details(step.failure))
    return step


def _has_details(step: Step) -> bool:
    return isinstance(step, SearchStep | GenerateStep) and step.failure is not None
