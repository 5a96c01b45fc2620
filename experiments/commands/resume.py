"""`ragbed resume`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.options import AsJson, StepsTaken, Streamed, Traced


def resume(file: Annotated[Path, typer.Argument(help="Kept by `ragbed ask --save FILE`.")],
           index: Annotated[Path | None, typer.Option(help="Where the index is now, if it was moved.")] = None,
           model: Annotated[str | None, typer.Option(help="Where the model is reached now, if that changed.")] = None,
           stop_after: StepsTaken = None, stream: Streamed = False, trace: Traced = False,
           json: AsJson = False) -> None:
    """Go on with a question that was saved, as if it had never been stopped. Exit status as that of `ragbed ask`."""
    from agents.saved import read_state, settings_of
    from experiments.terminal.sitting import How, sit

    state = read_state(file)
    moved: dict[str, Any] = {name: value for name, value in (("index", index), ("model", model)) if value is not None}
    settings = settings_of(state).model_copy(update=moved)
    if not sit(settings, state, How(stream, trace, json, file, stop_after)):
        raise typer.Exit(1)
