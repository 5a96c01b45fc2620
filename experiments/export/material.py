"""What an export is made of: a finished run, read once."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.question import Question
from experiments.record import Result
from experiments.store import RunFolder


@dataclass(frozen=True, slots=True)
class Material:
    """A finished run.

    Attributes:
        cells: the rows of its summary.
        causes: by cell's id, then by question: why an answer is wrong, or `right`; empty where the benchmark has no
            notion of a right answer.
        records: how many there are.
    """

    folder: RunFolder
    name: str
    cells: Sequence[Mapping[str, Any]]
    questions: Mapping[str, Question]
    causes: Mapping[str, Mapping[str, str]]
    records: int

    def cause(self, result: Result) -> str | None:
        """Why it is wrong, or `right`."""
        return self.causes.get(result.cell, {}).get(result.question)
