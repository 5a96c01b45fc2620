"""Play a strategy inside another one: record the evidence it finds and shows, or give it gathered evidence."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ragbed.strategies.reading import fold
from ragbed.strategies.types import (
    Asked,
    Evidence,
    Gathering,
    Generate,
    Passage,
    Reasoning,
    Recipe,
    Search,
    Task,
    drive,
)


@dataclass(slots=True)
class EvidenceTrace:
    """Records the evidence that an inner strategy found and showed.

    Attributes:
        passages: everything found, by number, in order.
        shown: numbers that any of its prompts showed.
        answered_over: numbers in its last answer prompt, in order. Before the first one: numbers in its last prompt
            that showed any, or None.
    """

    passages: dict[int, Passage] = field(default_factory=dict)
    shown: dict[int, None] = field(default_factory=dict)
    answered_over: tuple[int, ...] | None = None
    _answered: bool = False

    def found(self, evidence: Iterable[Passage]) -> None:
        """Record the result of a search or of the retrieval strategy."""
        for passage in evidence:
            self.passages.setdefault(passage.number, passage)

    def asked(self, call: Generate) -> None:
        """Record the evidence that a call shows, unless the call only gathers evidence."""
        if call.gathering:
            return
        self.shown.update(dict.fromkeys(call.shown))
        answers = call.purpose == "answer"
        if answers or (call.shown and not self._answered):
            self.answered_over, self._answered = call.shown, answers

    def evidence(self, also: Iterable[int] = ()) -> Evidence:
        """Return the passages in the answer's prompt, in order, then passages of `also` that an earlier prompt showed.

        A prompt with this evidence begins with the same bytes as the answer's prompt. For a strategy that made no call,
        return everything found.
        """
        last = self.passages if self.answered_over is None else self.answered_over
        numbers = dict.fromkeys((*last, *(number for number in also if number in self.shown)))
        return tuple(self.passages[number] for number in numbers if number in self.passages)


def traced(of: Reasoning, task: Task, seen: EvidenceTrace) -> Recipe:
    """Play a strategy, record its evidence in `seen`, and return its draft. The retrieval strategy is recorded too,
    since it may return evidence gathered earlier."""
    over = task.retrieval

    def gathered(task: Task, query: str) -> Gathering:
        evidence = yield from over(task, query)
        seen.found(evidence)
        return evidence

    def came(asked: Asked, result: Any) -> None:
        for action, one in zip(asked, result, strict=True) if isinstance(asked, list) else [(asked, result)]:
            if isinstance(action, Generate):
                seen.asked(action)
            elif isinstance(action, Search) and isinstance(one, tuple):
                seen.found(one)

    return (yield from drive(of(replace(task, retrieval=gathered)), came=came))


def with_evidence(task: Task, query: str, evidence: Evidence) -> Task:
    """Return the task with a retrieval that returns this evidence for this query, and searches for all others."""
    over, known = task.retrieval, fold(query)

    def gathered(task: Task, query: str) -> Gathering:
        if fold(query) == known:
            return evidence
        return (yield from over(task, query))

    return replace(task, retrieval=gathered)
