"""`ragbed judge` and `ragbed rescore` at work: how far raters agree on answers, and figures computed anew."""
from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from ragbed.agents.types import Cost
from ragbed.experiments.analysis.agreement import Rater, agreement_view, agreements
from ragbed.experiments.analysis.corrected import corrected_views
from ragbed.experiments.analysis.notes import LEXICAL, unjudged
from ragbed.experiments.analysis.view import View
from ragbed.experiments.judges.sentence_support import check_named
from ragbed.experiments.metrics import Scoring, aggregate, may_refuse
from ragbed.experiments.record import Result
from ragbed.experiments.running.rejudge import Material, judges_named, material_of, raters_of, rejudge, write_sheet
from ragbed.experiments.running.rescore import Again, score_anew
from ragbed.experiments.runs.finished import Finished, open_finished
from ragbed.experiments.runs.store import RunFolder, hold
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.file import read_settings
from ragbed.experiments.terminal.display import Bars, note, print_json, print_table, say, stoppable
from ragbed.experiments.terminal.tables import print_views, run_table
from ragbed.experiments.words import figure, price


def show_agreement(path: Path, names: Sequence[str], repeats: int, labels: Sequence[Path], sheet: Path | None,
                json: bool) -> None:
    """Judge, compare and show. The run's own judge is compared too, by what its records hold. Raises UserError for what
    the user can mend."""
    with ExitStack() as opened:
        folder = RunFolder.existing(path)
        opened.callback(folder.close)
        settings = read_settings(path / "config.yaml")
        material = material_of(folder, settings)
        people = raters_of(labels, material)
        if sheet is not None:
            write_sheet(sheet, material)
            note(f"sheet: {len(material.graded)} answers to grade in {sheet}")
        names = names or ([settings.judge.name] if repeats > 1 else [])
        if sheet is not None and not names and not people:
            if json:
                print_json({"run": str(path), "sheet": str(sheet), "answers": len(material.graded)})
            return
        views = corrected_views(Finished.of(folder), people) if people else []
        raters, spent = _judged(folder, settings, material, names, repeats, opened)
    raters += people
    found = agreements(raters, material.rubric, material.steps, settings.seed)
    views = [*([agreement_view(found, material.rubric, len(material.graded))] if found else []), *views]
    if not json:
        _show(settings, raters, views, spent)
        return
    print_json({"run": str(path), "rubric": material.rubric, "answers": len(material.graded),
                "raters": [{"name": rater.name, "answers": len(rater.verdicts),
                            "unjudged": sum(verdict.unjudged for verdict in rater.verdicts.values()),
                            "why": unjudged(rater.verdicts.values())} for rater in raters],
                "pairs": [asdict(pair) for pair in found], "views": [view.as_json() for view in views],
                "calls": spent.attempts, "replayed": spent.replayed, "paid": spent.paid,
                "temperature": settings.calls.temperature})


def _judged(folder: RunFolder, settings: RunSettings, material: Material, names: Sequence[str], repeats: int,
            opened: ExitStack) -> tuple[list[Rater], Cost]:
    """The run's own verdicts, unless its judge is asked anew, and those of the judges."""
    own = settings.judge.name
    recorded = [] if own in names else [Rater(f"{own} (the run's)", material.recorded)]
    if not names:
        return recorded, Cost()
    judges = judges_named(names, settings)
    opened.callback(hold(folder.path).release)
    with stoppable("what was judged is kept in the run's journal, and the same command continues"), Bars() as bars:
        judged, spent = asyncio.run(rejudge(folder, settings, material, judges, repeats, bars))
    return recorded + judged, spent


def _show(settings: RunSettings, raters: Sequence[Rater], views: Sequence[View], spent: Cost) -> None:
    say(settings.name)
    print_views(views)
    if not views:
        say(f"{raters[0].name} alone has nobody to agree with; give --judge, --repeats or --labels")
    for rater in raters:
        if why := unjudged(rater.verdicts.values()):
            say(f"{rater.name}: {why}.")
    if any(rater.name.startswith("lexical") for rater in raters):
        say(LEXICAL)
    if settings.calls.temperature == 0 and any(rater.name.endswith(" #2") for rater in raters):
        say("Repeats are asked at the run's temperature, 0: they differ in their seed and in what the server leaves to "
            "chance, so their agreement says little of how sure the judge is.")
    note(f"{spent.attempts} calls sent and {spent.replayed} from the journal, paid now {price(spent.paid)}")


Rows = Sequence[Mapping[str, Any]]


def show_rescored(path: Path, scoring: Scoring | None, judge: str | None, metrics: Sequence[str], json: bool,
                plugins: Collection[str] = (), support: str | None = None) -> None:
    """Read, judge and score again, and show; the run stays as it is. Exit status 1 where a judge was asked, and judged
    nothing. Without a scoring it is that of the run, and without a judge the verdicts are, where answers are read as
    before. Without metrics the columns of the run's table are shown, and whatever differs. Plugins are strategies of
    files that may be executed. Raises UserError where there is no finished run, or a metric is unknown."""
    with open_finished(path) as run, Bars() as bars:
        check = None if support is None else check_named(support)
        again = score_anew(run, scoring or run.scoring, judge, bars, metrics, plugins, check)
    rows = _rows(run.rows, again, run.grouped.of)
    changed = [one for one in _changed(run, rows) if not metrics or one["metric"] in metrics]
    if json:
        print_json({"run": str(path), "scoring": again.scoring, "judge": again.judge,
                    "columns": list(again.scheme.columns), "cells": rows, "changed": changed,
                    **({} if check is None else {"support": [
                        {"cell": one.cell, "question": one.question, **one.support.model_dump(mode="json")}
                        for one in again.results if one.support]}),
                    "read": asdict(again.read)})
    else:
        print_table(*run_table(rows, again.scheme.columns),
                    title=f"{run.name}: {again.scoring} scoring, computed again, judge {again.judge or 'none'}")
        say("")
        if changed:
            shown = tuple((one["name"], one["metric"], *(
                figure(one[when], one[f"{when}_low"], one[f"{when}_high"], ".4f") for when in ("before", "now")))
                for one in changed)
            print_views([View("changed", "What differs", (
                "cell", "metric", f"in the run ({run.scoring})", f"now ({again.scoring})"), shown, 2, 3)])
        else:
            say("No figure differs from the run's own.")
        for text in [*again.notes, *(f"{name}: no question of this run has it" for name in metrics
                                     if not any(row["metrics"].get(name, {"n": 0})["n"] for row in rows))]:
            note(text)
    verdicts = again.asked.values()
    if why := unjudged(verdicts):
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


def _changed(run: Finished, after: Rows) -> list[dict[str, Any]]:
    """Every mean that differs; one that is had in one of the two alone is None in the other."""
    changed = []
    for old, new in zip(run.rows, after, strict=True):
        for metric in dict.fromkeys([*old["metrics"], *new["metrics"]]):
            was, now = (row["metrics"].get(metric) or {} for row in (old, new))
            if was.get("mean") != now.get("mean"):
                changed.append({"cell": new["id"], "name": run.labels[new["id"]], "metric": metric, **{
                    when + end: found.get(part) for when, found in (("before", was), ("now", now))
                    for end, part in (("", "mean"), ("_low", "low"), ("_high", "high"))}})
    return changed
