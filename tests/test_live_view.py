"""What a run shows while it goes on: drawn on a terminal, JSON Lines elsewhere."""
import fcntl
import itertools
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading

import pytest

from ragbed.experiments.terminal.display import console, drawable

COMMAND = [sys.executable, "-m", "ragbed"]
CODE = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|\x1b.|\r|\n|[^\x1b\r\n]+")


class Screen:
    """What a person sees: the lines left by text, line ends, cursor movements and erasures."""

    def __init__(self, height: int) -> None:
        self.height = height
        self.lines: list[str] = [""]
        self.row = self.column = 0

    def feed(self, text: str) -> None:
        for found in CODE.finditer(text):
            number, code, part = found[1] or "", found[2], found[0]
            if code == "A":
                assert self.row - int(number or 1) >= max(0, len(self.lines) - self.height), "above the screen"
                self.row -= int(number or 1)
            elif code == "K":
                self.lines[self.row] = ""
            elif part == "\r":
                self.column = 0
            elif part == "\n":
                self.row += 1
                self.lines += [""] * (self.row == len(self.lines))
            elif not part.startswith("\x1b"):
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[:self.column] + part + line[self.column + len(part):]
                self.column += len(part)


def watched(args, wanted, then, width=100, height=30):
    """Runs the command on a terminal of that size.

    Args:
        wanted: what has to come to stand on the screen, as a pattern.
        then: called once it does, with a function that types.

    Returns:
        its status, the screen that was wanted, the last one, and the bytes as they came.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    child = subprocess.Popen([*COMMAND, *map(str, args)], stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs,
                             start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                             env={**os.environ, "TERM": "xterm-256color"})
    os.close(theirs)
    screen, found, raw = Screen(height), None, ""
    try:
        while got := _more(ours):
            raw += got
            screen.feed(got)
            shown = "\n".join(screen.lines)
            if found is None and re.search(wanted, shown):
                found = shown
                then(lambda typed: os.write(ours, typed))
        assert found is not None, screen.lines
        return child.wait(60), found, "\n".join(screen.lines), raw
    finally:
        child.kill()
        child.wait()
        os.close(ours)


def _more(terminal):
    """What the terminal is sent next; empty at its end."""
    assert select.select([terminal], [], [], 60)[0], "nothing is drawn any more"
    try:
        return os.read(terminal, 1 << 16).decode()
    except OSError:  # the other end is closed
        return ""


def progress(err) -> list[dict]:
    return [json.loads(line) for line in err.splitlines() if line.startswith("{")]


@pytest.fixture
def held(serve, town):
    """A run of six cells of which the first twelve calls are answered, and what lets the server answer the rest."""
    go, count = threading.Event(), itertools.count(1)
    server = serve(lambda body: {"text": town.reply(body)} if next(count) <= 12 else
                   {"text": town.reply(body), "hold": go})
    return town.config(server.url, reasoning=["direct", "chain_of_thought", "least_to_most"],
                       conditions=["provided", "closed-book"], budget={"tokens": 10**6}), go


@pytest.mark.slow
def test_on_a_terminal_cells_and_totals_are_drawn_and_leave_nothing_behind(held):
    config, go = held
    status, shown, last, raw = watched(["run", config], "12 made, 4 in flight", lambda _: go.set())
    assert status == 0
    assert re.search(r"least_to_most · closed-book +[╸╺━]+ +\d/6", shown), shown
    assert re.search(r"\d+ of 36 questions \(\d+ %\) in 6 cells, .* left", shown), shown
    assert len(shown.splitlines()) <= 10
    assert " questions (" not in last
    assert re.search(r"36 new records, \d\d calls sent", last)
    assert raw.rindex("\x1b[?25h") > raw.rindex("\x1b[?25l")  # the cursor is back
    assert '{"stage"' not in raw


@pytest.mark.slow
def test_an_interrupt_from_the_keyboard_clears_the_display_and_says_how_to_go_on(held):
    config, _ = held
    status, _, last, raw = watched(["run", config], "12 made, 4 in flight", lambda types: types(b"\x03"))
    assert status == 130
    assert " questions (" not in last
    assert "interrupted; what was answered is kept; `ragbed report " in last
    assert raw.rindex("\x1b[?25h") > raw.rindex("\x1b[?25l")


@pytest.mark.parametrize(("kind", "drawn"), [("xterm-256color", True), ("dumb", False)])
def test_what_is_drawn_needs_a_terminal_that_knows_codes(monkeypatch, kind, drawn):
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        monkeypatch.setenv("TERM", kind)
        assert drawable(console(stderr=True)) == drawn
    os.close(ours)


@pytest.mark.slow
def test_where_there_is_no_terminal_progress_is_json_on_stderr(held, ragbed, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    config, go = held
    go.set()
    status, _, err = ragbed("run", config, "--json")
    assert status == 0
    assert "\x1b" not in err
    *_, last = progress(err)
    assert last == {
        "stage": "questions", "done": 36, "total": 36, "cells": 6, "rate": last["rate"], "seconds_left": 0,
        "tokens": {"prompt": last["calls"]["made"] * 700, "completion": last["calls"]["made"] * 12},
        "price": {"paid": None, "live": None}, "failed": last["failed"],
        "calls": {"made": last["calls"]["made"], "retried": 0, "rate_limited": 0, "under_way": 0, "places": 4,
                  "places_at_most": 4},
        "budget_left": {"tokens": 10**6 - 712 * last["calls"]["made"]}}
    assert last["rate"] > 0
    assert set(last["failed"]) == {"malformed"}


def test_retried_and_rate_limited_calls_are_counted(serve, town, ragbed):
    busy = iter([True, False, True, True])
    server = serve(lambda body: {"status": 429, "headers": {"Retry-After": "0"}} if next(busy, False)
                   else town.reply(body))
    err = ragbed("run", town.config(server.url, calls={"calls": {"attempts": 5, "concurrency": 4}}))[2]
    calls = progress(err)[-1]["calls"]
    assert (calls["made"], calls["rate_limited"], calls["places_at_most"]) == (6, 3, 4)
    assert calls["retried"] == 3
