"""Which settings change nothing under a condition or for a benchmark, whatever the question and the model."""
from __future__ import annotations

from dataclasses import replace

from experiments.question import Benchmark
from experiments.settings.factors import Show
from experiments.settings.run import SubAnswers
from retrieval.conditions import Condition, Perturbation
from strategies.settings.choosing import Strategy


def with_effect(change: Perturbation, condition: Condition, gathering: str, benchmark: Benchmark) -> Perturbation:
    """The perturbation without what has no effect, so that cells that would show the same are one cell."""
    if condition == "closed-book":
        return Perturbation()
    if condition == "retrieved" and gathering == "none":
        return Perturbation(separators_off=change.separators_off)  # nothing is shown, but citations are not asked for
    if not any(question.gold for question in benchmark.questions):
        change = replace(change, drop_gold=False, gold_at=0)
    if condition != "retrieved" or benchmark.corpus is not None:
        change = replace(change, pool=0, sort=change.sort if change.negatives else "")
    if condition == "gold" and not change.negatives:
        change = replace(change, gold_at=0)  # all that stands there is gold
    most = _most(change, condition, benchmark)
    return change if most is None or most > 1 else replace(change, shuffle=False, gold_at=0)


def shown_of(show: Show, sub_answers: SubAnswers, benchmark: Benchmark) -> Show:
    """What prompts show: no sub-questions where there are none, and all where the reply is to answer each."""
    if not any(question.sub_questions for question in benchmark.questions):
        return "question"
    return "sub_questions" if sub_answers == "in_prompt" and "chain" in benchmark.scheme.groups else show


def drawn(change: Perturbation, *strategies: Strategy) -> bool:
    """Whether a seed may change anything: a perturbation draws, or a strategy that is none of ours, which may."""
    return change.shuffle or change.negatives > 0 or change.pool > 0 or any(map(may_draw, strategies))


def may_draw(strategy: Strategy) -> bool:
    """Whether a part of a strategy is none of ours: ours draw nothing, and of another it is not known."""
    return strategy.has_plugins


def _most(change: Perturbation, condition: Condition, benchmark: Benchmark) -> int | None:
    """How many chunks any question shows at most; None where that is not known beforehand."""
    if change.table:
        return 1 + change.negatives
    if condition == "gold":
        return change.negatives if change.drop_gold else None
    if condition == "given":
        return max(len(question.given) for question in benchmark.questions) + change.negatives
    if condition == "full" and benchmark.has_whole:
        return max(len(question.whole) for question in benchmark.questions) + change.negatives
    return None
