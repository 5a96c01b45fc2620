"""Metrics of the answer's text and form."""
from __future__ import annotations

from experiments.answers import best_f1, exact_match
from experiments.metrics.metric import ANSWERABLE, Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring
from strategies.reading import strip_citations


def overlap(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """`em` and `f1` with HotpotQA's normalisation, the best over the accepted answers, over answerable questions.

    A refusal or failure is 0; None for a question without a gold answer.
    """
    if not item.answerable or not item.answers:
        return {"em": None, "f1": None}
    if item.outcome != "answered":
        return {"em": 0.0, "f1": 0.0}
    text = strip_citations(item.text)
    return {"em": exact_match(text, item.answers), "f1": best_f1(text, item.answers)}


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
