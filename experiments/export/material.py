"""What an export is made of: a finished run, with the cause of every answer."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from experiments.record import Result
from experiments.runs.finished import Finished


@dataclass(frozen=True, slots=True)
class Material:
    """A finished run.

    Attributes:
        causes: by cell's id, then by question: why an answer is wrong, or `right`; empty where the benchmark has no
            notion of a right answer.
    """

    run: Finished
    causes: Mapping[str, Mapping[str, str]]

    def cause(self, result: Result) -> str | None:
        """Why it is wrong, or `right`."""
        return self.causes.get(result.cell, {}).get(result.question)
