"""Dose and response of a finished run, from its records alone."""
from __future__ import annotations

from collections import defaultdict
from typing import Any

from experiments.dose.figures import dose_of
from experiments.dose.reached import reached_of
from experiments.record import Result
from experiments.runs.finished import Finished


def dose_of_run(run: Finished, metric: str) -> dict[str, Any] | None:
    """As its summary's `dose`, by any metric, and of a run from before summaries had it; None without a curve."""
    by_cell: dict[str, dict[str, Result]] = defaultdict(dict)
    for result in run.folder.results():
        by_cell[result.cell][result.question] = result
    return dose_of(run.rows, by_cell, run.grouped, metric, run.rows[0]["scoring"], run.summary["seed"],
                   run.summary.get("repeated") or (),
                   {cell.id: reached_of(cell.change, by_cell[cell.id].values(), run.questions) for cell in run.cells})
