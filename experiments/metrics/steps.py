"""The group `steps`: how much of a reference reasoning a model's own holds (DetectiveQA).

"DetectiveQA: Evaluating Long-Context Reasoning on Detective Novels" (2024): answer accuracy, reasoning score, and
G.M., the square root of their product. Both scorings are one: GLM3-6B's printed G.M. of 33.63, of 40.58 and 22.08,
does not follow the paper's own formula, which gives 29.93.
"""
from __future__ import annotations

from experiments.metrics.means import Derived, Means, among
from experiments.metrics.metric import UNJUDGED, Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring

_OVER = "questions with reference steps"
_BOTH = ("accuracy", "reasoning_score")


def steps(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """`reasoning_score`: the share of the reference steps that the judge found, whatever the answer.

    A reply without reasoning, and a failure before any, is 0 without a judge. Reasoning without a readable verdict is
    0 and `unjudged`.
    """
    if not item.step_count:
        return {"reasoning_score": None, "unjudged": None}
    if not item.reasoned or item.steps is None:
        return {"reasoning_score": 0.0, "unjudged": float(item.reasoned)}
    found = {step for step in item.steps if 0 <= step < item.step_count}
    return {"reasoning_score": len(found) / item.step_count, "unjudged": 0.0}


def _derive(means: Means) -> dict[str, Derived]:
    """`gm`: sqrt(mean accuracy x mean reasoning score), both over the questions that have both."""
    import numpy as np

    chosen, reasoned = among("accuracy", _BOTH), among("reasoning_score", _BOTH)
    return {"gm": Derived(np.sqrt(means[chosen] * means[reasoned]), chosen)} if chosen in means else {}


STEPS = Group((
    Metric("reasoning_score", "share of the reference steps that the judge finds in the reasoning", _OVER, judged=True),
    UNJUDGED,
    Metric("gm", "square root of mean accuracy times mean reasoning score",
           "questions with options and reference steps", judged=True, of_set=True)),
    steps, _derive, _BOTH)
