"""A run as `ragbed compare` reads it: its cells and the scores of their questions."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json

from ragbed.agents.types import Outcome
from ragbed.experiments.analysis.replicates import (
    Figures,
    ReplicateGroup,
    find_figures,
    group_replicates,
    label_groups,
    pool_replicates,
)
from ragbed.experiments.metrics import ScoredQuestion, Scoring
from ragbed.experiments.question import Question
from ragbed.experiments.runs.finished import cell_not_found, match_cells, open_finished

# Records may hold long traces, so only the compared fields are read.
_SCORES = ("SELECT cell, question, json_extract(result, '$.answerable', '$.outcome', '$.scores') FROM records"
           " ORDER BY cell, question")
_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A finished run."""

    path: Path
    name: str
    rows: Sequence[Mapping[str, Any]]  # the cells of its summary
    answers: Mapping[str, Mapping[str, ScoredQuestion]]  # by cell's id, then by question
    cells: Mapping[str, ReplicateGroup]  # by label; a group combines all repeats and seeds
    replicates: Mapping[str, ReplicateGroup]  # by label, groups of only one cell each, for single repeats and seeds
    together: Mapping[str, Figures]  # pooled figures of `cells`, by the id of the group's first cell
    questions: Mapping[str, Question]
    columns: tuple[str, ...]  # the metrics of its benchmark's table, in order
    scoring: Scoring
    judge: str | None
    seed: int
    results: str  # hash of all its results

    @property
    def metrics(self) -> list[str]:
        """Every metric that a cell has."""
        return list(dict.fromkeys(name for row in self.rows for name in row["metrics"]))

    def cell(self, label: str) -> ReplicateGroup:
        """Return the cell with this label."""
        return self.cells[label] if label in self.cells else self.replicates[label]

    def figures(self, label: str) -> Figures:
        """Return the figures of the cell with this label."""
        return find_figures(self.cell(label), self.together)

    def named(self, name: str) -> list[str]:
        """Return the labels of the cells that a name matches. The id of a replicate group's first cell means the whole
        group. A single replicate matches its own label, `repeat 0` or `seed 1`; all but the first also match their id.
        Raises RunError if nothing matches."""
        found = (match_cells({label: cell.shared_row for label, cell in self.cells.items()}, name)
                 or match_cells({label: cell.first for label, cell in self.replicates.items()}, name))
        if not found:
            raise cell_not_found(name, self.cells)
        return found


def read_compared_run(path: Path) -> ComparedRun:
    """Read the run in a folder. Raises RunError if there is none, it has not finished, it was stopped early by a race,
    or its summary is unusable."""
    with open_finished(path) as run:
        run.refuse_race()
        first, answers = run.rows[0], _answers(run.folder.database.rows(_SCORES))
        cells = group_replicates(run.rows, answers)
        alone = {cell.first["id"] for cell in cells if cell.size == 1}
        return ComparedRun(
            run.path, run.name, run.rows, answers, dict(zip(label_groups(cells), cells, strict=True)),
            {run.labels[row["id"]]: ReplicateGroup(row, answers.get(row["id"], {}), 1) for row in run.rows
             if row["id"] not in alone},
            pool_replicates(run.summary.get("repeated") or ()), run.questions, tuple(run.summary["columns"]),
            first["scoring"], first["judge"], run.summary["seed"], run.summary["results"])


def _answers(rows: Iterator[tuple[Any, ...]]) -> dict[str, dict[str, ScoredQuestion]]:
    answers: dict[str, dict[str, ScoredQuestion]] = defaultdict(dict)
    while batch := list(islice(rows, _BATCH)):  # reading row by row takes a third longer
        stored = from_json(f"[{','.join(row[2] for row in batch)}]")
        for (cell, question, _), (answerable, outcome, scores) in zip(batch, stored, strict=True):
            answers[cell][question] = ScoredQuestion(bool(answerable), cast(Outcome, outcome), scores)
    return answers
