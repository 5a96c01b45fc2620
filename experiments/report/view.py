"""What the report is given."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.question import Question
from experiments.record import Record, Result


@dataclass(frozen=True)
class ReportInput:
    """A finished run.

    Attributes:
        summary: as `ragbed run --json` prints it.
        questions: by id.
        records: ordered by question, then cell; read once.
        text: content by hash: prompt parts and chunk contents.
        rights: the metrics whose score of 1 means that an answer is right; of a question the first that applies.
        causes: from the results of all records, the name of each one's cause, by its cell's id and then by its
            question's.
        facts: what the run was made of and its summary does not say, such as its sample, by name.
    """

    name: str
    summary: dict[str, Any]
    questions: Mapping[str, Question]
    records: Iterable[Record]
    text: Callable[[str], str]
    rights: Sequence[str] = ()
    causes: Callable[[Sequence[Result]], Mapping[str, Mapping[str, str]]] = lambda results: {}
    facts: Sequence[tuple[str, str]] = ()
