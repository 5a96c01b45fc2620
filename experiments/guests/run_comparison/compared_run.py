"""A run as `ragbed compare` reads it: its cells and the scores of their questions."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from ragbed.experiments.runs.run_manifest import Made, read_config

# Records may hold long traces, so only the compared fields are read.
_SCORES = ("SELECT cell, question, json_extract(result, '$.answerable', '$.outcome', '$.scores') FROM records"
           " ORDER BY cell, question")
_MOST_KNOWN = 50_000


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run, with the answers that it has."""

    path: Path
    name: str
    rows: Sequence[Mapping[str, Any]]  # the cells of its summary
    answers: Mapping[str, Mapping[str, ScoredQuestion]]  # by cell's id, then by question
    cells: Mapping[str, ReplicateGroup]  # groups by label; each combines all repeats and seeds
    replicates: Mapping[str, ReplicateGroup]  # groups of one cell each, for single repeats and seeds, by label
    together: Mapping[str, Figures]  # pooled figures of `cells`, by the id of the group's first cell
    questions: Mapping[str, Question]
    columns: tuple[str, ...]  # the metrics of its benchmark's table, in order
    scoring: Scoring
    judge: str | None
    seed: int
    results: str  # hash of all its results
    made: Made
    config: str  # its resolved settings
    pins: Mapping[str, str]  # hashes of what its searches used, by name
    failed: Mapping[str, str]  # for how many answers a user's metric failed, by metric
    progress: Mapping[str, Any]  # `Finished.progress`
    unfinished: Sequence[str]  # `Finished.unfinished`

    @property
    def metrics(self) -> list[str]:
        """Return every metric that any cell has."""
        return list(dict.fromkeys(name for row in self.rows for name in row["metrics"]))

    def cell(self, label: str) -> ReplicateGroup:
        """Return the cell with this label."""
        return self.cells[label] if label in self.cells else self.replicates[label]

    def figures(self, label: str) -> Figures:
        """Return the figures of the cell with this label."""
        return find_figures(self.cell(label), self.together)

    def named(self, name: str) -> list[str]:
        """Return the labels of the cells that match a name. A replicate group has the id of its first cell. A single
        replicate matches its own label, `repeat 0` or `seed 1`, and its id unless it is the first. Raises RunError if
        nothing matches."""
        found = (match_cells({label: cell.shared_row for label, cell in self.cells.items()}, name)
                 or match_cells({label: cell.first for label, cell in self.replicates.items()}, name))
        if not found:
            raise cell_not_found(name, self.cells)
        return found


def read_compared_run(path: Path) -> ComparedRun:
    """Read the run in a folder, finished or not. Raises RunError if it is missing or damaged, or if it was a race."""
    with open_finished(path, partial=True) as run:
        run.refuse_race()
        first, answers = run.rows[0], _answers(run.folder.database.rows(_SCORES))
        cells = group_replicates(run.rows, answers)
        alone = {cell.first["id"] for cell in cells if cell.size == 1}
        return ComparedRun(
            run.path, run.name, run.rows, answers, dict(zip(label_groups(cells), cells, strict=True)),
            {run.labels[row["id"]]: ReplicateGroup(row, answers.get(row["id"], {}), 1) for row in run.rows
             if row["id"] not in alone},
            pool_replicates(run.summary.get("repeated") or ()), run.questions, tuple(run.summary["columns"]),
            first["scoring"], first["judge"], run.summary["seed"], run.summary["results"], run.made,
            read_config(run.path) or "", run.folder.pins(), run.summary.get("failed_metrics") or {}, run.progress,
            run.unfinished)


def _answers(rows: Iterator[tuple[Any, ...]]) -> dict[str, dict[str, ScoredQuestion]]:
    answers: dict[str, dict[str, ScoredQuestion]] = defaultdict(dict)
    known: dict[str, ScoredQuestion] = {}  # many answers have the same scores
    for cell, question, stored in rows:
        if (scored := known.get(stored)) is None:
            answerable, outcome, scores = from_json(stored)
            scored = ScoredQuestion(bool(answerable), cast(Outcome, outcome), scores)
            if len(known) < _MOST_KNOWN:
                known[stored] = scored
        answers[cell][question] = scored
    return answers
