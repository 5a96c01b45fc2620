"""Commands that read a finished run."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragbed.experiments.commands.options import AsJson, CellName, FinishedRun, Labels, Metric, Texts
from ragbed.guests import load_for_folder, locate_run


def report(run: FinishedRun, labels: Labels = None, json: AsJson = False) -> None:
    """Write the report of a finished run: one HTML file."""
    from ragbed.experiments.analysis.corrected import corrected_views
    from ragbed.experiments.report.page import report_run
    from ragbed.experiments.running.rejudge import material_of, raters_of
    from ragbed.experiments.runs.finished import open_finished
    from ragbed.experiments.settings.file import read_settings
    from ragbed.experiments.terminal.display import print_result

    with open_finished(run) as finished:
        people = raters_of(labels, material_of(finished.folder, read_settings(run / "config.yaml"))) if labels else []
        path = report_run(finished, corrected_views(finished, people) if people else ())
    print_result(json, {"run": str(run), "report": str(path)}, str(path))


def show(run: Annotated[Path, typer.Argument(callback=locate_run,
                                             help="A run's folder; the run need not have finished.")],
         question: Annotated[str, typer.Argument(help="An id, the beginning of one, or #N for the Nth.")],
         cell: CellName = None,
         prompts: Annotated[bool, typer.Option("--prompts", help="With the prompts as they were sent.")] = False,
         scores: Annotated[bool, typer.Option(
             "--scores", help="Every score, not those of the run's table alone.")] = False,
         json: AsJson = False) -> None:
    """Show one question: gold, answers, causes, scores, every step."""
    from ragbed.experiments.terminal.show import show_question

    show_question(run, question, cell, prompts, scores, json)


def compare(first: Annotated[Path, typer.Argument(metavar="A", help=(
                "A finished run's folder: the baseline. Or the traffic of a live experiment, which takes --baseline "
                "and --json alone."))],
            second: Annotated[Path | None, typer.Argument(
                metavar="B", help="Another run's, whose cells are compared with A's. Without, those cells of A "
                                    "are compared that differ in one factor, as in its summary and report.")] = None,
            metric: Annotated[Texts, typer.Option(
                "--metric", help="See `ragbed list metrics`; may be given again. By default the first of the run's "
                                 "table.")] = None,
            cell: Annotated[Texts, typer.Option(
                "--cell", help="Only cells of this name: what a row is called, its id, or parts of it such as "
                               "`direct` or `repeat 0`; may be given again.")] = None,
            baseline: Annotated[str | None, typer.Option(
                "--baseline", help="The cell of A that all are compared with, named as for --cell; in one run with "
                                   "--cell or --fail-if the first of them by default.")] = None,
            fail_if: Annotated[Texts, typer.Option(
                "--fail-if", metavar="EXPR", help="Exit status 1 where it holds of any cell, such as 'unified < "
                                                  "baseline - 0.02' of the means, which chance alone may bring about; "
                                                  "'unified.high < baseline - 0.02' where the 95 % interval of the "
                                                  "difference is wholly below; 'unified.low < baseline - 0.02' where "
                                                  "it does not rule such a loss out. May be given again.")] = None,
            shared: Annotated[bool, typer.Option(
                "--shared", help="Check --fail-if over the questions that both runs have. Without, it is refused where "
                                 "one of them has others.")] = False,
            flips: Annotated[bool, typer.Option("--flips", help="List the questions whose score differs.")] = False,
            junit: Annotated[Path | None, typer.Option(help="Write the conditions of --fail-if to this file as JUnit's "
                                                            "tests.")] = None,
            json: AsJson = False) -> None:
    """Tell which differences between runs or cells are real.

    Cells are compared question by question; the configurations of a live experiment by threads, with a test that holds
    however often one looks.
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
    """Show what each factor does over the levels of the others.

    And which two depend on each other.
    """
    from ragbed.experiments.terminal.analyses import show_effects

    show_effects(run, metric, json)


def diagnose(run: FinishedRun, cell: CellName = None,
             cause: Annotated[str | None, typer.Option(metavar="NAME", help="List the questions that have this cause, "
                                                       "such as retrieval_miss, each with what decided it.")] = None,
             json: AsJson = False) -> None:
    """Say why each question came out as it did."""
    from ragbed.experiments.terminal.analyses import diagnose as show_causes

    show_causes(run, cell, cause, json)
