"""`ragbed budgets`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import AsJson


def budgets(run: Annotated[Path, typer.Argument(help="A finished run's folder.")],
            unit: Annotated[str, typer.Option(help="What is budgeted for each question: tokens, calls, searches or "
                                                   "seconds.")] = "tokens",
            at: Annotated[str | None, typer.Option(help="Budgets, as in 500,1000,2000; by default those that a tenth "
                                                        "to all of the records keep.")] = None,
            metric: Annotated[str | None, typer.Option(
                help="See `ragbed list metrics`; by default the first column of the run's table.")] = None,
            json: AsJson = False) -> None:
    """Show what each way of answering reaches where all have the same budget for each question.

    An answer that took more than the budget counts as ended by it, so that a strategy is not better merely for having
    spent more. Nothing is asked again.
    """
    from experiments.terminal.analyses import show_budgets

    show_budgets(run, unit, at, metric, json)
