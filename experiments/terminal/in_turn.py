"""Carrying out several runs by one command, one after the other."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from documents.errors import UserError
from experiments.running.outset import check_all
from experiments.settings import RunSettings
from experiments.terminal.display import note, print_json

Put = Callable[[Mapping[str, Any]], None]
_ALL_FAILED, _MENDABLE = 1, 2


def in_turn(runs: Sequence[RunSettings], carry_out: Callable[[RunSettings, Put], None], json: bool = False,
            fresh: bool = False, replay: bool = False) -> None:
    """Carry out each run; one that stops does not keep the next from its turn. Exit status: the worst of all.

    Args:
        carry_out: carries out one, and hands on its figures as JSON where these are wanted.
        json: print the figures of all, as a list.

    Raises:
        RunError: one of them could not begin, so none did.
    """
    check_all(runs, fresh, replay)
    figures: list[Mapping[str, Any]] = []
    worst = 0
    for place, settings in enumerate(runs, start=1):
        note(f"run {place} of {len(runs)}: {settings.folder}")
        try:
            carry_out(settings, figures.append)
        except UserError as error:
            note(f"ragbed: {' '.join(str(error).split())}")
            worst = _MENDABLE
        except typer.Exit as ended:
            if ended.exit_code != _ALL_FAILED:  # it was ended by a signal, which means all of them
                raise
            worst = max(worst, _ALL_FAILED)
    if json:
        print_json(figures)
    if worst:
        raise typer.Exit(worst)
