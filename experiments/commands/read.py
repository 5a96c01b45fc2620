"""Commands that read a run, which may be unfinished."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbed.experiments.commands.options import AnyRun, AsJson, CellName, Labels
from ragbed.guests import entries, load, loaded, locate_run

if TYPE_CHECKING:
    from ragbed.experiments.analysis.view import View

_SHOWN = 200  # questions that a terminal shows


def report(run: AnyRun, labels: Labels = None, json: AsJson = False) -> None:
    """Write the report of a run as one HTML file."""
    from ragbed.experiments.report.page import report_run
    from ragbed.experiments.runs.finished import open_finished
    from ragbed.experiments.terminal.display import note, print_result

    complete = False
    while not complete:
        with open_finished(run, partial=True) as finished:
            views = [view for make in loaded("labels").values() for view in make(finished, labels)] if labels else []
            path = report_run(finished, views)
            inputs = load(entries("inputs")["run"])(finished) if json else {}
        # A run that finished meanwhile wrote its own report, which this one replaced.
        complete = not finished.unfinished or not (run / "summary.json").is_file()
    for text in finished.unfinished:
        note(text)
    print_result(json, {"run": str(run), "report": str(path), **finished.progress, "inputs": inputs},
                 str(path))


def show(run: Annotated[Path, typer.Argument(callback=locate_run, help="Folder of a run, which may be unfinished.")],
         question: Annotated[str, typer.Argument(help="An id, the beginning of one, or #N for the Nth question.")],
         cell: CellName = None,
         against: Annotated[str | None, typer.Option("--against", metavar="CELL", help=(
             "Draw the searches and calls of tools of two cells side by side."))] = None,
         prompts: Annotated[bool, typer.Option("--prompts", help="Include the prompts.")] = False,
         scores: Annotated[bool, typer.Option("--scores", help=(
             "Show every score, not only the run's columns."))] = False,
         json: AsJson = False) -> None:
    """Show one question: gold, answers, causes, scores and every step."""
    from ragbed.experiments.terminal.show import show_question

    if against is not None:
        load(entries("trajectory")["show_two"])(run, question, cell, against, json)
        return
    show_question(run, question, cell, prompts, scores, json)


def diagnose(run: AnyRun, cell: CellName = None,
             cause: Annotated[str | None, typer.Option("--cause", metavar="NAME", help=(
                 "List the questions with this cause, e.g. retrieval_miss."))] = None,
             json: AsJson = False) -> None:
    """Explain why answers are right or wrong: a cause for every question."""
    from dataclasses import asdict, replace

    from ragbed.documents.errors import RunError, did_you_mean
    from ragbed.experiments.analysis.causes import case_view, causes_by_name, find_cause, make_cases
    from ragbed.experiments.analysis.error_analysis import cause_views, summarise_causes
    from ragbed.experiments.analysis.tradeoff import estimate_tradeoff, refusal_views
    from ragbed.experiments.runs.finished import find_cells, open_finished
    from ragbed.experiments.terminal.display import print_text, say
    from ragbed.experiments.terminal.run_tables import print_views

    folded = (cause or "").strip().replace("-", "_").replace(" ", "_").lower()
    known = causes_by_name()
    wanted = known.get(folded) or next((one for one in known.values() if one.title == folded.replace("_", " ")), None)
    if cause is not None and wanted is None:
        raise RunError(f"unknown cause {cause!r}; {did_you_mean(cause, known)}choose from: {', '.join(known)}")
    with open_finished(run, partial=True) as read:
        names, grouped, metrics = find_cells(read.rows, cell), read.grouped.of, read.scheme.correctness_metrics
        cases = make_cases(read.cells, read.folder.results(), read.questions, metrics, read.scoring)
        found = summarise_causes(read.cells, cases, read.questions, metrics, grouped, read.seed)
        if found is None:
            raise RunError(f"{run}: its benchmark scores only retrieval, so no answer has a cause")
        traded = [row for row in estimate_tradeoff(read.cells, cases, grouped, read.made.sweeps, read.seed) or ()
                  if row["cell"] in names]
        cells, joint = ([{**row, "name": names[row["cell"]]} for row in found[part] if row["cell"] in names]
                        for part in ("cells", "joint"))
        views = [case_view(wanted, cases, names, read.questions)] if wanted else [
            *cause_views(found, names, metrics), *refusal_views(traded, read.rows, names, metrics)]
    if wanted and not json:
        for text in read.unfinished:
            print_text(text)
        view, = views
        if not view.rows:
            say(f"{view.title}: no question has this cause.")
            return
        print_views([replace(view, rows=view.rows[:_SHOWN])])
        if len(view.rows) > _SHOWN:
            say(f"and {len(view.rows) - _SHOWN} more, with --json")
        say(f"`ragbed show {run} QUESTION` shows a question with its evidence and steps.")
        return
    questions = {} if wanted is None else {"questions": [
        {"cell": cell, "name": label, "question": question, **asdict(case)} for cell, label in names.items()
        for question, case in cases[cell].items() if find_cause(case) is wanted]}
    heading = read.name if read.scheme.headline == "right" else f"{read.name}, right by {found['metric']}"
    show_views({"run": str(run), **read.progress, **found, "cells": cells, "joint": joint, "tradeoff": traded,
                **questions}, views, [heading, *read.unfinished], json)


def show_views(found: Mapping[str, Any], views: Sequence[View], heading: Sequence[str], json: bool) -> None:
    """Print the heading and the views, or everything as JSON."""
    from ragbed.experiments.terminal.display import print_json, print_text, say
    from ragbed.experiments.terminal.run_tables import print_views

    if json:
        print_json({**found, "views": [view.as_json() for view in views]})
        return
    for text in heading:
        print_text(text)
    say("")
    print_views(views, found.get("judge"))
