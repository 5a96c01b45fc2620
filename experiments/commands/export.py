"""`ragbed export`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import AsJson


def export(run: Annotated[Path, typer.Argument(help="A finished run's folder.")],
           to: Annotated[str, typer.Argument(metavar="TO", help=(
               "A file, whose ending says in what form: .csv and .parquet for a row for each question in each cell, "
               ".jsonl for all that is stored of it, prompts and evidence too, .xml for JUnit, where a question passes "
               "whose answer is right by its score, whatever it cites or rests on, and fails whose answer is wrong; "
               "or mlflow, or mlflow:URI, of a folder or a server."))], json: AsJson = False) -> None:
    """Write a run's records for other tools."""
    from experiments.export import export as write
    from experiments.runs.finished import open_finished
    from experiments.terminal.display import print_json, say

    with open_finished(run) as finished:
        said = write(finished, to)
    if json:
        print_json({"run": str(run), "to": to, "said": said})
    else:
        say(said)
