"""What was asked and judged besides the answer: sub-questions, points, steps of the reasoning."""
from __future__ import annotations

from itertools import zip_longest
from typing import Any

from experiments.question import Question
from experiments.record import Result, StoredSub, Verdict
from experiments.report.text import shown, visible

_LONGEST = 2_000


def subs(question: Question) -> list[Any]:
    """The benchmark's sub-questions with their gold answers, in order."""
    pairs = zip_longest(question.sub_questions, question.sub_answers, fillvalue="")
    return [[shown(asked, _LONGEST), shown(answer, _LONGEST)] for asked, answer in pairs]


def references(question: Question) -> list[Any]:
    """The reference reasoning in order: each step, and where its evidence stands."""
    return [[shown(step.text, _LONGEST), "" if step.depth is None else f"{100 * step.depth:.0f} % in"]
            for step in question.steps]


def asked(result: Result) -> list[Any]:
    """The sub-questions that were asked, in order: question, answer, outcome, and whether it was right."""
    return [_asked(sub, result.scores.get(f"sub_em@{place}")) for place, sub in enumerate(result.subs, 1)]


def _asked(sub: StoredSub, score: float | None) -> list[Any]:
    return [shown(sub.question, _LONGEST), shown(sub.text, _LONGEST), visible(sub.outcome),
            None if score is None else score == 1]


def graded(verdict: Verdict | None, question: Question) -> str:
    """The verdict in a few words, by its rubric; empty where there is none."""
    if verdict is None:
        return ""
    if verdict.points is not None:
        return f"{verdict.points} of 10"
    if verdict.steps is not None:
        return f"{len(verdict.steps)} of {len(question.steps)} steps"
    return visible(verdict.grade or "unjudged")
