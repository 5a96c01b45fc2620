"""Commands that read a finished run."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragbed.experiments.commands.options import AsJson, CellName, FinishedRun, Labels, Metric, Texts
from ragbed.guests import load_for_folder, loaded, locate_run


def report(run: FinishedRun, labels: Labels = None, json: AsJson = False) -> None:
    """Write the report of a finished run as one HTML file."""
    from ragbed.experiments.report.page import report_run
    from ragbed.experiments.runs.finished import open_finished
    from ragbed.experiments.terminal.display import print_result

    with open_finished(run) as finished:
        views = [view for make in loaded("labels").values() for view in make(finished, labels)] if labels else []
        path = report_run(finished, views)
    print_result(json, {"run": str(run), "report": str(path)}, str(path))


def show(run: Annotated[Path, typer.Argument(callback=locate_run, help="Folder of a run, which may be unfinished.")],
         question: Annotated[str, typer.Argument(help="An id, the beginning of one, or #N for the Nth question.")],
         cell: CellName = None,
         prompts: Annotated[bool, typer.Option("--prompts", help="Include the prompts.")] = False,
         scores: Annotated[bool, typer.Option("--scores", help="Every score, not only the run's columns.")] = False,
         json: AsJson = False) -> None:
    """Show one question: gold, answers, causes, scores and every step."""
    from ragbed.experiments.terminal.show import show_question

    show_question(run, question, cell, prompts, scores, json)


def compare(first: Annotated[Path, typer.Argument(metavar="A", help="Folder of a finished run: the baseline.")],
            second: Annotated[Path | None, typer.Argument(metavar="B", help=(
                "Folder of another run, whose cells are compared with A's."))] = None,
            metric: Annotated[Texts, typer.Option("--metric", metavar="NAME", help=(
                "See `ragbed list metrics`. Default: headline."))] = None,
            cell: Annotated[Texts, typer.Option("--cell", metavar="NAME", help=(
                "Only cells with this name or part of it."))] = None,
            baseline: Annotated[str | None, typer.Option("--baseline", metavar="CELL", help=(
                "Compare every cell with this cell of A."))] = None,
            fail_if: Annotated[Texts, typer.Option("--fail-if", metavar="EXPR", help=(
                "Exit with status 1 if true for any cell."))] = None,
            shared: Annotated[bool, typer.Option("--shared", help=(
                "Check --fail-if over the questions that both runs have."))] = False,
            flips: Annotated[bool, typer.Option("--flips", help="List the questions whose score differs.")] = False,
            junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help=(
                "Write the --fail-if conditions as JUnit tests."))] = None,
            json: AsJson = False) -> None:
    """Test which differences between runs or cells are significant.

    Without B, compares the cells of A that differ in exactly one factor. The questions are paired, and p is corrected
    for the number of comparisons (Holm).

    --fail-if 'unified < baseline - 0.02' compares means, which chance may move. 'unified.high < baseline - 0.02' fails
    only if the whole 95 % interval of the difference lies below; 'unified.low < baseline - 0.02' fails unless the
    interval rules out such a loss.
    """
    from ragbed.experiments.terminal.analyses import show_comparisons, show_folder_comparison

    only_baseline = second is None and not any((metric, cell, fail_if, shared, flips, junit))
    if only_baseline and (compare_folder := load_for_folder("comparison", first)):
        found, views = compare_folder(first, baseline)
        show_folder_comparison(found, views, json)
        return
    first, second = locate_run(first), second and locate_run(second)
    show_comparisons((first, second), metric or [], cell or [], baseline, fail_if or [], shared=shared, flips=flips,
                     junit=junit, json=json)


def effects(run: FinishedRun, metric: Metric = None, json: AsJson = False) -> None:
    """Estimate the main effect of each factor, and which factors interact."""
    from ragbed.experiments.terminal.analyses import show_effects

    show_effects(run, metric, json)


def diagnose(run: FinishedRun, cell: CellName = None,
             cause: Annotated[str | None, typer.Option("--cause", metavar="NAME", help=(
                 "List the questions with this cause, e.g. retrieval_miss."))] = None,
             json: AsJson = False) -> None:
    """Explain why answers are right or wrong: a cause for every question."""
    from ragbed.experiments.terminal.analyses import diagnose as show_causes

    show_causes(run, cell, cause, json)
