"""`ragbed demo`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import DEFAULT_MODEL, AsJson, ModelName


def demo(model: ModelName = DEFAULT_MODEL,
         out: Annotated[Path, typer.Option(help="Folder in which the run's folder `demo` is made.")] = Path("runs"),
         fresh: Annotated[bool, typer.Option("--fresh", help="Forget the journal and ask the model again.")] = False,
         json: AsJson = False) -> None:
    """Do the main job on bundled pages with a local model: index, five strategies, scores, report.

    A second time, the answers come from the journal of the first.
    """
    from experiments.settings.file import check_settings
    from experiments.terminal.run import carry_out
    from strategies.catalogue import CRESTS

    settings = check_settings({
        "name": "demo", "out": out, "benchmark": {"kind": "demo"}, "models": model, "reasoning": list(CRESTS),
        "retriever": {"kind": "dense", "k": 4}, "limits": {"max_tokens": 192},
    }, "demo")
    carry_out(settings, again=True, fresh=fresh, json=json)
