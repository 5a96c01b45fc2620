"""What the report is given."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.question import Question
from experiments.record import Record


@dataclass(frozen=True)
class ReportInput:
    """A finished run.

    Attributes:
        summary: as `ragbed run --json` prints it.
        questions: by id.
        records: ordered by question, then cell.
        text: content by hash: prompt parts and chunk contents.
    """

    name: str
    summary: dict[str, Any]
    questions: Mapping[str, Question]
    records: Iterable[Record]
    text: Callable[[str], str]
