"""`ragbed ask`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import (
    DEFAULT_MODEL,
    AsJson,
    Asked,
    Conditions,
    IndexFolder,
    ModelName,
    RetrieverText,
    StepsTaken,
    Streamed,
    Traced,
)


def ask(question: Asked, index: IndexFolder,
        model: ModelName = DEFAULT_MODEL,
        reasoning: Annotated[str, typer.Option(help="A name of `ragbed list strategies`, FILE.py:FUNCTION, or settings "
                                                    "in YAML.")] = "chain_of_thought",
        retrieval: Annotated[str, typer.Option(help="Likewise.")] = "once",
        k: Annotated[int, typer.Option("-k", min=1, help="Chunks per search.")] = 5,
        retriever: RetrieverText = "dense", where: Conditions = None,
        max_tokens: Annotated[int, typer.Option(min=1, help="Limit on one reply.")] = 1024,
        temperature: Annotated[str, typer.Option(help="Of sampling; `none` sends none, for reasoning models.")] = "0",
        save: Annotated[Path | None, typer.Option(help="A file that keeps the question after each step, for `ragbed "
                                                       "resume`.")] = None,
        stop_after: StepsTaken = None, stream: Streamed = False, trace: Traced = False, json: AsJson = False) -> None:
    """Answer one question from an index, cited or refused. Exit status 1: neither, for the reason that is shown."""
    from agents.assistant import AssistantSettings
    from agents.settings import Limits, ModelSettings
    from documents.errors import SettingsError
    from experiments.settings.file import strategy_of
    from experiments.settings.finders import finding
    from experiments.terminal.ask import How, sit

    if stop_after is not None and save is None:
        raise SettingsError("--stop-after needs --save FILE, which keeps the question")
    if save is not None:
        _refuse_taken(save)
    kind, conditions = finding(retriever, where or [])
    settings = AssistantSettings(index=index, model=model, reasoning=strategy_of("reasoning", reasoning),
                                 retrieval=strategy_of("retrieval", retrieval), k=k,
                                 retriever=kind, where=conditions,
                                 limits=Limits(max_tokens=max_tokens),
                                 calls=ModelSettings(temperature=_temperature(temperature)))
    if not sit(settings, question, How(stream, trace, json, save, stop_after)):
        raise typer.Exit(1)


def _refuse_taken(save: Path) -> None:
    """Make sure that nothing is there; else a question that is kept there would be lost."""
    from documents.errors import SettingsError
    from documents.places import local

    if not local(save).exists():
        return
    from agents.checkpoint import read_state

    try:
        read_state(save)
    except SettingsError:
        raise SettingsError(f"{save} is there already, and keeps no question; name another file") from None
    raise SettingsError(f"{save} is there already; go on with what it keeps by `ragbed resume {save}`, or name another "
                        "file")


def _temperature(text: str) -> float | None:
    """A number of at least 0, or None for `none`."""
    from documents.errors import SettingsError

    if text.lower() == "none":
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise SettingsError(f"--temperature {text!r}: give a number of at least 0, or none")
    return value
