"""What a judge is: a generator that may ask a model, and ends with a verdict."""
from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol, get_args

from experiments.metrics.scored import Scoring
from experiments.record import Grade, Verdict
from experiments.scheme import Rubric
from strategies.types import Failure, Generate, Reply

GRADES: tuple[Grade, ...] = get_args(Grade)  # from the best to the worst
Judging = Generator[Generate, Reply | Failure, Verdict]


@dataclass(frozen=True, slots=True)
class Graded:
    """What a judge reads.

    Attributes:
        answers: accepted gold answers, at least one for `grades` and `points`.
        predicted: the final answer; its citations are removed before it is read, as the scoring has it.
        reasoning: all that the model said besides, for `steps`.
        steps: the reference steps, for `steps`.
        scoring: as-published asks as the published code does.
        reasoned: whether the strategy asked for reasoning before the answer.
    """

    rubric: Rubric
    question: str
    answers: tuple[str, ...]
    predicted: str
    reasoning: str = ""
    steps: tuple[str, ...] = ()
    scoring: Scoring = "corrected"
    reasoned: bool = False


class Judge(Protocol):
    """Grades one answer by a rubric."""

    @property
    def name(self) -> str:
        """What stands beside its grades."""
        ...

    def judge(self, graded: Graded) -> Judging:
        """Yields the model calls that it needs, is sent their replies, returns the verdict."""
        ...
