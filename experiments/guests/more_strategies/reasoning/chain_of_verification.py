"""Chain of verification: draft, check with separately answered questions, revise (Dhuliawala et al. 2023, factored).

The paper uses no documents. Here another strategy writes the draft, and both draft and checks use the evidence.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from ragbed.experiments.guests.more_strategies.parts.critique import mark_revised
from ragbed.experiments.guests.more_strategies.parts.tracing import EvidenceTrace, traced
from ragbed.strategies.answering import ask, ask_for_answer, draft
from ragbed.strategies.parts.conversation import gather_each
from ragbed.strategies.parts.merging import concatenate
from ragbed.strategies.parts.reading import NO_ANSWER, read_list
from ragbed.strategies.prompting import fill_untrusted, template
from ragbed.strategies.reading import read_answer
from ragbed.strategies.reasoning.direct import direct
from ragbed.strategies.types import Decision, Evidence, Generate, Reasoning, Recipe, Reply, Task

_MAX_LENGTH = 1_000  # characters of the answer to a checking question


def chain_of_verification(task: Task, *, of: Reasoning = direct, questions: Annotated[int, Field(ge=1, le=6)] = 4,
                          searches: bool = False) -> Recipe:
    """Write a draft, answer questions that check it without seeing the draft, and rewrite the answer.

    Args:
        of: the strategy that writes the draft.
        questions: maximum number of checking questions.
        searches: gather evidence for each checking question.
    """
    seen = EvidenceTrace()
    first = yield from traced(of, task, seen)
    evidence = seen.evidence()
    asked = fill_untrusted("verification_questions", draft=first.text or NO_ANSWER, count=str(questions))
    plan: Reply = yield ask(task, asked, evidence, "plan")
    checks = read_list(plan.text, task.question, questions)
    if not checks:
        yield Decision("keeps the draft", "no question that checks it could be read")
        return replace(first, notes=(*first.notes, "no_checks"))
    more: list[Evidence] = (yield from gather_each(task, checks, Task.gather)) if searches else [()] * len(checks)
    replies: list[Reply] = yield [_check(task, one, concatenate((evidence, found)))
                                  for one, found in zip(checks, more, strict=True)]
    answered = "\n".join(f"{one}\n{_said(reply)}" for one, reply in zip(checks, replies, strict=True))
    told = fill_untrusted("verification_answer", draft=first.text or NO_ANSWER, checks=answered)
    last = yield from draft(ask_for_answer(task, told, concatenate((evidence, *more))), task)
    made = mark_revised(first, last, checks=len(checks))
    yield Decision("changes the draft" if made.figures["revised"] else "keeps the draft", f"{len(checks)} checks")
    return made


def _check(task: Task, question: str, evidence: Evidence) -> Generate:
    """Build the call for one checking question. Its prompt shows neither the draft nor the original question."""
    alone = replace(task, question=question, options=(), sub_questions=())
    told = template("verification" if task.rules in ("grounded", "reading") else "verification_open")
    cite = f" {template('verification_cited')}" if task.cites else ""
    return ask(alone, told + cite, evidence, "verify")


def _said(reply: Reply) -> str:
    return " ".join(read_answer(reply.text)[0].split())[:_MAX_LENGTH] or "unknown"
