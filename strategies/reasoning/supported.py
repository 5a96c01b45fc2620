"""A check after the answer: does each sentence stand in what it cites? (Gao et al. 2023, "Enabling large language
models to generate text with citations", ALCE.)

Their citation recall is the share of an answer's sentences that the passages cited for them entail, by a model trained
for entailment. Here that is told without a model, by words, numbers and dates, or by the answering model; and what is
not supported is mended once, or refused.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from ragbed.strategies.answering import strip_sub_answers
from ragbed.strategies.parts.tracing import EvidenceTrace, traced
from ragbed.strategies.reading import REFUSAL
from ragbed.strategies.reasoning.direct import direct
from ragbed.strategies.support.check import By, check_statements, repair
from ragbed.strategies.types import Decision, Draft, Reasoning, Recipe, Task

Share = Annotated[float, Field(ge=0, le=1)]


def supported(task: Task, *, of: Reasoning = direct, by: By = "lexical", threshold: Share = 0.5, share: Share = 0.5,
              otherwise: Literal["repair", "refuse", "keep"] = "repair") -> Recipe:
    """Checks each sentence of the answer against what it cites; repairs once, refuses or keeps what fails.

    A sentence is supported where its value is at least the threshold: that of `support.lexical.score`, or what the
    model says (`by: model`: yes 1, partly 0.5, no 0); it is 0 where the sentence cites nothing, or what was not shown.
    With `repair` one unsupported sentence is enough for a second call. An answer with less than `share` of its
    sentences supported is refused where the rules offer a refusal, and else, or with `keep`, stays with the note
    `unsupported`. Figures: `sentences_supported`, the share of supported sentences of the answer that was checked last,
    among those of which it could be told; `repair`, 1 where the second call was made.
    """
    seen = EvidenceTrace()
    draft = yield from traced(of, task, seen)
    if draft.refused or not draft.well_formed:
        return draft
    if task.rules in ("choice", "closed-book"):
        return replace(draft, notes=(*draft.notes, "support_skipped"))
    found = yield from check_statements(strip_sub_answers(draft, task), task, seen, by, threshold)
    repairs = otherwise == "repair" and bool(found.unsupported)
    if repairs:
        yield Decision("repairs", found.said())
        draft, found = yield from repair(draft, found, task, seen, by)
    figures = {**draft.figures, "repaired": float(repairs)}
    if draft.refused or found.share is None:
        notes = () if draft.refused else ("support_unread" if found.findings else "support_skipped",)
        return replace(draft, notes=(*draft.notes, *notes), figures=figures)
    figures["sentences_supported"] = found.share
    if found.share >= share:
        return replace(draft, figures=figures)
    refuses = otherwise != "keep" and task.rules == "grounded"
    yield Decision("refuses" if refuses else "keeps the answer", found.said())
    text = Draft(REFUSAL, (), True, True, draft.tagged) if refuses else draft
    return replace(text, notes=(*draft.notes, "unsupported"), figures=figures)
