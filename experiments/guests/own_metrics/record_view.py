"""What the function of a metric gets: an immutable view of one record."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ragbed.agents.types import Outcome
from ragbed.experiments.cells import Cell
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage that the model was shown. `gold`: whether it contains the gold evidence."""

    number: int
    text: str
    source: str
    pages: tuple[int, int] | None
    gold: bool
    cited: bool


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A step: a `search` (query), a `generate` (the reply's text and reasoning), or a `decision` (text)."""

    kind: str
    purpose: str
    query: str
    text: str
    reasoning: str


@dataclass(frozen=True, slots=True)
class MetricRecord:
    """One question in one cell.

    Attributes:
        gold: accepted answers; empty if there are none.
        answer: the answer with its citations; empty after a failure.
        citations: numbers of the cited passages.
        steps: the reference steps of the question's reasoning.
        subs: sub-questions, each with its answer.
        scores: ragbed's own metrics of this record, by name.
        cell: the cell's factors, such as `reasoning`, by name.
    """

    id: str
    question: str
    gold: tuple[str, ...]
    answer: str
    passages: tuple[ShownPassage, ...]
    citations: tuple[int, ...]
    trace: tuple[TraceStep, ...]
    outcome: Outcome
    refused: bool
    answerable: bool
    options: tuple[tuple[str, str], ...]
    steps: tuple[str, ...]
    subs: tuple[tuple[str, str], ...]
    tags: Mapping[str, tuple[str, ...]]
    scores: Mapping[str, float | None]
    grade: str | None
    prompt_tokens: int
    completion_tokens: int
    cell: Mapping[str, Any]


def view_record(result: Result, question: Question, cell: Cell, text: Callable[[str], str]) -> MetricRecord:
    """Return the view of a result. `text` returns a stored text by its hash."""
    return MetricRecord(
        result.question, result.asked or question.text, question.answers, result.text,
        tuple(ShownPassage(one.number, text(one.text), one.source, one.pages, one.gold is not None,
                           one.number in result.cited) for one in result.in_view),
        result.cited, tuple(TraceStep(step.kind, step.purpose or "", step.query or "", step.text, step.reasoning)
                            for step in result.trace),
        result.outcome, result.refused, result.answerable, question.options,
        tuple(step.text for step in question.steps), tuple((sub.question, sub.text) for sub in result.subs),
        MappingProxyType({name: tuple(values) for name, values in question.tags.items()}),
        MappingProxyType(dict(result.scores)), result.verdict.grade if result.verdict else None,
        result.usage.prompt_tokens, result.usage.completion_tokens, MappingProxyType(dict(cell.levels)))


def _made_up(id: str, answer: str, outcome: Outcome = "answered", **changes: Any) -> MetricRecord:
    passages = (ShownPassage(1, "Oslo is the capital of Norway.", "norway.txt", (1, 1), True, "[1]" in answer),
                ShownPassage(2, "Rome is the capital of Italy.", "italy.txt", None, False, "[2]" in answer))
    base = MetricRecord(
        id, "What is the capital of Norway?", ("Oslo",), answer, passages, (1,) if "[1]" in answer else (),
        (TraceStep("search", "", "Norway capital", "", ""), TraceStep("generate", "answer", "", answer, "")),
        outcome, outcome == "refused", True, (), (), (), MappingProxyType({}),
        MappingProxyType({"em": 1.0, "f1": None}), None, 120, 9, MappingProxyType({"reasoning": "direct"}))
    return replace(base, **changes)


# Records as they occur: answered, without a citation, in another script, refused, without a reply, without gold.
MADE_UP = (
    _made_up("answered", "Oslo, please note [1]."), _made_up("uncited", "It is Rome."),
    _made_up("script", "오슬로입니다 🙂"),
    _made_up("refused", "I cannot answer.", "refused", answerable=False, gold=()),
    _made_up("failed", "", "error", passages=(), trace=()),
    _made_up("options", "(b)", options=(("a", "Rome"), ("b", "Oslo"))))
