"""`ragbed diagnose`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import AsJson


def diagnose(run: Annotated[Path, typer.Argument(help="A finished run's folder.")],
              cell: Annotated[str | None, typer.Option(help="Only cells of this name, as tables show it, or part of "
                                                            "it, as in --cell direct; by default every one.")] = None,
              cause: Annotated[str | None, typer.Option(metavar="NAME", help="List the questions that have this cause, "
                                                        "such as retrieval_miss, each with what decided it.")] = None,
              json: AsJson = False) -> None:
    """Say why each question came out as it did: whether retrieval failed, reasoning, or something else."""
    from experiments.terminal.analyses import diagnose as show

    show(run, cell, cause, json)
