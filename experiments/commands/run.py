"""`ragbed run`."""
from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from experiments.commands.options import AsJson


class JournalMode(StrEnum):
    """How the journal of calls is used."""

    record = "record"
    live = "live"
    replay = "replay"


def run(config: Annotated[Path, typer.Argument(help="A YAML file of settings; see `ragbed schema`.")],
        limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many questions, as a run of its own: "
                                                              "NAME-limit-N.")] = None,
        fresh: Annotated[bool, typer.Option("--fresh", help="Remove what an earlier run left and begin anew.")] = False,
        retry: Annotated[bool, typer.Option("--retry", help="Ask again what failed; the other calls come from the "
                                                            "journal.")] = False,
        journal: Annotated[JournalMode, typer.Option(help="record: calls made before are not made again; live: every "
                                                          "call is made, and the records are made anew; replay: no "
                                                          "call is made, the records are made anew from the "
                                                          "journal.")] = JournalMode.record,
        json: AsJson = False) -> None:
    """Carry out an experiment, or continue it where it stopped. Exit status 1: every question ended in an error."""
    from documents.errors import SettingsError
    from experiments.carry_out import carry_out
    from experiments.settings_file import read_settings

    if fresh and journal is JournalMode.replay:
        raise SettingsError("--fresh removes the journal that --journal replay reads; give one of the two")
    settings = read_settings(config)
    if limit is not None:
        benchmark = settings.benchmark.model_copy(update={"limit": limit})
        settings = settings.model_copy(update={"benchmark": benchmark, "name": f"{settings.name}-limit-{limit}"})
    limited = "" if limit is None else f" --limit {limit}"
    carry_out(settings, journal.value, again=retry or journal is not JournalMode.record, fresh=fresh, json=json,
              retry=f"`ragbed run {quote(str(config))}{limited} --retry`")
