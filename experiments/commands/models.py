"""`ragbed models`."""
from __future__ import annotations

from typing import Annotated

import typer

from experiments.commands.options import AsJson


def pull(name: Annotated[str, typer.Argument(help="A name from `ragbed list models`, or hf:OWNER/REPO/FILE.gguf.")],
         offline: Annotated[bool, typer.Option("--offline", help="Only say whether it is here.")] = False,
         json: AsJson = False) -> None:
    """Fetch a local model and check it against its sha256."""
    from agents.pull import pull as fetch
    from experiments.terminal.display import Bars, print_json, say

    with Bars() as bars:
        path = fetch(name, lambda done, total: bars("download", done, total), offline=offline)
    if json:
        print_json({"model": name, "path": str(path)})
    else:
        say(str(path))
