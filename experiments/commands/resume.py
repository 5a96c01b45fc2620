"""`ragbed resume`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.options import AsJson, StepsTaken, Streamed, Traced


def resume(file: Annotated[Path, typer.Argument(help="Kept by `ragbed ask --save FILE`.")],
           index: Annotated[Path | None, typer.Option(help="Where the index is now, if it was moved.")] = None,
           model: Annotated[str | None, typer.Option(help=(
               "Where the model is reached now, if that changed; to be said of every URL of another machine, which "
               "gets your key."))] = None,
           plugin: Annotated[list[str] | None, typer.Option("--plugin", metavar="FILE.py:FUNCTION", help=(
               "A strategy of the question that is code in a file, which is executed. May be given again."))] = None,
           judge: Annotated[list[str] | None, typer.Option("--judge", metavar="URL#NAME", help=(
               "A relevance judge of the question at a URL of another machine, which gets your key. May be given "
               "again."))] = None,
           stop_after: StepsTaken = None, stream: Streamed = False, trace: Traced = False,
           json: AsJson = False) -> None:
    """Go on with a question that was saved, as if it had never been stopped; a last step that failed is made again.
    Exit status as that of `ragbed ask`."""
    from agents.checkpoint import read_state, settings_of
    from experiments.settings.trusted import check_named
    from experiments.terminal.ask import How, sit

    state = read_state(file)
    moved: dict[str, Any] = {name: value for name, value in (("index", index), ("model", model)) if value is not None}
    saved = settings_of(state)
    check_named(saved, file, {"--plugin": plugin or (), "--judge": judge or (), "--index": [index] if index else (),
                              "--model": [model] if model else ()})
    if not sit(saved.model_copy(update=moved), state, How(stream, trace, json, file, stop_after)):
        raise typer.Exit(1)
