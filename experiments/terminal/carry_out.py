"""Carrying out a run from the command line: progress, table, notes, report."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from agents.journal import Mode
from experiments.cassettes.replay import Replay
from experiments.cells import labels
from experiments.report.verdicts import headlines
from experiments.reporting import report_run
from experiments.running.runner import Watch, run
from experiments.runs.finished import Finished
from experiments.runs.store import RunFolder
from experiments.settings import RunSettings
from experiments.terminal.attribution import show_causes
from experiments.terminal.display import note, print_json, print_table, say
from experiments.terminal.failures import all_failed, on_failures
from experiments.terminal.in_turn import Put
from experiments.terminal.live import RunView
from experiments.terminal.replayed import on_replay
from experiments.terminal.stopping import stoppable
from experiments.terminal.tables import Table, on_published, run_table, view_tables
from experiments.terminal.tally import NOTHING, Tally


def carry_out(settings: RunSettings, mode: Mode = "record", again: bool = False, fresh: bool = False,
              json: bool = False, retry: str = "the same command", put: Put = print_json,
              replay: Replay | None = None) -> None:
    """Run or continue, write the report, and show the figures.

    Exit status 1 where every question ended without a reply, or a replay missed anything or gave
    other results than the cassette's.

    Args:
        json: the figures, and nothing else on stdout.
        retry: the command that asks again what failed.
        put: takes the figures as JSON.
        replay: the cassette that the run is made from.
    """
    started = time.monotonic()
    with stoppable("what was answered is kept, and the same command continues"):
        with RunView() as view:
            watch = Watch(view.stage, view.begun, view.record, view.note)
            folder = asyncio.run(run(settings, watch, mode, again, fresh, replay))
        try:
            _finish(folder, put if json else None, retry, view.tally, started)
            said, whole = on_replay(folder, settings, replay) if mode == "replay" else ([], True)
            for text in said:
                note(text)
            if all_failed(folder) or not whole:
                raise typer.Exit(1)
        finally:
            folder.close()


def _finish(folder: RunFolder, put: Put | None, retry: str, tally: Tally | None, started: float) -> None:
    """The report, the figures, and what failed."""
    report = report_run(Finished.of(folder))
    if put:
        put(run_json(folder))
    else:
        _show(folder)
    for text in on_failures(folder, retry):
        note(text)
    if not put:
        note(f"{tally.said() if tally else NOTHING}, {time.monotonic() - started:.0f} s")
        say(f"report: {report}")


def run_json(folder: RunFolder) -> dict[str, Any]:
    """The figures of a finished run as `ragbed run --json` prints them."""
    summary = folder.summary()
    return {"run": str(folder.path), **{name: summary[name] for name in (
        "columns", "cells", "views", "comparisons", "effects", "repeated", "attribution", "tradeoff", "published",
        "notes", "results")}}


def _show(folder: RunFolder) -> None:
    summary = folder.summary()
    for text in headlines(summary):
        say(text)
    say("")
    header, rows = run_table(summary["cells"], summary["columns"])
    print_table(header, rows, title=f"{summary['name']}: {summary['cells'][0]['scoring']} scoring, "
                                    f"judge {summary['cells'][0]['judge'] or 'none'}")
    _show_causes(summary)
    views = summary["views"]
    for view, (title, table) in zip(views, view_tables(views, summary["cells"][0]["judge"]), strict=True):
        _show_view(title, table, view["notes"])
    for text in [*summary["notes"], *on_published(summary["published"])]:
        say(text)


def _show_causes(summary: Mapping[str, Any]) -> None:
    """Why the questions came out as they did, where answers are scored."""
    said = summary["attribution"]
    if said is None:
        return
    say("")
    show_causes(said, dict(zip((row["id"] for row in summary["cells"]), labels(summary["cells"]), strict=True)))
    for text in said["notes"]:
        say(text)


def _show_view(title: str, table: Table | None, notes: Sequence[str]) -> None:
    """The view as a table with its notes, or one line that says where it is."""
    say("")
    if table is None:
        say(title)
        return
    print_table(*table, title=title)
    for text in notes:
        say(text)

