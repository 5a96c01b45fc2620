"""The outcome of one model call, and its form as plain JSON."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.types import Cost
from documents.errors import CallError, CallTimeout, CallTooLong, ReplayMiss
from strategies.types import Failure, Message, Reply, Usage


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of one model call.

    Attributes:
        key: its journal key.
        attempts: requests sent this time, retries included; 0 where the journal answered.
        replayed: whether the journal answered.
    """

    key: str
    outcome: Reply | Failure
    attempts: int = 0
    replayed: bool = False

    @property
    def cost(self) -> Cost:
        """What it took this time, without its seconds; a failure's price is not known, and counts as none."""
        price = self.outcome.usage.price if isinstance(self.outcome, Reply) else 0.0
        return Cost(0.0, self.attempts, int(self.replayed), 0.0 if self.replayed else price, int(self.attempts > 1))

    def to_json(self) -> dict[str, Any]:
        """For the graph's state."""
        kind = "reply" if isinstance(self.outcome, Reply) else "failure"
        return {"key": self.key, kind: outcome_to_json(self.outcome), "attempts": self.attempts,
                "replayed": self.replayed}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> CallOutcome:
        """The inverse of `to_json`."""
        outcome = Failure(**fields["failure"]) if "failure" in fields else reply_from_json(fields["reply"])
        return cls(fields["key"], outcome, fields["attempts"], fields["replayed"])


def failure_of(error: CallError) -> Failure:
    """A call's error as data; its kind decides the question's outcome."""
    if isinstance(error, CallTimeout):
        return Failure("timeout", str(error))
    return Failure("too_long" if isinstance(error, CallTooLong) else error.kind, str(error))


def error_of(failure: Failure, attempts: int) -> CallError:
    """The inverse of `failure_of`, for those who raise what they were given."""
    kinds = {"timeout": CallTimeout, "too_long": CallTooLong, "replay_miss": ReplayMiss}
    return kinds.get(failure.kind, CallError)(failure.message, failure.kind, attempts)


def outcome_to_json(outcome: Reply | Failure) -> dict[str, Any]:
    """A reply or failure as plain JSON."""
    if isinstance(outcome, Failure):
        return _fields(outcome)
    return {**_fields(outcome), "usage": _fields(outcome.usage), "tool_calls": list(outcome.tool_calls)}


def _fields(value: Reply | Failure | Usage) -> dict[str, Any]:
    """By name, as they are: `asdict` would copy whatever is below them."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def wire_message(message: Message) -> dict[str, Any]:
    """A message as chat completions have it; what only tools need stands there only where they are used.

    A message that calls tools and says nothing has no content: some servers refuse an empty one.
    """
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        sent |= {"content": message.content or None, "tool_calls": list(message.tool_calls)}
    if message.call_id:
        sent["tool_call_id"] = message.call_id
    return sent


def called(call: Mapping[str, Any]) -> str:
    """A call of a tool for a reader, on one line."""
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    said = f"calls {function.get('name')} {function.get('arguments')} as {call.get('id')}"
    return " ".join(said.split())


def reply_from_json(fields: Mapping[str, Any]) -> Reply:
    """A reply from `outcome_to_json`."""
    return Reply(**{**fields, "usage": Usage(**fields["usage"]), "tool_calls": tuple(fields["tool_calls"])})
