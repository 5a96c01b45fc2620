"""Play a strategy inside another: keep what it finds and shows, and hand it evidence that was gathered already."""
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
    """What an inner strategy found and showed so far; `answered_over` are the numbers that its last call for an answer
    showed, in that prompt's order; before there is one, those of its last call of any kind that showed some; None
    before that."""

    passages: dict[int, Passage] = field(default_factory=dict)  # all that it found, by number, in the order of coming
    shown: dict[int, None] = field(default_factory=dict)  # the numbers that any of its prompts showed
    answered_over: tuple[int, ...] | None = None
    _answered: bool = False

    def found(self, evidence: Iterable[Passage]) -> None:
        """Keep what a search or the retrieval strategy brought."""
        for passage in evidence:
            self.passages.setdefault(passage.number, passage)

    def asked(self, call: Generate) -> None:
        """Keep what a call of the strategy's own shows, evidence that it gathers apart."""
        if call.gathering:
            return
        self.shown.update(dict.fromkeys(call.shown))
        answers = call.purpose == "answer"
        if answers or (call.shown and not self._answered):
            self.answered_over, self._answered = call.shown, answers

    def evidence(self, also: Iterable[int] = ()) -> Evidence:
        """Return what the answer's prompt showed, in its order, and then those of `also` that an earlier one did. A
        prompt over it begins with the bytes that the answer's prompt began with. For a strategy that asked nothing it
        is all that was found."""
        last = self.passages if self.answered_over is None else self.answered_over
        numbers = dict.fromkeys((*last, *(number for number in also if number in self.shown)))
        return tuple(self.passages[number] for number in numbers if number in self.passages)


def traced(of: Reasoning, task: Task, seen: EvidenceTrace) -> Recipe:
    """Play a strategy over the task, keep what it finds and shows in `seen`, and return its draft. The retrieval
    strategy is watched besides the searches, since it may give what was gathered before."""
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
    """Return the task with a retrieval that gives this evidence for this query, and searches for all others."""
    over, known = task.retrieval, fold(query)

    def gathered(task: Task, query: str) -> Gathering:
        if fold(query) == known:
            return evidence
        return (yield from over(task, query))

    return replace(task, retrieval=gathered)
