"""`ragbed report`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import AsJson


def report(run: Annotated[Path, typer.Argument(help="A run's folder.")], json: AsJson = False) -> None:
    """Write the report of a finished run again: one HTML file that opens offline."""
    from experiments.report.page import report_run
    from experiments.runs.finished import open_finished
    from experiments.terminal.display import print_json, say

    with open_finished(run) as finished:
        path = report_run(finished)
    if json:
        print_json({"run": str(run), "report": str(path)})
    else:
        say(str(path))
