"""`ragbed models`."""
from __future__ import annotations

from pathlib import Path
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


def distil(model: Annotated[str, typer.Argument(help="A sentence-transformers model: folder or name.")],
           out: Annotated[Path, typer.Option("--out", help="The folder of the static model.")],
           dimensions: Annotated[int, typer.Option(min=8, help="Of its vectors, at most the model's own.")] = 256,
           json: AsJson = False) -> None:
    """Make a static model out of a sentence-transformers model that is here; `static:DIR` then embeds with it."""
    from experiments.terminal.display import Bars, print_json, say
    from retrieval.embedders.distilling import distil as make

    with Bars() as bars:
        tokens = make(model, out, dimensions, bars)
    if json:
        print_json({"model": model, "path": str(out), "tokens": tokens})
    else:
        say(f"{tokens} tokens; name it static:{out}")
