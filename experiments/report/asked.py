"""What was asked and judged besides the answer: sub-questions, points, steps of the reasoning."""
from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from experiments.question import Question
from experiments.record import Result, StoredSub, Verdict
from experiments.report.text import Bounded, bounded, visible

_LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class Sub:
    """A sub-question of the benchmark, with its gold answer."""

    question: Bounded
    answer: Bounded


@dataclass(frozen=True, slots=True)
class AskedSub:
    """A sub-question as asked, and what came of it; `right` is None where it was not scored."""

    question: Bounded
    answer: Bounded
    outcome: str
    right: bool | None


@dataclass(frozen=True, slots=True)
class Reference:
    """A step of the reference reasoning; `place` says where its evidence stands."""

    text: Bounded
    place: str


def subs(question: Question) -> tuple[Sub, ...]:
    """The benchmark's sub-questions, in order."""
    pairs = zip_longest(question.sub_questions, question.sub_answers, fillvalue="")
    return tuple(Sub(bounded(asked, _LONGEST), bounded(answer, _LONGEST)) for asked, answer in pairs)


def references(question: Question) -> tuple[Reference, ...]:
    """The reference reasoning, in order."""
    return tuple(Reference(bounded(step.text, _LONGEST), "" if step.depth is None else f"{100 * step.depth:.0f} % in")
                 for step in question.steps)


def asked(result: Result) -> tuple[AskedSub, ...]:
    """The sub-questions that were asked, in order."""
    return tuple(_asked(sub, result.scores.get(f"sub_em@{place}")) for place, sub in enumerate(result.subs, 1))


def _asked(sub: StoredSub, score: float | None) -> AskedSub:
    return AskedSub(bounded(sub.question, _LONGEST), bounded(sub.text, _LONGEST), visible(sub.outcome),
                    None if score is None else score == 1)


def found(result: Result, question: Question) -> tuple[tuple[Bounded, bool], ...]:
    """Each reference step and whether the judge found it; empty where it was not judged."""
    places = result.verdict.steps if result.verdict else None
    return () if places is None else tuple((reference.text, place in places)
                                           for place, reference in enumerate(references(question)))


def graded(verdict: Verdict | None, question: Question) -> str:
    """The verdict in a few words, by its rubric; empty where there is none."""
    if verdict is None:
        return ""
    if verdict.points is not None:
        return f"{verdict.points} of 10"
    if verdict.steps is not None:
        return f"{len(verdict.steps)} of {len(question.steps)} steps"
    return visible(verdict.grade or "unjudged")
