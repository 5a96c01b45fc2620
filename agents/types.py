"""Outcomes of model calls and questions, the trace of steps, the answer, and their JSON forms."""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ragbed.documents.errors import CallError, CallTimeout, CallTooLong, ReplayMiss
from ragbed.documents.keys import known_keys, redact_keys
from ragbed.strategies.types import Decision, Evidence, Failure, Message, PipelineFailure, Reply, Usage

Outcome = Literal["answered", "refused", "malformed", "too_long", "budget", "timeout", "error", "searched"]
OUTCOMES: tuple[Outcome, ...] = ("answered", "refused", "malformed", "too_long", "budget", "timeout", "error")
"""Outcomes of questions that a model answers. `searched` is the outcome of questions that only gather evidence."""

_MAX_WHAT, _MAX_WHY = 80, 300  # maximum characters of a decision


@dataclass(frozen=True, slots=True)
class SearchStep:
    """One search, with the evidence numbers of its hits by rank, or the failure that ended the question."""

    query: str
    found: tuple[int, ...]
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ToolStep:
    """One call of a tool. `parts` has the texts of its result, and the evidence numbers of its passages, in order."""

    tool: str
    arguments: Mapping[str, Any]
    parts: tuple[str | int, ...]
    failure: Failure | None = None

    @property
    def found(self) -> tuple[int, ...]:
        """Return the evidence numbers of the passages in the result."""
        return tuple(part for part in self.parts if isinstance(part, int))


@dataclass(frozen=True, slots=True)
class DecisionStep:
    """A decision that the strategy reported."""

    what: str
    why: str = ""

    @classmethod
    def of(cls, decision: Decision) -> DecisionStep:
        """Return a decision with `what` and `why` shortened to one line each."""
        return cls(_line(redact_keys(decision.what), _MAX_WHAT), _line(redact_keys(decision.why), _MAX_WHY))


@dataclass(frozen=True, slots=True)
class GenerateStep:
    """One model call with its prompt and reply."""

    purpose: str
    key: str  # key of the call in the journal
    messages: tuple[Message, ...]
    shown: tuple[int, ...]  # evidence numbers that the messages showed
    text: str
    reasoning: str
    finish_reason: str
    usage: Usage
    failure: Failure | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()  # tool calls in the reply, as the server sent them
    gathering: bool = False  # whether the retrieval strategy made the call


Step = SearchStep | ToolStep | GenerateStep | DecisionStep


@dataclass(frozen=True, slots=True)
class Cost:
    """Time, requests and money that a question cost in this run. A replay costs less than the live run."""

    seconds: float = 0.0
    attempts: int = 0  # requests sent, including retries
    replayed: int = 0  # calls that the journal answered
    paid: float | None = 0.0  # US dollars; None if any price is unknown
    retried: int = 0  # calls that took more than one attempt

    def __add__(self, other: Cost) -> Cost:
        paid = None if self.paid is None or other.paid is None else self.paid + other.paid
        return Cost(self.seconds + other.seconds, self.attempts + other.attempts, self.replayed + other.replayed, paid,
                    self.retried + other.retried)


@dataclass(frozen=True, slots=True)
class Answer:
    """The final answer to one question, or its failure.

    Attributes:
        tagged: whether the answer was in the requested tags or fields. None without a request or a reply.
        shown: numbers of the evidence in prompts of the reasoning strategy, starting with the last answer prompt. If a
            strategy only gathers evidence, all of it, best first.
    """

    outcome: Outcome
    text: str  # the final answer with its citations; may be empty
    refused: bool
    cited: tuple[int, ...]  # evidence numbers cited and shown, in order of first mention
    invalid_citations: tuple[int, ...]  # cited numbers that no prompt showed
    evidence: Evidence  # all evidence found, in order of arrival
    trace: tuple[Step, ...]
    usage: Usage  # of all calls, even those that the journal answered for free
    tagged: bool | None = None
    notes: tuple[str, ...] = ()  # short tags, such as `no_sub_questions`, `cut`
    failure: Failure | None = None
    cost: Cost = Cost()
    figures: Mapping[str, float] = field(default_factory=dict)  # figures that the strategy measured, by name
    shown: tuple[int, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)  # score of each chunk that a search found, by its id

    @property
    def in_view(self) -> Evidence:
        """Return the evidence that prompts showed, in the order of `shown`."""
        by_number = {passage.number: passage for passage in self.evidence}
        return tuple(by_number[number] for number in self.shown)

    @property
    def used(self) -> Usage:
        """Return the usage; `calls` includes failed ones."""
        return replace(self.usage, calls=sum(isinstance(step, GenerateStep) for step in self.trace))

    @property
    def ranked(self) -> Evidence:
        """Return all evidence, with shown evidence first."""
        by_number = {passage.number: passage for passage in self.evidence}
        return tuple([by_number[number] for number in dict.fromkeys((*self.shown, *by_number))])


def failed_answer(failure: Failure) -> Answer:
    """Return the answer of a question that failed before it started."""
    return Answer("budget" if failure.kind == "budget" else "error", "", False, (), (), (), (), Usage(),
                  failure=failure)


def _line(text: str, longest: int) -> str:
    line = " ".join(str(text)[:4 * longest].split())
    return line if len(line) <= longest else line[:longest - 1] + "…"


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of one model call."""

    key: str  # key in the journal
    outcome: Reply | Failure
    attempts: int = 0  # requests sent in this run, including retries
    replayed: bool = False  # whether the journal answered the call

    @property
    def cost(self) -> Cost:
        """Return the cost of the call in this run, without seconds. Failures, whose price is unknown, count as free."""
        price = self.outcome.usage.price if isinstance(self.outcome, Reply) else 0.0
        return Cost(0.0, self.attempts, int(self.replayed), 0.0 if self.replayed else price, int(self.attempts > 1))

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON, for the graph's state."""
        kind = "reply" if isinstance(self.outcome, Reply) else "failure"
        return {"key": self.key, kind: outcome_to_json(self.outcome), "attempts": self.attempts,
                "replayed": self.replayed}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> CallOutcome:
        outcome = Failure.from_json(fields["failure"]) if "failure" in fields else reply_from_json(fields["reply"])
        return cls(fields["key"], outcome, fields["attempts"], fields["replayed"])


def failure_from_error(error: CallError) -> Failure:
    """Turn a call's error into a Failure without API keys. Its kind determines the question's outcome."""
    kind = "timeout" if isinstance(error, CallTimeout) else "too_long" if isinstance(error, CallTooLong) else error.kind
    message = redact_keys(str(error))
    return PipelineFailure(kind, message, error.called) if error.called else Failure(kind, message)


def error_from_failure(failure: Failure, attempts: int) -> CallError:
    """Turn a Failure back into an error."""
    kinds = {"timeout": CallTimeout, "too_long": CallTooLong, "replay_miss": ReplayMiss}
    return kinds.get(failure.kind, CallError)(failure.message, failure.kind, attempts)


def outcome_to_json(outcome: Reply | Failure) -> dict[str, Any]:
    """Return a reply or failure as JSON."""
    if isinstance(outcome, Failure):
        return _fields(outcome)
    fields = {**_fields(outcome), "usage": _fields(outcome.usage), "tool_calls": list(outcome.tool_calls)}
    unsent = fields.pop("unsent")  # stored only if there are any, as in older journals
    return {**fields, "unsent": list(unsent)} if unsent else fields


def _fields(value: Reply | Failure | Usage) -> dict[str, Any]:
    # `asdict` would make deep copies
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def message_to_json(message: Message) -> dict[str, Any]:
    """Return a message in the form of chat completions. A message that only calls tools has no content, because some
    servers reject empty content."""
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        sent |= {"content": message.content or None, "tool_calls": list(message.tool_calls)}
    if message.call_id:
        sent["tool_call_id"] = message.call_id
    return sent


def describe_tool_call(call: Mapping[str, Any]) -> str:
    """Describe a tool call in one line."""
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    return " ".join(f"calls {function.get('name')} {function.get('arguments')} as {call.get('id')}".split())


def reply_from_json(fields: Mapping[str, Any]) -> Reply:
    """Read a reply that `outcome_to_json` wrote."""
    return Reply(**{**fields, "usage": Usage(**fields["usage"]), "tool_calls": tuple(fields["tool_calls"]),
                    "unsent": tuple(fields.get("unsent", ()))})


def redact_reply(reply: Reply, key: str) -> Reply:
    """Replace API keys that a server echoed with `[key]`, even if they are escaped as in JSON. Every complete reply
    passes through here before it is stored."""
    text = json.dumps(outcome_to_json(reply), ensure_ascii=False)
    hidden = text
    for known in known_keys(key):
        for echoed in (json.dumps(known)[1:-1], known):
            hidden = hidden.replace(json.dumps(echoed)[1:-1], "[key]")
    return reply if hidden == text else reply_from_json(json.loads(hidden))
