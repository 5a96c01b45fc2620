"""The group `squad`: SQuAD 2.0's pair of figures, over all questions.

Rajpurkar, Jia, Liang, "Know What You Don't Know: Unanswerable Questions for SQuAD", ACL 2018, section 4 and the
official evaluation script: EM and F1 with the best of the accepted answers; a question without an answer has 1 for
both where the model declines to answer and 0 otherwise, a declined answerable one 0. Two things are ours: a failed
question is 0, where an empty prediction would count as declined, and declining is the refusal that the rules offer.
"""
from __future__ import annotations

from experiments.answers import exact_match, shared_tokens
from experiments.metrics.metric import Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring
from strategies.reading import strip_citations


def squad(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """`squad_em` and `squad_f1`; None for an answerable question without a gold answer, and for an unanswerable one
    under rules that offer no refusal."""
    if not (item.answers if item.answerable else item.may_refuse):
        return {"squad_em": None, "squad_f1": None}
    if not item.answerable or item.outcome != "answered":
        declined = float(not item.answerable and item.outcome == "refused")
        return {"squad_em": declined, "squad_f1": declined}
    text = strip_citations(item.text)
    exact = exact_match(text, item.answers)
    return {"squad_em": exact, "squad_f1": max(exact, *(shared_tokens(text, answer).f1 for answer in item.answers))}


SQUAD = Group((
    Metric("squad_em", "answer equals a gold answer after normalisation; of unanswerable ones, share refused",
           share=True),
    Metric("squad_f1", "token F1 with the nearest gold answer; of unanswerable ones, share refused")), squad)
