"""`ragbed rescore`."""
from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import AsJson


class ScoringName(StrEnum):
    """How answers are scored."""

    corrected = "corrected"
    as_published = "as-published"


def rescore(run: Annotated[Path, typer.Argument(help="A finished run's folder.")],
            scoring: Annotated[ScoringName | None, typer.Option(help="By default the run's own.")] = None,
            judge: Annotated[str | None, typer.Option(help="`lexical`, or a model, asked of every answer; by default "
                                                           "the verdicts are those of the run.")] = None,
            metric: Annotated[list[str] | None, typer.Option(
                "--metric", help="See `ragbed list metrics`; may be given again. Any that the records have what is "
                                 "needed for, also those of other benchmarks; by default the columns of the run's "
                                 "table.")] = None,
            plugin: Annotated[list[str] | None, typer.Option(
                "--plugin", metavar="FILE.py:FUNCTION", help="A strategy of the run that is code in a file: it is "
                "executed to read its replies again, if it is the file that the run was made with. May be given "
                "again.")] = None,
            json: AsJson = False) -> None:
    """Read and score a run again from its records, and show which figures differ. The run stays as it is."""
    from experiments.terminal.score_again import score_again

    score_again(run, scoring.value if scoring else None, judge, metric or [], json, plugin or [])
