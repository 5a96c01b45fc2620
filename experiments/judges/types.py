"""What a judge is: a generator that may ask a model, and ends with a verdict."""
from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from experiments.record import Verdict
from strategies.types import Failure, Generate, Reply

Judging = Generator[Generate, Reply | Failure, Verdict]


class Judge(Protocol):
    """Grades one predicted answer against the accepted ones."""

    @property
    def name(self) -> str:
        """What stands beside its grades."""
        ...

    def judge(self, question: str, answers: tuple[str, ...], predicted: str) -> Judging:
        """Yields the model calls that it needs, is sent their replies, returns the verdict.

        Args:
            answers: accepted gold answers, at least one.
            predicted: the final answer; its citations are removed before it is read.
        """
        ...
