"""Carrying out a run from the command line: progress, table, notes, report."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import typer

from agents.journal import Mode
from agents.types import Cost
from experiments.record import Record
from experiments.reporting import report_run
from experiments.runner import Watch, run
from experiments.settings import RunSettings
from experiments.store import RunFolder
from experiments.terminal.display import Bars, note, price, print_json, print_table, say
from experiments.terminal.failures import all_failed, on_failures
from experiments.terminal.tables import Table, on_published, run_table, view_tables


def carry_out(settings: RunSettings, mode: Mode = "record", again: bool = False, fresh: bool = False,
              json: bool = False, retry: str = "the same command") -> None:
    """Run or continue, write the report, and show the figures. Exit status 1 where every question ended in an error.

    Args:
        retry: the command that asks again what failed.
    """
    started = time.monotonic()
    try:
        with Bars() as bars:
            tally = _Tally(bars)
            folder = asyncio.run(run(settings, Watch(bars, tally.begin, tally.add, bars.note), mode, again, fresh))
    except KeyboardInterrupt:
        note("interrupted; what was answered is kept, and the same command continues")
        raise
    try:
        report = report_run(folder)
        if json:
            print_json(run_json(folder))
        else:
            _show(folder)
        for text in on_failures(folder, retry):
            note(text)
        if not json:
            note(f"{tally.done} records made now, {tally.cost.attempts} calls sent and {tally.cost.replayed} from the "
                 f"journal, paid now {price(tally.cost.paid)}, {time.monotonic() - started:.0f} s")
            say(f"report: {report}")
        if all_failed(folder):
            raise typer.Exit(1)
    finally:
        folder.close()


def run_json(folder: RunFolder) -> dict[str, Any]:
    """The figures of a finished run as `ragbed run --json` prints them."""
    summary = folder.summary()
    return {"run": str(folder.path), **{name: summary[name] for name in (
        "columns", "cells", "views", "published", "notes", "results")}}


def _show(folder: RunFolder) -> None:
    summary = folder.summary()
    header, rows = run_table(summary["cells"], summary["columns"])
    print_table(header, rows, title=f"{summary['name']}: {summary['cells'][0]['scoring']} scoring, "
                                    f"judge {summary['cells'][0]['judge'] or 'none'}")
    views = summary["views"]
    for view, (title, table) in zip(views, view_tables(views, summary["cells"][0]["judge"]), strict=True):
        _show_view(title, table, view["notes"])
    for text in [*summary["notes"], *on_published(summary["published"])]:
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


class _Tally:
    """Counts records as they are made."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._before = self._total = 0
        self.done = self.failed = 0
        self.cost = Cost()

    def begin(self, before: int, total: int) -> None:
        self._before, self._total = before, total
        self._bars("questions", before, total)

    def add(self, record: Record) -> None:
        self.done += 1
        timing = record.timing
        self.cost += Cost(timing.seconds, timing.attempts, timing.replayed, timing.paid)
        self.failed += record.result.failure is not None
        more = f"{self.cost.attempts} calls" + (f", {self.failed} failed" if self.failed else "")
        self._bars("questions", self._before + self.done, self._total, more)
