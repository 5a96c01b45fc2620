"""A check before the answer: do the documents suffice? (Joren et al. 2024, "Sufficient Context").

In the paper, a large model labels the context as sufficient or not, and a trained classifier decides from this label
and the model's confidence whether to answer. Here the model itself grades from 0 to 10, a threshold decides, and
missing information may be searched for first.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from ragbed.experiments.guests.more_strategies.parts.evidence_checks import judge_sufficiency
from ragbed.experiments.guests.more_strategies.parts.tracing import with_evidence
from ragbed.strategies.parts.merging import concatenate
from ragbed.strategies.reading import strip_citations
from ragbed.strategies.reasoning.direct import chain_of_thought
from ragbed.strategies.types import Decision, Draft, Reasoning, Recipe, Task


def sufficient(task: Task, *, of: Reasoning = chain_of_thought, threshold: Annotated[float, Field(ge=0, le=1)] = 0.8,
               iterations: Annotated[int, Field(ge=0, le=5)] = 1) -> Recipe:
    """Judge whether the documents suffice; if not, search for what is missing, or refuse.

    The grade is the share of the needed facts that the documents state. Below `threshold`, the strategy searches for
    what the model says is missing and judges again, at most `iterations` times. Then it refuses if the rules offer a
    refusal, and otherwise answers with the note `insufficient`. If the judgement cannot be read, the question is
    answered with the note `sufficiency_unread`. The inner strategy uses the evidence gathered here. The figure
    `sufficiency` is the last grade.
    """
    if task.rules == "closed-book":
        draft: Draft = yield from of(task)
        return replace(draft, notes=(*draft.notes, "sufficiency_skipped"))
    evidence = yield from task.gather(task.question)
    grade = yield from judge_sufficiency(task, evidence)
    for _ in range(iterations):
        if grade.value is None or grade.value >= threshold or not grade.missing:
            break
        yield Decision("searches again", grade.missing)
        more = concatenate((evidence, (yield from task.gather(grade.missing))))
        if len(more) == len(evidence):
            yield Decision("stops searching", "nothing new was found")
            break
        evidence = more
        grade = yield from judge_sufficiency(task, evidence)
    figures = {} if grade.value is None else {"sufficiency": grade.value}
    low = grade.value is not None and grade.value < threshold
    if low and task.rules == "grounded":
        yield Decision("refuses", f"sufficiency {grade.value:.2g} is below {threshold:g}")
        missing = strip_citations(grade.missing).rstrip(" .")
        text = f"{task.refusal} Missing: {missing}." if missing else task.refusal
        return Draft(text, (), True, True, None, ("insufficient",), figures=figures)
    notes = ("sufficiency_unread",) if grade.value is None else ("insufficient",) if low else ()
    if notes:
        yield Decision("answers all the same", notes[0].replace("_", " "))
    draft = yield from of(with_evidence(task, task.question, evidence))
    return replace(draft, notes=(*draft.notes, *notes), figures={**draft.figures, **figures})
