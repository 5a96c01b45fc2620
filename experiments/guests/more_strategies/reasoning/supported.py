"""A check after the answer: is each sentence supported by what it cites? (Gao et al. 2023, "Enabling large language
models to generate text with citations", ALCE.)

ALCE's citation recall is the share of sentences that the cited passages entail, judged by an entailment model. Here
words, numbers and dates are compared without a model, or the answering model judges. Unsupported sentences are repaired
once, or the answer is refused.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from ragbed.experiments.guests.more_strategies.parts.evidence_checks import By, check_statements, repair
from ragbed.experiments.guests.more_strategies.parts.tracing import EvidenceTrace, traced
from ragbed.strategies.answering import strip_sub_answers
from ragbed.strategies.reasoning.direct import direct
from ragbed.strategies.types import Decision, Draft, Reasoning, Recipe, Task

Share = Annotated[float, Field(ge=0, le=1)]


def supported(task: Task, *, of: Reasoning = direct, by: By = "lexical", threshold: Share = 0.5, share: Share = 0.5,
              otherwise: Literal["repair", "refuse", "keep"] = "repair") -> Recipe:
    """Check each sentence of the answer against what it cites; repair once, refuse or keep an unsupported answer.

    A sentence is supported if its value is at least `threshold`. The value is that of `support.lexical.score` or the
    model's judgement (`by: model`: yes 1, partly 0.5, no 0), and 0 if the sentence cites nothing or a document that was
    not shown. With `repair`, a single unsupported sentence triggers a second call. If less than `share` of the
    sentences are supported, the answer is refused if the rules offer a refusal; otherwise, or with `keep`, the draft
    has the note `unsupported`. Figures: `sentences_supported`, the share of supported sentences in the last check;
    `repaired`, 1 if there was a second call.
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
    text = Draft(task.refusal, (), True, True, draft.tagged) if refuses else draft
    return replace(text, notes=(*draft.notes, "unsupported"), figures=figures)
