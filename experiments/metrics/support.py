"""The group `support`: supporting facts and joint metrics of HotpotQA, of cited chunks against gold ones.

"HotpotQA: A Dataset for Diverse, Explainable Multi-hop Question Answering" (Yang et al., 2018), section 5.2. A
supporting fact there is a sentence; here it is a gold item, and what predicts it is a cited chunk that holds it. Both
scorings are one.
"""
from __future__ import annotations

from experiments.answers import Overlap
from experiments.metrics.corrected import cited_overlap
from experiments.metrics.metric import Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring
from experiments.metrics.text import compared

_OVER = "answerable questions with gold"
_NAMES = ("support_em", "support_f1", "support_joint_em", "support_joint_f1")


def support(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Support: a cited chunk without gold is a false positive, a gold item that no cited chunk holds a false
    negative; EM is 1 without either. A gold item in several cited chunks is found once, and none of them is false.

    Joint: precision and recall are the products of the answer's and the support's, EM of the EMs; None without a
    gold answer. A failure is 0. None under rules without citations, and without gold labels.
    """
    if not (item.cites and item.answerable and item.gold_total):
        return dict.fromkeys(_NAMES)
    facts = cited_overlap(item)
    exact = float(facts == Overlap(1.0, 1.0))
    scores: Scores = {"support_em": exact, "support_f1": facts.f1}
    if not item.answers:
        return scores | {"support_joint_em": None, "support_joint_f1": None}
    em, words = compared(item.outcome, item.text, item.answers)
    joint = Overlap(words.precision * facts.precision, words.recall * facts.recall)
    return scores | {"support_joint_em": em * exact, "support_joint_f1": joint.f1}


SUPPORT = Group((
    Metric("support_em", "share whose citations are the gold exactly", _OVER, share=True),
    Metric("support_f1", "F1 of the cited chunks against the gold", _OVER),
    Metric("support_joint_em", "share with exact answer and exact citations", _OVER, share=True),
    Metric("support_joint_f1", "F1 of the products of precisions and of recalls of answer and citations", _OVER)),
    support)
