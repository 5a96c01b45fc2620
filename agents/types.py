"""What a model call and a question come to: outcomes, the trace of steps, the answer, and their form as plain JSON."""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ragbed.documents.errors import CallError, CallTimeout, CallTooLong, ReplayMiss
from ragbed.documents.http import known_keys, redact_keys
from ragbed.strategies.types import Decision, Evidence, Failure, Message, Reply, Usage

Outcome = Literal["answered", "refused", "malformed", "too_long", "budget", "timeout", "error", "searched"]
OUTCOMES: tuple[Outcome, ...] = ("answered", "refused", "malformed", "too_long", "budget", "timeout", "error")
"""Of questions that a model is asked; `searched` is the end of one for which evidence was only gathered."""

_LONGEST_WHAT, _LONGEST_WHY = 80, 300  # characters of a decision


@dataclass(frozen=True, slots=True)
class SearchStep:
    """One search and the evidence numbers that it brought, in order of rank, or the failure that ended the question."""

    query: str
    found: tuple[int, ...]
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class DecisionStep:
    """A decision that the strategy told of."""

    what: str
    why: str = ""

    @classmethod
    def of(cls, decision: Decision) -> DecisionStep:
        """Shorten a decision to one line for what, and one for why."""
        return cls(_line(redact_keys(decision.what), _LONGEST_WHAT), _line(redact_keys(decision.why), _LONGEST_WHY))


@dataclass(frozen=True, slots=True)
class GenerateStep:
    """One model call as it was sent and answered."""

    purpose: str
    key: str  # the call's journal key
    messages: tuple[Message, ...]
    shown: tuple[int, ...]  # the evidence numbers that the messages showed
    text: str
    reasoning: str
    finish_reason: str
    usage: Usage
    failure: Failure | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()  # that the reply asks for, as the server sent them
    gathering: bool = False  # whether the retrieval strategy made it


Step = SearchStep | GenerateStep | DecisionStep


@dataclass(frozen=True, slots=True)
class Cost:
    """Time, requests and money that a question took this time; differs between a live run and its replay."""

    seconds: float = 0.0
    attempts: int = 0  # requests sent, retries included
    replayed: int = 0  # calls that the journal answered
    paid: float | None = 0.0  # US dollars spent this time; None where a price is unknown
    retried: int = 0  # calls that took more than one attempt

    def __add__(self, other: Cost) -> Cost:
        paid = None if self.paid is None or other.paid is None else self.paid + other.paid
        return Cost(self.seconds + other.seconds, self.attempts + other.attempts, self.replayed + other.replayed, paid,
                    self.retried + other.retried)


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of one question.

    Attributes:
        tagged: whether the answer stood in its tags or fields; None where none were asked for, or no reply to read.
        shown: the evidence numbers that the reasoning strategy's prompts showed, those of the last prompt of an answer
            first and in its order; of what was only gathered, all of it, best first. What was found and dropped, or
            stood in a prompt of the retrieval strategy alone, is not among them.
    """

    outcome: Outcome
    text: str  # the final answer with its citations; empty where there is none
    refused: bool
    cited: tuple[int, ...]  # evidence numbers cited and shown, in order of first mention
    invalid_citations: tuple[int, ...]  # numbers cited that no prompt of the reasoning strategy showed
    evidence: Evidence  # all that was found, in the order in which it was found
    trace: tuple[Step, ...]
    usage: Usage  # as recorded, whether or not it was paid this time
    tagged: bool | None = None
    notes: tuple[str, ...] = ()  # short tags, such as `no_sub_questions`, `cut`
    failure: Failure | None = None
    cost: Cost = Cost()
    figures: Mapping[str, float] = field(default_factory=dict)  # what the strategy measured on its way, by name
    shown: tuple[int, ...] = ()

    @property
    def in_view(self) -> Evidence:
        """Return the evidence that was shown, in its order."""
        by_number = {passage.number: passage for passage in self.evidence}
        return tuple(by_number[number] for number in self.shown)

    @property
    def used(self) -> Usage:
        """Return what it used; `calls` are all that it asked the model for, those that failed too."""
        return replace(self.usage, calls=sum(isinstance(step, GenerateStep) for step in self.trace))

    @property
    def ranked(self) -> Evidence:
        """Return all evidence: first what was shown, then what was not."""
        return (*self.in_view, *(passage for passage in self.evidence if passage.number not in self.shown))


def failed_answer(failure: Failure) -> Answer:
    """Return the end of a question that was never begun."""
    return Answer("budget" if failure.kind == "budget" else "error", "", False, (), (), (), (), Usage(),
                  failure=failure)


def _line(text: str, longest: int) -> str:
    line = " ".join(str(text)[:4 * longest].split())
    return line if len(line) <= longest else line[:longest - 1] + "…"


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of one model call."""

    key: str  # of the journal
    outcome: Reply | Failure
    attempts: int = 0  # requests sent this time, retries included
    replayed: bool = False  # whether the journal answered

    @property
    def cost(self) -> Cost:
        """Return what the call took this time, without its seconds; a failure's price is unknown and counts as 0."""
        price = self.outcome.usage.price if isinstance(self.outcome, Reply) else 0.0
        return Cost(0.0, self.attempts, int(self.replayed), 0.0 if self.replayed else price, int(self.attempts > 1))

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain JSON, as the graph's state holds it."""
        kind = "reply" if isinstance(self.outcome, Reply) else "failure"
        return {"key": self.key, kind: outcome_to_json(self.outcome), "attempts": self.attempts,
                "replayed": self.replayed}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> CallOutcome:
        """Read what `to_json` wrote."""
        outcome = Failure(**fields["failure"]) if "failure" in fields else reply_from_json(fields["reply"])
        return cls(fields["key"], outcome, fields["attempts"], fields["replayed"])


def failure_from_error(error: CallError) -> Failure:
    """Turn a call's error into data, without keys; its kind decides the question's outcome."""
    kind = "timeout" if isinstance(error, CallTimeout) else "too_long" if isinstance(error, CallTooLong) else error.kind
    return Failure(kind, redact_keys(str(error)))


def error_from_failure(failure: Failure, attempts: int) -> CallError:
    """Turn a failure back into the error that `failure_from_error` was given."""
    kinds = {"timeout": CallTimeout, "too_long": CallTooLong, "replay_miss": ReplayMiss}
    return kinds.get(failure.kind, CallError)(failure.message, failure.kind, attempts)


def outcome_to_json(outcome: Reply | Failure) -> dict[str, Any]:
    """Return a reply or failure as plain JSON."""
    if isinstance(outcome, Failure):
        return _fields(outcome)
    return {**_fields(outcome), "usage": _fields(outcome.usage), "tool_calls": list(outcome.tool_calls)}


def _fields(value: Reply | Failure | Usage) -> dict[str, Any]:
    # `asdict` would copy whatever is below them.
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def message_to_json(message: Message) -> dict[str, Any]:
    """Return a message as chat completions have it; what only tools need stands there only where they are used. A
    message that calls tools and says nothing has no content: some servers refuse an empty one."""
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        sent |= {"content": message.content or None, "tool_calls": list(message.tool_calls)}
    if message.call_id:
        sent["tool_call_id"] = message.call_id
    return sent


def describe_tool_call(call: Mapping[str, Any]) -> str:
    """Describe a call of a tool on one line."""
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    return " ".join(f"calls {function.get('name')} {function.get('arguments')} as {call.get('id')}".split())


def reply_from_json(fields: Mapping[str, Any]) -> Reply:
    """Read a reply that `outcome_to_json` wrote."""
    return Reply(**{**fields, "usage": Usage(**fields["usage"]), "tool_calls": tuple(fields["tool_calls"])})


def redact_reply(reply: Reply, key: str) -> Reply:
    """Return the reply with `[key]` where the server echoed a key, its own or another, plainly or escaped as in JSON.
    This is the one place where replies lose it: the parts of each text are joined by now, and nothing is stored yet."""
    text = json.dumps(outcome_to_json(reply), ensure_ascii=False)
    hidden = text
    for known in known_keys(key):
        for shown in (json.dumps(known)[1:-1], known):
            hidden = hidden.replace(json.dumps(shown)[1:-1], "[key]")
    return reply if hidden == text else reply_from_json(json.loads(hidden))
