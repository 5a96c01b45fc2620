"""Carry out one run, or several in turn, from the command line, with progress, table, notes, failures and report."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shlex import join
from typing import Any

import typer

from ragbed.agents.journal import Mode
from ragbed.documents.errors import UserError
from ragbed.documents.shards import Shard
from ragbed.experiments.report.page import report_run
from ragbed.experiments.running.replay import Replay, count_misses
from ragbed.experiments.running.runner import RunCallbacks, check_all, run
from ragbed.experiments.runs.finished import Finished, read_trial
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.terminal.display import note, print_json, print_text, say, stoppable
from ragbed.experiments.terminal.progress import NOTHING, RunView
from ragbed.experiments.terminal.run_tables import all_failed, on_failures, print_summary


def describe_replay(folder: RunFolder, settings: RunSettings, replay: Replay | None) -> tuple[list[str], bool]:
    """Return lines that describe missed calls and differences from the recorded results, and whether everything is as
    recorded. Without a cassette, the run's own journal was replayed."""
    missed = count_misses(folder)
    if missed:
        return [f"{missed} calls or searches are not in {replay.path if replay else 'the journal'}; each record says "
                "how its call differs from the nearest one"], False
    if replay is None or not replay.same_settings(settings):
        return [], True
    if folder.summary()["results"] == replay.about.results:
        return [f"the results equal those recorded in {replay.path}"], True
    return [f"the results differ from those that ragbed {replay.cassette.ragbed} recorded in {replay.path}: this "
            f"version parses or scores replies differently, or the file was changed"], False


Put = Callable[[Mapping[str, Any]], None]
_ALL_FAILED, _MENDABLE = 1, 2


def in_turn(runs: Sequence[RunSettings], carry_out: Callable[[RunSettings, Put], None], json: bool = False,
            fresh: bool = False, replay: bool = False, shard: Shard | None = None) -> None:
    """Carry out each run, even if an earlier one stopped. With `json`, print the figures of all runs as a list.

    Exits with the worst status of all runs. If one run cannot begin, none begins, and RunError is raised.
    """
    check_all(runs, fresh, replay, shard)
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
            if ended.exit_code != _ALL_FAILED:  # a signal ends all of them
                raise
            worst = max(worst, _ALL_FAILED)
    if json:
        print_json(figures)
    if worst:
        raise typer.Exit(worst)


def carry_out(settings: RunSettings, mode: Mode = "record", again: bool = False, fresh: bool = False,
              json: bool = False, retry: str = "the same command", put: Put = print_json,
              replay: Replay | None = None, shard: Shard | None = None, full: bool = False) -> None:
    """Start or continue a run, write the report, and show the figures.

    Args:
        retry: the command that asks failed questions again.
        put: receives the figures if `json`.
        shard: make only this shard's records.

    Exit status 1: every question ended without a reply, or a replay missed a call or gave results that differ from its
    cassette.
    """
    started = time.monotonic()
    place = shard.folder(settings.folder) if shard else settings.folder
    with stoppable(f"what was answered is kept; `ragbed report {place}` shows it; rerun the command to continue"):
        with RunView() as view:
            watch = RunCallbacks(view.stage, view.begun, view.record, view.note)
            folder = asyncio.run(run(settings, watch, mode, again, fresh, replay, shard))
        try:
            if shard is not None:
                show_shard(folder, shard, put if json else None)
                return
            done = f"{view.tally.summary() if view.tally else NOTHING}, {time.monotonic() - started:.0f} s"
            show_finished(folder, retry, put if json else None, done, full)
            lines, whole = describe_replay(folder, settings, replay) if mode == "replay" else ([], True)
            for text in lines:
                note(text)
            if all_failed(folder) or not whole:
                raise typer.Exit(1)
        finally:
            folder.close()


def show_shard(folder: RunFolder, shard: Shard, put: Put | None) -> None:
    """Show how many records a shard has and name the next command, or pass the numbers to `put` as JSON."""
    there, place = len(folder.done()), folder.path
    if put is not None:
        put({"run": str(place), "shard": str(shard), "records": there})
    else:
        say(f"shard {shard} is complete with {there:,} records; when all shards are complete, run: ragbed merge "
            f"{place.parent}")


def show_finished(folder: RunFolder, retry: str, put: Put | None, done: str, full: bool = False) -> None:
    """Write the report of a finished run and show its figures, or pass them to `put` as JSON. `done` describes what was
    done, and `retry` is the command that asks failed questions again."""
    report_run(Finished.of(folder))
    if put is not None:
        put(run_json(folder))
    else:
        print_summary(folder.summary(), full)
        for text in read_trial(folder.path, folder.summary()["cells"][0]["judge"])[0]:
            print_text(text)
    for text in on_failures(folder, retry):
        note(text)
    if put is None:
        note(done)
        say(closing_line(folder.path))


def closing_line(run: Path) -> str:
    """Return the path of a run's report, and the next command."""
    return f"report: {run / 'report.html'}; next: ragbed diagnose {run}"


def show_merged(folder: RunFolder, shards: int, put: Put | None) -> None:
    """Show a run that was merged from shards. Exit status 1: every question failed."""
    retry = join(["ragbed", "run", str(folder.path / "config.yaml"), "--out", str(folder.path.parent), "--retry"])
    show_finished(folder, f"`{retry}`", put, f"{len(folder.done()):,} records of {shards} shards")
    if all_failed(folder):
        raise typer.Exit(1)


def run_json(folder: RunFolder) -> dict[str, Any]:
    """Return the figures of a finished run as `ragbed run --json` prints them."""
    summary = folder.summary()
    return {"run": str(folder.path), **{name: summary[name] for name in (
        "columns", "cells", "views", "comparisons", "effects", "repeated", "error_analysis", "tradeoff", "published",
        "notes", "results")}, "trial": read_trial(folder.path, summary["cells"][0]["judge"])[0]}
