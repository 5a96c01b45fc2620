"""What a run shows while it goes on: drawn on a terminal, JSON Lines elsewhere."""
from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from types import SimpleNamespace

import pytest

from experiments.budget import Budget
from experiments.cells import Cell
from experiments.record import Record, Result, Timing
from experiments.runner import Begun
from experiments.spending import Spending
from experiments.terminal.tally import Line, Tally
from strategies.types import Usage

COMMAND = [sys.executable, "-m", "experiments.cli"]
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


def watched(args, width=100, height=30, typed=None, **env):
    """Runs the command on a terminal of that size.

    Args:
        typed: a text on the screen, and what is typed once it stands there.

    Returns:
        its status, the screens at every change, and the bytes as they came.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    child = subprocess.Popen([*COMMAND, *map(str, args)], stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs,
                             start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                             env={**os.environ, "TERM": "xterm-256color", **env})
    os.close(theirs)
    screen, screens, raw = Screen(height), [], ""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                got = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not got:
                break
            raw += got.decode()
            screen.feed(got.decode())
            screens.append("\n".join(screen.lines))
            if typed and typed[0] in screens[-1]:
                os.write(ours, typed[1])
                typed = None
    os.close(ours)
    return child.wait(5), screens, raw


def progress(err) -> list[dict]:
    return [json.loads(line) for line in err.splitlines() if line.startswith("{")]


@pytest.fixture
def short(serve, town):
    """A run of one cell that takes about a second."""
    return town.config(serve(lambda body: {"text": town.reply(body), "delay": 0.4}).url)


@pytest.fixture
def slow(serve, town):
    """A run of six cells that takes about two seconds."""
    server = serve(lambda body: {"text": town.reply(body), "delay": 0.1})
    return town.config(server.url, reasoning=["direct", "chain_of_thought", "least_to_most"],
                       conditions=["given", "closed-book"], budget={"tokens": 10**6})


def test_on_a_terminal_cells_and_totals_are_drawn_over_and_over_and_leave_nothing_behind(slow):
    begun = time.monotonic()
    status, screens, raw = watched(["run", slow])
    took = time.monotonic() - begun
    assert status == 0
    drawn = [screen for screen in screens if " questions (" in screen]
    assert 2 <= len(set(drawn)) <= 2 * took + 4
    middle = drawn[len(drawn) // 2]
    assert re.search(r"least_to_most · closed-book +━+[╸╺━]+ +\d/6", middle), middle
    assert re.search(r"\d+ of 36 questions \(\d+ %\) in 6 cells, [\d.]+ a second, \d+ s left", middle), middle
    assert re.search(r"tokens [\d,]+ in, [\d,]+ out; paid now an unknown price; left of the budget: [\d,]+ tokens",
                     middle), middle
    assert re.search(r"calls: \d+ made, [1-4] under way; failed: \d+ malformed", middle), middle
    assert max(len(screen.splitlines()) for screen in drawn) <= 10
    assert " questions (" not in screens[-1]
    assert re.search(r"36 records made now, \d\d calls sent", screens[-1])
    assert raw.rindex("\x1b[?25h") > raw.rindex("\x1b[?25l")  # the cursor is back
    assert '{"stage"' not in raw


def test_a_small_terminal_shows_a_line_for_several_cells_and_one_without_colours_none(slow):
    status, screens, raw = watched(["run", slow], width=50, height=12, NO_COLOR="1")
    assert status == 0
    drawn = [screen for screen in screens if " questions (" in screen]
    lines = drawn[len(drawn) // 2].splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["direct", "chain_of_thought", "least_to_most"]
    assert all(re.search(r" \d+/12", line) for line in lines[:3])
    assert max(map(len, lines)) <= 50
    assert "left" in "\n".join(lines)
    assert not re.search(r"\x1b\[[\d;]*(3[0-7]|38|9[0-7])[\d;]*m", raw)


def test_a_terminal_that_knows_no_codes_gets_lines_of_json(short):
    status, screens, raw = watched(["run", short], width=1000, TERM="dumb")
    assert status == 0
    assert "\x1b" not in raw
    assert progress(screens[-1])[-1]["done"] == 6


def test_an_interrupt_from_the_keyboard_clears_the_display_and_says_how_to_go_on(slow):
    status, screens, raw = watched(["run", slow], typed=("s left", b"\x03"))
    assert status == 130
    assert " questions (" not in screens[-1]
    assert "interrupted; what was answered is kept, and the same command continues" in screens[-1]
    assert raw.rindex("\x1b[?25h") > raw.rindex("\x1b[?25l")


def test_where_there_is_no_terminal_progress_is_json_on_stderr(slow):
    done = subprocess.run([*COMMAND, "run", slow, "--json"], capture_output=True, text=True,
                          env={**os.environ, "FORCE_COLOR": "1"})
    assert done.returncode == 0
    assert "\x1b" not in done.stderr
    *_, last = progress(done.stderr)
    assert last == {
        "stage": "questions", "done": 36, "total": 36, "cells": 6, "rate": last["rate"], "seconds_left": 0,
        "tokens": {"prompt": last["calls"]["made"] * 700, "completion": last["calls"]["made"] * 12},
        "price": {"paid": None, "live": None}, "failed": last["failed"],
        "calls": {"made": last["calls"]["made"], "retried": 0, "rate_limited": 0, "under_way": 0, "places": 16,
                  "places_at_most": 16},
        "budget_left": {"tokens": 10**6 - 712 * last["calls"]["made"]}}
    assert 1 <= last["rate"] <= 36
    assert set(last["failed"]) == {"malformed"}


def test_lines_of_json_come_every_so_often(short, ragbed, monkeypatch):
    monkeypatch.setattr("experiments.terminal.live.PROGRESS_EVERY", 0.1)
    told = [line["done"] for line in progress(ragbed("run", short)[2])]
    assert told == sorted(told)
    assert told[-1] == 6
    assert 2 <= len(told) <= 8  # what is not new is not told


def test_retried_and_rate_limited_calls_are_counted(serve, town, ragbed):
    busy = iter([True, False, True, True])
    server = serve(lambda body: {"status": 429, "headers": {"Retry-After": "0"}} if next(busy, False)
                   else town.reply(body))
    err = ragbed("run", town.config(server.url, calls={"calls": {"attempts": 5, "concurrency": 4}}))[2]
    calls = progress(err)[-1]["calls"]
    assert (calls["made"], calls["rate_limited"], calls["places_at_most"]) == (6, 3, 4)
    assert calls["retried"] == 3


class Clock:
    """Stands still until it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def tally_of(cells, questions, done=()):
    clock = Clock()
    client = SimpleNamespace(rate_limited=0, places=3, limits=SimpleNamespace(concurrency=4))
    return Tally(Begun(cells, questions, set(done), Spending(Budget()), [client]), clock), clock


def cell(reasoning="direct", condition="given", model="m"):
    return Cell(model, None, None, reasoning, "grounded", condition, None, "question", None, "crest", 0)


def record(cell, attempts=1, outcome="answered", paid=0.5, price=0.5):
    result = Result.model_construct(cell=cell.id, question="q", outcome=outcome, usage=Usage(700, 12, 0, 1, price),
                                    judge_usage=Usage(), sub_usage=Usage())
    timing = Timing(seconds=1, attempts=attempts, replayed=int(not attempts), paid=paid if attempts else 0.0,
                    finished="")
    return Record.model_construct(result=result, timing=timing)


def test_the_rate_is_that_of_the_last_minute():
    one = cell()
    tally, clock = tally_of([one], 1000)
    assert (tally.rate(), tally.seconds_left()) == (None, None)
    for _ in range(60):  # one a second
        clock.now += 1
        tally.add(record(one))
        tally.rate()
    assert tally.rate() == pytest.approx(1.0)
    assert tally.seconds_left() == pytest.approx(940.0)
    for _ in range(240):  # then four a second
        clock.now += 0.25
        tally.add(record(one))
        tally.rate()
    assert tally.rate() == pytest.approx(4.0, rel=0.05)
    clock.now += 600  # silence: the rate falls
    assert tally.rate() < 0.5


def test_a_burst_from_the_journal_says_nothing_of_the_time_that_the_model_takes():
    one = cell()
    tally, clock = tally_of([one], 1000)
    for _ in range(500):
        clock.now += 0.002
        tally.add(record(one, attempts=0))
    assert tally.rate() == pytest.approx(500, rel=0.01)
    for _ in range(5):
        clock.now += 10
        tally.add(record(one))
    assert tally.rate() == pytest.approx(0.1)
    assert tally.seconds_left() == pytest.approx(4950)
    assert tally.figures()["price"] == {"paid": 0.0, "live": 250.0}  # no call of this sitting was counted here


def test_many_cells_are_shown_by_the_first_factor_that_has_few_levels():
    cells = [cell(reasoning, condition, f"m{number}") for number in range(20) for condition in ("given", "full")
             for reasoning in ("direct", "chain_of_thought", "least_to_most")]
    tally, _ = tally_of(cells, 10, [(cells[0].id, "q1"), (cells[5].id, "q2"), ("gone", "q1")])
    tally.add(record(cells[0], outcome="error"))
    assert tally.lines(5) == [Line("direct", 2, 400, 1), Line("chain_of_thought", 0, 400, 0),
                              Line("least_to_most", 1, 400, 0)]
    assert [line.name for line in tally.lines(2)] == ["given", "full"]
    assert [line.name for line in tally.lines(30)][:2] == ["m0", "m1"]
    assert tally.lines(1) == []
    assert len(tally.lines(120)) == 120
    assert (tally.done, tally.total, dict(tally.failed)) == (3, 1200, {"error": 1})
