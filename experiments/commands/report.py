"""`ragbed report`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(run: Annotated[Path, typer.Argument(help="A run's folder.")]) -> None:
    """Write the report of a finished run again: one HTML file that opens offline."""
    from experiments.display import say
    from experiments.reporting import report_run
    from experiments.store import RunFolder

    folder = RunFolder.existing(run)
    try:
        say(str(report_run(folder)))
    finally:
        folder.close()
