"""The command `ragbed judge`, and the views that `ragbed report --labels` adds."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragbed.experiments.commands.options import AsJson, FinishedRun, Labels, Texts, refuse

if TYPE_CHECKING:
    from ragbed.experiments.analysis.view import View
    from ragbed.experiments.runs.finished import Finished


def judge(run: FinishedRun,
          judge: Annotated[Texts, typer.Option("--judge", help=(
              "Judge: `lexical` (compares words) or a model. Repeatable."))] = None,
          repeats: Annotated[int, typer.Option(min=1, max=1000, help="How often each model judges.")] = 1,
          labels: Labels = None,
          sheet: Annotated[Path | None, typer.Option(
              "--sheet", help="Write a CSV file of the answers for people to grade.")] = None,
          trial: Annotated[bool, typer.Option("--trial", help=(
              "Count the judge's errors on wrong and right answers made from gold."))] = False,
          questions: Annotated[int, typer.Option(min=2, help="Number of questions to use in --trial.")] = 40,
          dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what --trial would cost.")] = False,
          fail_if: Annotated[Texts, typer.Option("--fail-if", metavar="EXPR", help=(
              "Fail the trial if, e.g., 'false_accepts > 0.1'. Repeatable."))] = None,
          against: Annotated[str | None, typer.Option("--against", metavar="CELL", help=(
              "Let a model compare every other cell's answers with this cell's."))] = None,
          rubric: Annotated[Path | None, typer.Option("--rubric", metavar="FILE", help=(
              "Prompt of your own for --against."))] = None,
          json: AsJson = False) -> None:
    """Grade a run's answers again, and compare judges with people.

    Without --judge, the run's own judge grades again, --repeats times. With human grades, the scores are also shown
    corrected for the judge's errors. The run itself is not changed.

    With --trial, the judge grades answers whose grade is known, made from gold answers without a model. Its errors are
    counted by kind, and the run's shares of right answers are shown corrected for them.

    With --against, the judge sees two answers to each question, in both orders, and names the better one.
    """
    if against is not None:
        from ragbed.experiments.guests.own_judges.pairwise import show_pairs

        if len(judge or []) != 1 or trial or labels or sheet or repeats > 1 or dry_run or fail_if:
            refuse("--against needs one --judge MODEL, and can be combined with --rubric and --json only")
        show_pairs(run, against, (judge or [""])[0], rubric, json)
    elif rubric is not None:
        refuse("--rubric belongs to --against; add it")
    elif trial:
        from ragbed.experiments.guests.label_correction.display import show_trial

        if repeats > 1 or labels or sheet:
            refuse("--trial cannot be combined with --repeats, --labels or --sheet")
        show_trial(run, judge or [], questions, dry_run, fail_if or [], json)
    else:
        from ragbed.experiments.guests.label_correction.display import show_agreement

        if dry_run or fail_if:
            refuse("--dry-run and --fail-if belong to --trial; add it")
        show_agreement(run, judge or [], repeats, labels or [], sheet, json)


def label_views(run: Finished, labels: Sequence[Path]) -> list[View]:
    """Return views of the run's scores corrected by these label files."""
    from ragbed.experiments.guests.label_correction.inference import corrected_views
    from ragbed.experiments.guests.label_correction.sheets import read_raters
    from ragbed.experiments.guests.rescoring.rejudge import read_material
    from ragbed.experiments.settings.file import read_settings

    people = read_raters(labels, read_material(run.folder, read_settings(run.path / "config.yaml")))
    return corrected_views(run, people)
