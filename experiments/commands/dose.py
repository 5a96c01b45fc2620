"""`ragbed dose`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import AsJson


def dose(run: Annotated[Path, typer.Argument(help="A finished run's folder.")],
         metric: Annotated[str | None, typer.Option(
             help="By which curves are compared; see `ragbed list metrics`; by default the first column of the run's "
                  "table.")] = None,
         json: AsJson = False) -> None:
    """Show what more, or harder, negatives do to each way of answering, and the area under each curve.

    A run for it has several doses: under conditions: evidence, perturbations: none, negatives@2, negatives@5 and
    negatives@10; under conditions: retrieved, several retrievers and perturbations: among@5, among@10 and among@20.
    Negatives of a hardness, as in negatives@4:easy, negatives@4:medium and negatives@4:hard (the easiest, the middle
    and the hardest third of each question's own), are mined by `ragbed negatives`.
    """
    from experiments.terminal.analyses import show_dose

    show_dose(run, metric, json)
