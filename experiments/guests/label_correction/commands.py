"""The command `ragbed judge`, and the views that `ragbed report --labels` adds."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragbed.experiments.commands.options import AsJson, FinishedRun, Labels, Texts

if TYPE_CHECKING:
    from ragbed.experiments.analysis.view import View
    from ragbed.experiments.runs.finished import Finished


def judge(run: FinishedRun,
          judge: Annotated[Texts, typer.Option("--judge", help="lexical, or a model. Repeatable.")] = None,
          repeats: Annotated[int, typer.Option(min=1, max=1000, help="How often each model judges.")] = 1,
          labels: Labels = None,
          sheet: Annotated[Path | None, typer.Option(
              "--sheet", help="Write a CSV file of the answers for people to grade.")] = None,
          json: AsJson = False) -> None:
    """Judge answers again; compare judges and people.

    Without --judge, --repeats repeats the run's own judge. With labels by people, the scores are also shown corrected
    for the judge's errors. The run stays as it is.
    """
    from ragbed.experiments.guests.label_correction.display import show_agreement

    show_agreement(run, judge or [], repeats, labels or [], sheet, json)


def label_views(run: Finished, labels: Sequence[Path]) -> list[View]:
    """Return views of the run's scores corrected by these label files."""
    from ragbed.experiments.guests.label_correction.inference import corrected_views
    from ragbed.experiments.guests.label_correction.sheets import read_raters
    from ragbed.experiments.guests.rescoring.rejudge import read_material
    from ragbed.experiments.settings.file import read_settings

    people = read_raters(labels, read_material(run.folder, read_settings(run.path / "config.yaml")))
    return corrected_views(run, people)
