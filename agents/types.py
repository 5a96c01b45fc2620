"""What playing a recipe yields: the answer, its citations, its outcome and the trace of steps."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from strategies.types import Decision, Evidence, Failure, Message, Usage

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
    """What the strategy made up its mind about."""

    what: str
    why: str = ""

    @classmethod
    def of(cls, decision: Decision) -> DecisionStep:
        """A decision as the trace has it: one short line."""
        return cls(_line(decision.what, _LONGEST_WHAT), _line(decision.why, _LONGEST_WHY))


@dataclass(frozen=True, slots=True)
class GenerateStep:
    """One model call as it was sent and answered.

    Attributes:
        key: the call's journal key.
        shown: the evidence numbers that the messages showed.
        gathering: whether the retrieval strategy made it.
        tool_calls: that the reply asks for, as the server sent them.
    """

    purpose: str
    key: str
    messages: tuple[Message, ...]
    shown: tuple[int, ...]
    text: str
    reasoning: str
    finish_reason: str
    usage: Usage
    failure: Failure | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    gathering: bool = False


Step = SearchStep | GenerateStep | DecisionStep


@dataclass(frozen=True, slots=True)
class Cost:
    """What playing the recipe took this time; differs between a live run and its replay.

    Attributes:
        attempts: requests sent, retries included.
        replayed: calls that the journal answered.
        paid: US dollars spent this time; None where a price is unknown.
        retried: calls that took more than one attempt.
    """

    seconds: float = 0.0
    attempts: int = 0
    replayed: int = 0
    paid: float | None = 0.0
    retried: int = 0

    def __add__(self, other: Cost) -> Cost:
        paid = None if self.paid is None or other.paid is None else self.paid + other.paid
        return Cost(self.seconds + other.seconds, self.attempts + other.attempts, self.replayed + other.replayed, paid,
                    self.retried + other.retried)


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of one question.

    Attributes:
        text: the final answer with its citations; empty where there is none.
        cited: evidence numbers cited and shown, in order of first mention.
        invalid_citations: numbers cited that no prompt of the reasoning strategy showed.
        tagged: whether the answer stood in its tags or fields; None where none were asked for, or no reply to read.
        notes: short tags, such as `no_sub_questions`, `cut`.
        evidence: all that was found, in the order in which it was found.
        shown: the evidence numbers that the reasoning strategy's prompts showed, those of the last prompt of an answer
            first and in its order; of what was only gathered, all of it, best first. What was found and dropped, or
            stood in a prompt of the retrieval strategy alone, is not among them.
        usage: as recorded, whether or not it was paid this time.
        figures: what the strategy measured on its way, by name.
    """

    outcome: Outcome
    text: str
    refused: bool
    cited: tuple[int, ...]
    invalid_citations: tuple[int, ...]
    evidence: Evidence
    trace: tuple[Step, ...]
    usage: Usage
    tagged: bool | None = None
    notes: tuple[str, ...] = ()
    failure: Failure | None = None
    cost: Cost = Cost()
    figures: Mapping[str, float] = field(default_factory=dict)
    shown: tuple[int, ...] = ()

    @property
    def in_view(self) -> Evidence:
        """The evidence that was shown, in its order."""
        by_number = {passage.number: passage for passage in self.evidence}
        return tuple(by_number[number] for number in self.shown)

    @property
    def ranked(self) -> Evidence:
        """All of it: first what was shown, then what was not."""
        return (*self.in_view, *(passage for passage in self.evidence if passage.number not in self.shown))


def unasked(failure: Failure) -> Answer:
    """The end of a question that was never begun."""
    return Answer("budget" if failure.kind == "budget" else "error", "", False, (), (), (), (), Usage(),
                  failure=failure)


def _line(text: str, longest: int) -> str:
    said = " ".join(str(text)[:4 * longest].split())
    return said if len(said) <= longest else said[:longest - 1] + "…"
