"""`ragbed rescore` at work: a finished run's figures computed anew from its records, beside those that it has."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.cells import FACTORS, Cell, labels
from experiments.metrics.aggregate import aggregate
from experiments.metrics.scored import Scoring, may_refuse
from experiments.record import Result
from experiments.rescore import rescore
from experiments.scheme import Scheme
from experiments.settings import RunSettings
from experiments.settings_file import read_settings
from experiments.store import RunFolder
from experiments.terminal.display import note, print_json, print_table, say
from experiments.terminal.tables import run_table

Rows = Sequence[Mapping[str, Any]]


def score_again(path: Path, scoring: Scoring | None, json: bool) -> None:
    """Score again and show; the run stays as it is. Without a scoring, that of the run.

    Raises:
        UserError: there is no finished run.
    """
    folder = RunFolder.existing(path)
    try:
        summary, settings = folder.summary(), read_settings(path / "config.yaml")
        scoring = scoring or settings.scoring
        scheme = settings.benchmark.scheme_of(folder.questions().values())
        rows = _rows(folder, summary["cells"], settings, scheme, scoring)
    finally:
        folder.close()
    changed = _changed(summary["cells"], rows)
    if json:
        print_json({"run": str(path), "scoring": scoring, "columns": list(scheme.columns), "cells": rows,
                    "changed": changed})
        return
    print_table(*run_table(rows, scheme.columns),
                title=f"{settings.name}: {scoring} scoring, computed again, judge {rows[0]['judge'] or 'none'}")
    _show_changed(changed, settings.scoring, scoring)
    if scheme.rubric and scoring != settings.scoring:
        note("the verdicts are those of the run, whose judge was asked for its own scoring and is not asked again")


def _rows(folder: RunFolder, known: Rows, settings: RunSettings, scheme: Scheme,
          scoring: Scoring) -> list[dict[str, Any]]:
    """The rows of the run's summary with the metrics of this scoring."""
    cells = [Cell(**{name: row[name] for name in FACTORS}) for row in known]
    by_cell: dict[str, list[Result]] = defaultdict(list)
    for result in rescore(folder, cells, scheme, scoring):
        by_cell[result.cell].append(result)
    return [{**row, "scoring": scoring, "metrics": aggregate(by_cell[cell.id], scoring, settings.seed,
                                                             refusing=may_refuse(cell.rules))}
            for row, cell in zip(known, cells, strict=True)]


def _changed(before: Rows, after: Rows) -> list[dict[str, Any]]:
    """Every mean that differs; one that is had in one of the two alone is None in the other."""
    changed = []
    for name, old, new in zip(labels(after), before, after, strict=True):
        for metric in dict.fromkeys([*old["metrics"], *new["metrics"]]):
            means = [row["metrics"].get(metric, {}).get("mean") for row in (old, new)]
            if means[0] != means[1]:
                changed.append({"cell": new["id"], "name": name, "metric": metric, "before": means[0],
                                "now": means[1]})
    return changed


def _show_changed(changed: Rows, before: Scoring, now: Scoring) -> None:
    if not changed:
        say("No figure differs from the run's own.")
        return
    say("")
    print_table(["cell", "metric", f"in the run ({before})", f"now ({now})"],
                [[one["name"], one["metric"], _figure(one["before"]), _figure(one["now"])] for one in changed],
                title="What differs")


def _figure(mean: float | None) -> str:
    return "-" if mean is None else f"{mean:.4f}"
