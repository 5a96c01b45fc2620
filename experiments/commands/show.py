"""`ragbed show`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import AsJson


def show(run: Annotated[Path, typer.Argument(help="A run's folder; the run need not have finished.")],
         question: Annotated[str, typer.Argument(help="An id, the beginning of one, or #N for the Nth.")],
         cell: Annotated[str | None, typer.Option(help="Only cells of this name, as tables show it, or part of it, as "
                                                       "in --cell direct; by default every one.")] = None,
         prompts: Annotated[bool, typer.Option("--prompts", help="With the prompts as they were sent.")] = False,
         scores: Annotated[bool, typer.Option("--scores", help="Every score, not those of the run's table "
                                                               "alone.")] = False,
         json: AsJson = False) -> None:
    """Show one question of a run: gold, answers, their causes, citations, scores, and every step that led
    there."""
    from experiments.terminal.show import show_question

    show_question(run, question, cell, prompts, scores, json)
