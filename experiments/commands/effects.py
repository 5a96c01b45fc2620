"""`ragbed effects`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import AsJson


def effects(run: Annotated[Path, typer.Argument(help="A finished run's folder.")],
            metric: Annotated[str | None, typer.Option(
                help="See `ragbed list metrics`; by default the first column of the run's table.")] = None,
            json: AsJson = False) -> None:
    """Show what each factor of a run does, over the levels of the others, and which two depend on each other."""
    from experiments.terminal.analyses import show_effects

    show_effects(run, metric, json)
