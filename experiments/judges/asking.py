"""Judging one answer: what the judge is given, and its verdict."""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from agents.journal import Model
from agents.types import Cost
from documents.errors import RunError
from experiments.judges import Graded, Judge
from experiments.metrics import Scoring, reasoning_of, text_as_published
from experiments.question import Question, Scheme
from experiments.record import Result, Verdict
from strategies.types import Failure, Reply, Usage


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on an answer, None where none is due; and what it used and cost."""

    verdict: Verdict | None = None
    usage: Usage = field(default_factory=Usage)
    cost: Cost = field(default_factory=Cost)


def graded_of(result: Result, question: Question, scheme: Scheme, scoring: Scoring) -> Graded | None:
    """Return what a judge is given of a finished answer; None where no verdict is due.

    Answers are graded where the question is answerable and its gold answer known: a refusal is Wrong and a failure
    scores 0 without asking, and an unanswerable question is scored by refusal alone. As published, whatever is not
    empty is graded, refusals too. Reasoning is graded where there is any, whatever the answer.
    """
    rubric = scheme.rubric
    if rubric == "steps":
        reasoning = reasoning_of(result, question.options)
        if not reasoning or not question.steps:
            return None
        return Graded(rubric, question.text, question.answers, result.text, reasoning,
                      tuple(step.text for step in question.steps), scoring)
    published = scoring == "as-published"
    text = text_as_published(result) if published and rubric == "grades" else result.text
    due = bool(text) if published else result.outcome == "answered"
    if rubric is None or not due or not result.answerable or not question.answers:
        return None
    return Graded(rubric, question.text, question.answers, text, scoring=scoring,
                  reasoned=result.tagged is not None)


async def ask_judge(judge: Judge, model: Model | None, graded: Graded | None, deadline: Callable[[], float]) -> Judged:
    """Get the judge's verdict where one is due."""
    if graded is None:
        return Judged()
    judging = judge.judge(graded)
    sent: Reply | Failure | None = None
    usage, cost, started = Usage(), Cost(), time.monotonic()
    while True:
        try:
            action = next(judging) if sent is None else judging.send(sent)
        except StopIteration as end:
            return Judged(end.value, usage, replace(cost, seconds=time.monotonic() - started))
        if model is None:
            raise RunError(f"the judge {judge.name} asks for a model, and none is open")
        asked = await model.ask(action, deadline())
        sent = asked.outcome
        usage += sent.usage if isinstance(sent, Reply) else Usage(calls=1)
        cost += asked.cost
