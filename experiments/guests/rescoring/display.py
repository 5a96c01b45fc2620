"""Show `ragbed rescore`: figures recomputed from a run's records."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from ragbed.experiments.analysis.notes import describe_unjudged
from ragbed.experiments.analysis.view import View
from ragbed.experiments.formatting import estimate
from ragbed.experiments.guests.answer_support.support_checks import parse_support
from ragbed.experiments.guests.rescoring.rescore import Again, score_anew
from ragbed.experiments.metrics import Scoring, aggregate, may_refuse
from ragbed.experiments.record import Result
from ragbed.experiments.runs.finished import Finished, open_finished
from ragbed.experiments.terminal.display import Bars, note, print_json, print_table, say
from ragbed.experiments.terminal.run_tables import print_views, run_table

Rows = Sequence[Mapping[str, Any]]


def show_rescored(path: Path, scoring: Scoring | None, judge: str | None, metrics: Sequence[str], json: bool,
                plugins: Collection[str] = (), support: str | None = None) -> None:
    """Parse, judge and score a run again, and show the figures. The run is not changed.

    Args:
        scoring: None for the scoring of the run.
        judge: if None, answers that are parsed as before keep their verdicts.
        metrics: metrics to show. Default: the columns of the run's table and all figures that differ.
        plugins: strategy files that may be executed.

    Exit status 1: a judge was called and gave no verdict. Raises UserError if there is no finished run, or a metric is
    unknown."""
    with open_finished(path) as run, Bars() as bars:
        check = None if support is None else parse_support(support)
        again = score_anew(run, scoring or run.scoring, judge, bars, metrics, plugins, check)
    rows = _rows(run.rows, again, run.grouped.of)
    if any(":" in name for name in metrics):  # functions, of which the columns have the names
        metrics = [name for name in again.scheme.columns if any(name in row["metrics"] for row in rows)]
    changed = [one for one in _find_changes(run, rows) if not metrics or one["metric"] in metrics]
    if json:
        print_json({"run": str(path), "scoring": again.scoring, "judge": again.judge,
                    "columns": list(again.scheme.columns), "cells": rows, "changed": changed,
                    **({} if check is None else {"support": [
                        {"cell": one.cell, "question": one.question, **one.support.model_dump(mode="json")}
                        for one in again.results if one.support]}),
                    "read": asdict(again.read)})
    else:
        print_table(*run_table(rows, again.scheme.columns),
                    title=f"{run.name}: {again.scoring} scoring, recomputed, judge {again.judge or 'none'}")
        say("")
        if changed:
            shown = tuple((one["name"], one["metric"], *(
                estimate(one[when], one[f"{when}_low"], one[f"{when}_high"], ".4f") for when in ("before", "now")))
                for one in changed)
            print_views([View("changed", "Figures that differ", (
                "cell", "metric", f"in the run ({run.scoring})", f"now ({again.scoring})"), shown, 2, 3)])
        else:
            say("No figure differs from the run's.")
        for text in [*again.notes, *(f"{name}: no question of this run has it" for name in metrics
                                     if not any(row["metrics"].get(name, {"n": 0})["n"] for row in rows))]:
            note(text)
    verdicts = again.asked.values()
    if why := describe_unjudged(verdicts):
        note(f"{again.judge}: {why}")
    if verdicts and all(verdict.unjudged for verdict in verdicts):
        raise typer.Exit(1)


def _rows(known: Rows, again: Again, grouped: Mapping[str, str]) -> list[dict[str, Any]]:
    by_cell: dict[str, list[Result]] = defaultdict(list)
    for result in again.results:
        by_cell[result.cell].append(result)
    return [{**row, "scoring": again.scoring, "judge": again.judge,
             "metrics": aggregate(by_cell[row["id"]], again.scoring, again.seed, refusing=may_refuse(row["rules"]),
                                  clusters=[grouped[result.question] for result in by_cell[row["id"]]])}
            for row in known]


def _find_changes(run: Finished, after: Rows) -> list[dict[str, Any]]:
    """Return every mean that differs. If only one side has a mean, the other is None."""
    changed = []
    for old, new in zip(run.rows, after, strict=True):
        for metric in dict.fromkeys([*old["metrics"], *new["metrics"]]):
            was, now = (row["metrics"].get(metric) or {} for row in (old, new))
            if was.get("mean") != now.get("mean"):
                changed.append({"cell": new["id"], "name": run.labels[new["id"]], "metric": metric, **{
                    when + end: found.get(part) for when, found in (("before", was), ("now", now))
                    for end, part in (("", "mean"), ("_low", "low"), ("_high", "high"))}})
    return changed
