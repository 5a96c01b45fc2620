"""Print tables, JSON, progress and notes. Only the terminal's modules and the commands print."""
from __future__ import annotations

import json
import os
import re
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from ragbed.experiments.cells import SEPARATOR

PROGRESS_EVERY = 5.0  # seconds between two lines of progress where there is no terminal to draw on
_GAP = 2  # between columns
_SHORT = 12  # cells of up to this many characters are never broken
_WIDTH = 150  # width of the output in a file or pipe
_AFTER_PARTS = f"(?<=[{SEPARATOR.strip()}→,]) "  # between the parts of the names of cells and of changes
MAX_PROSE = 100  # width of a line of prose
# Characters that JSON does not escape: C1 control codes, marks of writing direction, lone surrogates.
_STEERING = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def console(stderr: bool = False) -> Console:
    """Return a console, 150 columns wide without a terminal."""
    stream = sys.stderr if stderr else sys.stdout
    wider = os.environ.get("COLUMNS", "")  # never narrower, because some programs set it to 80 for every process
    width = max(_WIDTH, int(wider)) if wider.isdecimal() and len(wider) < 5 else _WIDTH
    return Console(file=stream, highlight=False, emoji=False, width=None if stream.isatty() else width)


def say(text: str) -> None:
    """Print one line of plain text on stdout."""
    console().print(printable(text), markup=False, soft_wrap=True)


def note(text: str) -> None:
    """Print one line on stderr, for anything but the result."""
    console(stderr=True).print(printable(text), markup=False, soft_wrap=True)


def write(text: str, stderr: bool = False) -> None:
    """Print plain text immediately."""
    stream = sys.stderr if stderr else sys.stdout
    stream.write(printable(text))
    stream.flush()


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print a value as JSON on stdout, on one line without an indent. Characters that could steer a terminal are
    escaped."""
    ascii = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    sys.stdout.write(_STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")
    if indent is None:
        sys.stdout.flush()


def print_result(json: bool, value: Any, text: str) -> None:
    """Print the value as JSON if `json` is set, otherwise print the line of text."""
    if json:
        print_json(value)
    else:
        say(text)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None,
                keys: int | None = None) -> None:
    """Print a table, split into blocks of columns if it is wider than the terminal.

    Every block repeats the first `keys` columns, which identify a row. By default these are the columns before `n`, or
    one column.
    """
    output = console()
    named = keys or (list(header).index("n") if "n" in header[1:] else 1)
    if title:
        output.print(Text(printable(title), "italic"), soft_wrap=True)
    shown = [[printable(cell) for cell in row] for row in rows]
    columns = [[printable(name), *(row[at] for row in shown)] for at, name in enumerate(header)]
    for place, (block, widths) in enumerate(_blocks(columns, named, output.width)):
        table = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        for at, width in zip(block, widths, strict=True):
            table.add_column(Text(columns[at][0]), width=width, overflow="fold")
        for row in shown:
            table.add_row(*(Text(row[at]) for at in block))
        if place:
            say("")
        output.print(table)


def _blocks(columns: Sequence[Sequence[str]], keys: int, width: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the columns and widths of each block: the first `keys` columns, and as many others as fit unbroken."""
    whole = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    room = 2 * width // 5 // keys - _GAP
    least = [min(whole[at], room) if at < keys else min(_least(column), width // 2)
             for at, column in enumerate(columns)]
    names = sum(least[:keys]) + _GAP * keys
    blocks: list[list[int]] = [[]]
    for at in range(keys, len(columns)):
        if blocks[-1] and names + sum(least[other] + _GAP for other in blocks[-1]) + least[at] > width:
            blocks.append([])
        blocks[-1].append(at)
    for block in ([*range(keys), *own] for own in blocks):
        widths = [least[at] for at in block]
        for place, at in enumerate(block):
            left = width - sum(widths) - _GAP * (len(widths) - 1)
            widths[place] += max(0, min(whole[at] - widths[place], left))
        yield block, widths


def _least(column: Sequence[str]) -> int:
    """Return the smallest width of a column that breaks no word, figure or short text."""
    lines = [line for cell in column[1:] for line in cell.split("\n")]
    if any(" [" in line for line in lines):
        return max([*map(cell_len, column[0].split()), *map(cell_len, lines)])
    longest = max([cell_len(word) for line in (column[0], *lines) for word in line.split()], default=0)
    return max([longest, *(min(cell_len(line), max(_SHORT, cell_len(line) // 3)) for line in lines)])


@dataclass(frozen=True)
class Column:
    """A column of a table whose rows are never broken in the middle of a figure.

    Attributes:
        priority: how early the column is dropped from a narrow terminal, the highest first; 0 is never dropped.
        share: the part of the terminal's width from which on its texts are wrapped; 0 if they are never wrapped.
    """

    name: str
    texts: Sequence[str]
    priority: int = 0
    share: float = 0.0
    right: bool = True  # aligned

    @property
    def width(self) -> int:
        return max(cell_len(line) for text in (self.name, *self.texts) for line in text.split("\n"))


def print_rows(columns: Sequence[Column], title: str = "") -> list[str]:
    """Print a table, and return the names of the columns that did not fit.

    If the table is too wide, columns with a priority are dropped first, the last of equal ones before the others. Then
    names are wrapped between their parts.
    """
    output = console()
    room = output.width
    shown = [replace(one, texts=[printable(text) for text in one.texts]) for one in columns]

    def excess() -> int:
        return sum(one.width + _GAP for one in shown) - _GAP - room

    dropped = []
    whole = {one.name: one for one in shown}
    if excess() > 0:
        shown = [_wrapped(one, max(16, int(room * one.share))) for one in shown]
    for one in sorted((one for one in reversed(shown) if one.priority), key=lambda one: -one.priority):
        if excess() > 0:
            shown.remove(one)
            dropped.append(one.name)
    for at, one in enumerate(shown):
        if excess() > 0:
            shown[at] = _wrapped(whole[one.name], max(8, one.width - excess()))
    if title:
        output.print(Text(printable(title), "italic"), soft_wrap=True)
    table = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for one in shown:
        table.add_column(Text(one.name), justify="right" if one.right else "left", no_wrap=True)
    for row in zip(*(one.texts for one in shown), strict=True):
        table.add_row(*map(Text, row))
    output.print(table, soft_wrap=False)
    return dropped


def _wrapped(column: Column, width: int) -> Column:
    return replace(column, texts=[wrap_name(text, width) for text in column.texts]) if column.share else column


def wrap_name(text: str, width: int) -> str:
    """Wrap a name such as `model · strategy` between its parts, and a part that is longer than a line inside it."""
    lines = [""]
    for part in re.split(_AFTER_PARTS, text):
        joined = f"{lines[-1]} {part}".strip()
        lines[-1:] = [joined] if cell_len(joined) <= width else [*filter(None, lines[-1:]), part]
        while cell_len(lines[-1]) > width:
            end = next((end for end in range(len(lines[-1]), 1, -1) if cell_len(lines[-1][:end]) <= width), 1)
            lines[-1:] = [lines[-1][:end], lines[-1][end:].strip()]
    return "\n".join(lines)


def print_text(text: str) -> None:
    """Print prose on stdout, wrapped at words."""
    for line in textwrap.wrap(printable(text), min(console().width, MAX_PROSE), break_on_hyphens=False):
        say(line)


def print_records(records: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> None:
    """Print records one below the other: a title, then fields with a name and a wrapped text."""
    width = console().width
    for title, fields in records:
        console().print(escape(printable(title)), style="bold", soft_wrap=True)
        indent = 4 + max((len(name) for name, _ in fields), default=0)
        for name, text in fields:
            wrapped = textwrap.wrap(printable(text), max(20, width - indent), break_on_hyphens=False)
            for line, part in enumerate(wrapped):
                say(f"  {'' if line else name:{indent - 2}}{part}")


def printable(text: str) -> str:
    """Escape control characters, since documents and model output may be hostile."""
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text)


def print_progress(figures: Mapping[str, Any]) -> None:
    """Print progress as one line of JSON on stderr, for programs."""
    note(json.dumps(figures))


def drawable(output: Console) -> bool:
    """Return whether a display can be redrawn. It cannot in a file, a pipe or a dumb terminal, even if FORCE_COLOR is
    set."""
    return output.is_interactive and output.file.isatty()


class Bars:
    """A progress bar per stage on a terminal; otherwise a line of JSON on stderr every few seconds."""

    def __init__(self) -> None:
        self._console = console(stderr=True)
        self._drawn = drawable(self._console)
        self._bars = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                              TimeRemainingColumn(), console=self._console, refresh_per_second=4)
        self._tasks: dict[str, TaskID] = {}
        self._printed: dict[str, float] = {}
        self._begun: dict[str, tuple[float, int]] = {}

    def __enter__(self) -> Bars:
        if self._drawn:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop drawing the bars; may be called twice."""
        if self._drawn:
            self._bars.stop()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if self._drawn:
            if stage not in self._tasks:
                self._tasks[stage] = self._bars.add_task(stage, total=total)
            self._bars.update(self._tasks[stage], completed=done, total=total)
            return
        now = time.monotonic()
        self._begun.setdefault(stage, (now, done))
        if done and (done == total or now - self._printed.setdefault(stage, now) >= PROGRESS_EVERY):
            if self._printed.get(stage) != float("inf"):
                row: dict[str, Any] = {"stage": stage, "done": done, "total": total}
                begun, first = self._begun[stage]
                if total is not None and first < done < total:
                    row["seconds_left"] = round((now - begun) / (done - first) * (total - done))
                print_progress(row)
            self._printed[stage] = float("inf") if done == total else now


@contextmanager
def stoppable(kept: str) -> Iterator[None]:
    """On Ctrl-C or SIGTERM, print a line that says what is kept, and exit with status 130 or 143."""
    terminated: list[int] = []

    def terminate(number: int, frame: FrameType | None) -> None:
        terminated.append(number)
        signal.raise_signal(signal.SIGINT)

    # `command &` in a script starts with interrupts ignored, so the default handler is set here.
    handlers = {signal.SIGTERM: terminate, signal.SIGINT: signal.default_int_handler}
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()} if main else {}
    try:
        yield
    except KeyboardInterrupt:
        note(f"{'terminated' if terminated else 'interrupted'}; {kept}")
        if terminated:
            raise typer.Exit(128 + signal.SIGTERM) from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
