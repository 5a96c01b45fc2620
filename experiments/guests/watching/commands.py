"""`ragbed watch`: follow a run, pause it, or change its concurrency."""
from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbed.agents.model_settings import MAX_IN_FLIGHT
from ragbed.experiments.commands.options import AsJson, refuse

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ragbed.experiments.guests.watching.watcher import Progress

_EVERY, _SHARE = 1.0, 10.0  # seconds between looks; at least ten times as long as a look takes
_AROUND, _TITLE = 6, 16  # lines of the terminal that stay free; characters of a metric's title that fit
_SAID = {"finished": "finished", "running": "under way", "paused": "paused",
         "preparing": "being prepared, before its first question",
         "stopped": "stopped before its end: no process works on it; rerun the `ragbed run` command to continue it"}


def watch(run: Annotated[Path, typer.Argument(help="Folder of a run, or of one that is divided into shards.")],
          once: Annotated[bool, typer.Option("--once", help="Print the present state and exit.")] = False,
          pause: Annotated[bool, typer.Option("--pause", help=(
              "Pause the run: it finishes the questions under way."))] = False,
          resume: Annotated[bool, typer.Option("--resume", help="Continue a paused run.")] = False,
          concurrency: Annotated[int | None, typer.Option("--concurrency", min=1, max=MAX_IN_FLIGHT, metavar="N", help=(
              "Ask N questions at a time per model, from now on."))] = None,
          json: AsJson = False) -> None:
    """Follow a run until its end: answers, scores so far, rate, cost and time left.

    Ctrl-C ends only the watching. --pause, --resume and --concurrency change the run and exit; its results stay the
    same. Without a terminal, prints one line per change.

    Exit status 1: the run was stopped before its end.
    """
    from ragbed.experiments.guests.watching.watcher import Watcher

    if pause and resume:
        refuse("--pause and --resume contradict each other; give one of them")
    if pause or resume or concurrency is not None:
        _change(run, {**({"paused": pause} if pause or resume else {}),
                      **({"concurrency": concurrency} if concurrency is not None else {})}, json)
        return
    watcher = Watcher(run)
    try:
        state = _show(watcher.look(), json) if once else _follow(watcher, json)
    except KeyboardInterrupt:
        from ragbed.experiments.terminal.display import note

        note(f"no longer watching; `ragbed watch {run}` does so again")
        raise
    if state == "stopped":
        raise typer.Exit(1)


def _change(run: Path, changes: dict[str, Any], json: bool) -> None:
    from ragbed.documents.errors import RunError
    from ragbed.experiments.guests.watching.control import write_control
    from ragbed.experiments.guests.watching.partial import is_running
    from ragbed.experiments.guests.watching.watcher import run_folders
    from ragbed.experiments.terminal.display import print_result

    running = [folder for folder in run_folders(run) if is_running(folder)]
    if not running:
        raise RunError(f"{run}: no process works on this run, so it cannot be changed; rerun the `ragbed run` command")
    for folder in running:
        control = write_control(folder, **changes)
    said = ("paused: it finishes the questions under way" if control.paused else "not paused") + (
        f"; {control.concurrency} questions at a time per model" if control.concurrency else "")
    print_result(json, {"run": str(run), **control.model_dump()}, f"{run}: {said}")


def _follow(watcher: Any, json: bool) -> str:
    from rich.live import Live

    from ragbed.experiments.terminal.display import console, drawable

    screen = None if json or not drawable(console()) else Live(console=console(), auto_refresh=False, transient=True)
    shown: Any = None
    try:
        while True:
            begun = time.monotonic()
            found: Progress = watcher.look()
            if screen is not None:
                screen.start()
                screen.update(screen_of(found, max(1, screen.console.size.height - _AROUND)), refresh=True)
            elif (found.state, found.answers, found.problem) != shown:
                shown = found.state, found.answers, found.problem
                _show_line(found, json)
            if found.state in ("finished", "stopped"):
                break
            time.sleep(max(_EVERY, _SHARE * (time.monotonic() - begun)))
    finally:
        if screen is not None:
            screen.stop()
    if screen is not None:
        _show(found, json)
    return found.state


def _show(found: Progress, json: bool) -> str:
    from ragbed.experiments.terminal.display import console, print_json

    if json:
        print_json(found.as_json())
    else:
        console().print(screen_of(found, len(found.cells)))
    return found.state


def _show_line(found: Progress, json: bool) -> None:
    from ragbed.experiments.terminal.display import print_json, write

    if json:
        print_json(found.as_json(), None)
    else:
        write(f"{describe(found)}\n")


def describe(found: Progress) -> str:
    """Return the state of a run in one line."""
    from ragbed.experiments.formatting import format_price, plural
    from ragbed.experiments.terminal.progress import format_pace

    state = "; ".join(filter(None, (_SAID[found.state], found.problem)))
    if found.state == "preparing":
        return state
    share = f" ({100 * found.answers // found.expected} %)" if found.expected else ""
    parts = [f"{found.answers:,} of {plural(found.expected, 'answer')}{share}"]
    if found.rate and found.seconds_left is not None:
        parts.append(format_pace(found.rate, found.seconds_left))
    return f"{', '.join([*parts, format_price(found.paid)])}; {state}"


def screen_of(found: Progress, most: int) -> RenderableType:
    """Return the display of a run: a row for each of at most `most` cells, and its state in one line."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    from ragbed.experiments.formatting import UNKNOWN, estimate, metric_title
    from ragbed.experiments.terminal.display import printable

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("cell", ratio=1)  # the only column that may shrink; its texts do not wrap
    table.add_column("", width=10)
    metric = metric_title(found.metric) if found.metric else ""
    for title in ("answers", f"{metric if len(metric) <= _TITLE else 'score'} so far" if metric else "", "failed"):
        table.add_column(title, no_wrap=True, justify="right")
    for cell in found.cells[:most]:
        figure = cell.figure or {}
        score = estimate(figure.get("mean"), figure.get("low"), figure.get("high")).removesuffix(f" {UNKNOWN}")
        table.add_row(Text(printable(cell.name), no_wrap=True, overflow="ellipsis"),
                      ProgressBar(cell.expected, cell.answers, width=10), f"{cell.answers:,}/{cell.expected:,}", score,
                      f"{cell.failed:,}")
    left = len(found.cells) - most
    more = [Text(f"and {left} more cells, with --once")] if left > 0 else []
    return Group(*([table] if found.cells else []), *more, Text(describe(found)))
