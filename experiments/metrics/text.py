"""Metrics of the answer's text and form."""
from __future__ import annotations

from collections.abc import Sequence

from agents.types import Outcome
from experiments.answers import Overlap, best_overlap, exact_match
from experiments.metrics.metric import ANSWERABLE, Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring
from strategies.reading import strip_citations


def compared(outcome: Outcome, text: str, answers: Sequence[str]) -> tuple[float, Overlap]:
    """Exact match, and the best overlap of tokens, of a text without its citations; 0 for a refusal or failure."""
    if outcome != "answered":
        return 0.0, Overlap(0.0, 0.0)
    bare = strip_citations(text)
    return exact_match(bare, answers), best_overlap(bare, answers)


def overlap(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """`em` and `f1` with HotpotQA's normalisation, the best over the accepted answers, over answerable questions.

    A refusal or failure is 0; None for a question without a gold answer.
    """
    if not item.answerable or not item.answers:
        return {"em": None, "f1": None}
    em, shared = compared(item.outcome, item.text, item.answers)
    return {"em": em, "f1": shared.f1}


def form(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """`well_formed`: the model's reply held an answer or a refusal; `tagged`: in its tags or fields.

    `tagged` is None where the strategy asks for neither, and where no final reply came.
    """
    return {"well_formed": float(item.outcome in ("answered", "refused")),
            "tagged": None if item.tagged is None else float(item.tagged)}


OVERLAP = Group((
    Metric("em", "answer equals a gold answer after normalisation", ANSWERABLE, share=True),
    Metric("f1", "token F1 with the nearest gold answer", ANSWERABLE)), overlap)
FORM = Group((
    Metric("well_formed", "share whose reply held an answer or a refusal", share=True),
    Metric("tagged", "share whose answer stood in its tags or fields, where these were asked for", share=True)), form)
