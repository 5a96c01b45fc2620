"""The command that runs the demo."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragbed.experiments.commands.options import DEFAULT_MODEL, AsJson, ModelName


def demo(model: ModelName = DEFAULT_MODEL,
         out: Annotated[Path, typer.Option("--out", help="Folder of the runs `demo` and `demo-live`.")] = Path("runs"),
         live: Annotated[bool, typer.Option("--live", help=(
             "Ask the live model all questions, not just the first few."))] = False,
         fresh: Annotated[bool, typer.Option("--fresh", help="Delete earlier results and start again.")] = False,
         full: Annotated[bool, typer.Option("--full", help="Also print all metrics, causes and notes.")] = False,
         json: AsJson = False) -> None:
    """Try ragbed on bundled questions, with recorded replies.

    The demo compares five strategies on 60 questions. A 1.5-billion-parameter model answered them in advance, and its
    replies are bundled; everything else is computed on this machine. Then a small local model answers the first few
    questions live.
    """
    from ragbed.agents.models import resolve_model
    from ragbed.experiments.guests.demo.demo import demo as carry_out
    from ragbed.experiments.terminal.display import Bars, note

    if fetch := resolve_model(model, calls=False).fetch:
        note(f"downloading {model}, only once")
        with Bars() as bars:
            fetch(lambda done, total: bars("download", done, total))
    carry_out(model, out, fresh, live, json, full)
