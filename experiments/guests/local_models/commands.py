"""`ragbed models list` and `ragbed models pull`."""
from __future__ import annotations

from typing import Annotated

import typer

from ragbed.experiments.commands.options import AsJson

Name = Annotated[str, typer.Argument(help="Name from `ragbed models list`, or hf:OWNER/REPO/FILE.gguf.")]


def list_models(json: AsJson = False) -> None:
    """List local models with size, licence and hash."""
    from ragbed.experiments.commands.listing import list_

    list_("models", json)


def pull_model(name: Name,
               offline: Annotated[bool, typer.Option("--offline", help=(
                   "Only check whether the model is on this machine."))] = False,
               json: AsJson = False) -> None:
    """Download a local model and verify its sha256."""
    from ragbed.experiments.guests.local_models.pull import pull
    from ragbed.experiments.terminal.display import Bars, print_result

    with Bars() as bars:
        path = pull(name, lambda done, total: bars("download", done, total), offline=offline)
    print_result(json, {"model": name, "path": str(path)}, str(path))
