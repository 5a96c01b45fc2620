"""`ragbed resume`."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import AsJson, StepsTaken, Streamed, Traced

if TYPE_CHECKING:
    from agents.assistant import AssistantSettings


def resume(file: Annotated[Path, typer.Argument(help="Kept by `ragbed ask --save FILE`.")],
           index: Annotated[Path | None, typer.Option(help="Where the index is now, if it was moved.")] = None,
           model: Annotated[str | None, typer.Option(help="Where the model is reached now, if that changed.")] = None,
           plugin: Annotated[list[str] | None, typer.Option("--plugin", metavar="FILE.py:FUNCTION", help=(
               "A strategy of the question that is code in a file, which is executed. May be given again."))] = None,
           stop_after: StepsTaken = None, stream: Streamed = False, trace: Traced = False,
           json: AsJson = False) -> None:
    """Go on with a question that was saved, as if it had never been stopped. Exit status as that of `ragbed ask`."""
    from agents.saved import read_state, settings_of
    from experiments.terminal.sitting import How, sit

    state = read_state(file)
    moved: dict[str, Any] = {name: value for name, value in (("index", index), ("model", model)) if value is not None}
    settings = settings_of(state).model_copy(update=moved)
    _check_named(settings, plugin or [], file)
    if not sit(settings, state, How(stream, trace, json, file, stop_after)):
        raise typer.Exit(1)


def _check_named(settings: AssistantSettings, plugins: list[str], file: Path) -> None:
    """Make sure that the user names each file that is executed: what was saved may be a stranger's."""
    from documents.errors import SettingsError
    from strategies.settings.choosing import named

    files = (*named("reasoning", settings.reasoning).files, *named("retrieval", settings.retrieval).files)
    unnamed = next((one for one in files if one not in plugins), None)
    if unnamed is not None:
        raise SettingsError(f"{file}: the question goes on with {unnamed}, which is code; read the file, then give "
                            f"--plugin {unnamed} to execute it")
