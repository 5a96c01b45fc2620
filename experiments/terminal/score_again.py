"""`ragbed rescore` at work: a finished run's figures computed anew from its records, beside those that it has."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from experiments.analysis.notes import unjudged
from experiments.analysis.view import View
from experiments.metrics import Scoring, aggregate, may_refuse
from experiments.record import Result
from experiments.running.rescore import Again, score_anew
from experiments.runs.finished import Finished, open_finished
from experiments.terminal.display import Bars, note, print_json, print_table, say
from experiments.terminal.tables import run_table
from experiments.terminal.view_tables import print_views
from experiments.words import figure

Rows = Sequence[Mapping[str, Any]]


def score_again(path: Path, scoring: Scoring | None, judge: str | None, metrics: Sequence[str], json: bool,
                plugins: Collection[str] = ()) -> None:
    """Read, judge and score again, and show; the run stays as it is. Exit status 1 where a judge was asked, and judged
    nothing.

    Args:
        scoring: without, that of the run.
        judge: asked anew of every answer; without, the verdicts are those of the run where answers are read as before.
        metrics: that are shown; without, the columns of the run's table, and whatever differs.
        plugins: strategies of files that may be executed.

    Raises:
        UserError: there is no finished run, or a metric is unknown.
    """
    with open_finished(path) as run, Bars() as bars:
        again = score_anew(run, scoring or run.scoring, judge, bars, metrics, plugins)
    rows = _rows(run.rows, again, run.grouped.of)
    changed = [one for one in _changed(run, rows) if not metrics or one["metric"] in metrics]
    if json:
        print_json({"run": str(path), "scoring": again.scoring, "judge": again.judge,
                    "columns": list(again.scheme.columns), "cells": rows, "changed": changed,
                    "read": asdict(again.read)})
    else:
        print_table(*run_table(rows, again.scheme.columns),
                    title=f"{run.name}: {again.scoring} scoring, computed again, judge {again.judge or 'none'}")
        say("")
        if changed:
            print_views([_changed_view(changed, run.scoring, again.scoring)])
        else:
            say("No figure differs from the run's own.")
        for text in [*again.notes, *_on_absent(metrics, rows)]:
            note(text)
    _end_if_unjudged(again)


def _end_if_unjudged(again: Again) -> None:
    verdicts = again.asked.values()
    if why := unjudged(verdicts):
        note(f"{again.judge}: {why}")
    if verdicts and all(verdict.unjudged for verdict in verdicts):
        raise typer.Exit(1)


def _on_absent(metrics: Sequence[str], rows: Rows) -> list[str]:
    return [f"{name}: no question of this run has it" for name in metrics
            if not any(row["metrics"].get(name, {"n": 0})["n"] for row in rows)]


def _rows(known: Rows, again: Again, grouped: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of the run's summary with the metrics of this scoring, reading and judge."""
    by_cell: dict[str, list[Result]] = defaultdict(list)
    for result in again.results:
        by_cell[result.cell].append(result)
    return [{**row, "scoring": again.scoring, "judge": again.judge,
             "metrics": aggregate(by_cell[row["id"]], again.scoring, again.seed, refusing=may_refuse(row["rules"]),
                                  clusters=[grouped[result.question] for result in by_cell[row["id"]]])}
            for row in known]


def _changed(run: Finished, after: Rows) -> list[dict[str, Any]]:
    """Every mean that differs; one that is had in one of the two alone is None in the other."""
    changed = []
    for old, new in zip(run.rows, after, strict=True):
        for metric in dict.fromkeys([*old["metrics"], *new["metrics"]]):
            was, now = (row["metrics"].get(metric) or {} for row in (old, new))
            if was.get("mean") != now.get("mean"):
                changed.append({"cell": new["id"], "name": run.labels[new["id"]], "metric": metric,
                                **_beside("before", was), **_beside("now", now)})
    return changed


def _beside(when: str, found: Mapping[str, Any]) -> dict[str, Any]:
    return {when: found.get("mean"), f"{when}_low": found.get("low"), f"{when}_high": found.get("high")}


def _changed_view(changed: Rows, before: Scoring, now: Scoring) -> View:
    rows = tuple((one["name"], one["metric"], *(figure(one[when], one[f"{when}_low"], one[f"{when}_high"], ".4f")
                                                for when in ("before", "now"))) for one in changed)
    return View("changed", "What differs", ("cell", "metric", f"in the run ({before})", f"now ({now})"), rows, 2, 3)
