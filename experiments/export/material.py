"""What an export is made of: a finished run, read once."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.question import Question
from experiments.store import RunFolder


@dataclass(frozen=True, slots=True)
class Material:
    """A finished run.

    Attributes:
        cells: the rows of its summary.
        causes: by (cell, question): why an answer is wrong, or `right`; empty where a benchmark has no right answer.
        titles: what each cause is called.
        records: how many there are.
    """

    folder: RunFolder
    name: str
    cells: Sequence[Mapping[str, Any]]
    questions: Mapping[str, Question]
    causes: Mapping[tuple[str, str], str]
    titles: Mapping[str, str]
    records: int

    @property
    def metrics(self) -> list[str]:
        """The metrics of all cells, those of sets too."""
        return list(dict.fromkeys(name for row in self.cells for name in row["metrics"]))
