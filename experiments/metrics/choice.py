"""The group `choice`: whether the right option was chosen (MRCEval, DetectiveQA).

As published (MRCEval, "MRCEval: A Comprehensive, Challenging and Accessible Machine Reading Comprehension Benchmark",
2025) the prediction is the first character of the reply, in its own case; with a strategy that asks for tags, of what
stands in them. Where the published code fails on an empty reply, ours is 0.
"""
from __future__ import annotations

from experiments.metrics.metric import Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring
from strategies.choice import read_choice

_OVER = "questions with options"


def choice(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """`accuracy`: the option that the answer names is the gold one; a failure, a refusal or an answer that names none
    is 0. `unparsed`: a reply came, no refusal, and names no option; None as published, which knows no such outcome.

    None for a question without options or without a gold label. A question whose gold evidence was dropped keeps
    its right option, and is scored.
    """
    if not item.options or not item.answers:
        return {"accuracy": None, "unparsed": None}
    if scoring == "as-published":
        return {"accuracy": float(item.text[:1] == item.answers[0]), "unparsed": None}
    chosen = read_choice(item.text, item.options) if item.outcome == "answered" else None
    replied = item.outcome in ("answered", "malformed")
    return {"accuracy": float(chosen == item.answers[0]), "unparsed": float(replied and chosen is None)}


CHOICE = Group((
    Metric("accuracy", "share whose chosen option is the right one", _OVER, share=True),
    Metric("unparsed", "share of replies that name no option", _OVER, share=True)), choice)
