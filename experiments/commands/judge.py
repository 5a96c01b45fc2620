"""`ragbed judge`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import AsJson


def judge(run: Annotated[Path, typer.Argument(help="A run's folder.")],
          judge: Annotated[list[str] | None, typer.Option(
              "--judge", help="lexical, or a model as for --model; may be given again.")] = None,
          repeats: Annotated[int, typer.Option(
              min=1, max=1000, help="How often each model judges; without --judge, the run's own.")] = 1,
          labels: Annotated[list[Path] | None, typer.Option(
              "--labels", help="A filled-in sheet, or JSON Lines with cell, question and grade; may be given again.",
          )] = None,
          sheet: Annotated[Path | None, typer.Option(
              "--sheet", help="Write a CSV file of the answers for people to grade.")] = None,
          json: AsJson = False) -> None:
    """Judge a run's answers again, and say how far its judge, these and people agree. The run stays as it is."""
    from experiments.terminal.judge_again import judge_again

    judge_again(run, judge or [], repeats, labels or [], sheet, json)
