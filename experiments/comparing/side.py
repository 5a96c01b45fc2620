"""One of the two runs that are compared: its cells, and the scores of their questions."""
from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from agents.types import Outcome
from experiments.finished import open_finished
from experiments.metrics import Scoring
from experiments.question import Question

# Of a record that may hold a long trace only what is compared is read.
_SCORES = ("SELECT cell, question, json_extract(result, '$.answerable', '$.outcome', '$.scores') FROM records"
           " ORDER BY cell, question")


@dataclass(frozen=True, slots=True)
class Answered:
    """A question in one cell, as it was scored."""

    answerable: bool
    outcome: Outcome
    scores: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Side:
    """A finished run.

    Attributes:
        cells: the rows of its summary, by what they are called.
        answers: by cell's id, then by question.
        columns: the metrics of its benchmark's table, in order.
        results: the hash over all its results.
    """

    path: Path
    name: str
    cells: Mapping[str, Mapping[str, Any]]
    answers: Mapping[str, Mapping[str, Answered]]
    questions: Mapping[str, Question]
    columns: tuple[str, ...]
    scoring: Scoring
    judge: str | None
    seed: int
    results: str

    @property
    def metrics(self) -> list[str]:
        """Every metric that a cell has."""
        return list(dict.fromkeys(name for row in self.cells.values() for name in row["metrics"]))


def read_side(path: Path) -> Side:
    """The run of a folder; RunError where there is none, it has not finished, or its summary is unusable."""
    with open_finished(path) as run:
        first = run.rows[0]
        return Side(run.path, run.name, {run.labels[row["id"]]: row for row in run.rows},
                    _answers(run.folder.database.read(_SCORES)), run.questions, tuple(run.summary["columns"]),
                    first["scoring"], first["judge"], run.summary["seed"], run.summary["results"])


def _answers(rows: Sequence[tuple[Any, ...]]) -> dict[str, dict[str, Answered]]:
    """By cell, then by question."""
    answers: dict[str, dict[str, Answered]] = defaultdict(dict)
    stored = json.loads(f"[{','.join(row[2] for row in rows)}]")  # at once: thirty thousand calls take a third longer
    for (cell, question, _), (answerable, outcome, scores) in zip(rows, stored, strict=True):
        answers[cell][question] = Answered(bool(answerable), cast(Outcome, outcome), scores)
    return answers
