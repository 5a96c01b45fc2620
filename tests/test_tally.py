"""How far a run is: counted as records are made, drawn on a terminal, told as JSON Lines elsewhere."""
import asyncio
import io
import json
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from ragbed.experiments import Cell, Record, Result, Timing
from ragbed.experiments.running.budget import Spending
from ragbed.experiments.running.runner import RunStarted
from ragbed.experiments.settings.spending import Budget
from ragbed.experiments.terminal.progress import RunView, Tally, screen_of
from ragbed.strategies import Usage

CODE = re.compile(r"\x1b\[[\d;]*m")


class Clock:
    """Stands still until it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def begun_of(cells, questions, done=(), **budget):
    client = SimpleNamespace(rate_limited=0, places=3, limits=SimpleNamespace(concurrency=4))
    return RunStarted(cells, questions, set(done), Spending(Budget(**budget)), [client])


def tally_of(*args, **budget):
    clock = Clock()
    return Tally(begun_of(*args, **budget), clock), clock


def cell(reasoning="direct", condition="provided", model="m"):
    return Cell(model, None, None, reasoning, "grounded", condition, None, "question", None, "crest", 0)


def record(cell, attempts=1, outcome="answered", paid=0.5, price=0.5):
    result = Result.model_construct(cell=cell.id, question="q", outcome=outcome, usage=Usage(700, 12, 0, 1, price),
                                    judge_usage=Usage(), sub_usage=Usage())
    timing = Timing(seconds=1, attempts=attempts, replayed=int(not attempts), paid=paid if attempts else 0.0,
                    finished="")
    return Record.model_construct(result=result, timing=timing)


def told_in(capsys):
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


async def test_lines_of_json_come_every_so_often_where_there_is_anything_new(monkeypatch, capsys):
    monkeypatch.setattr("ragbed.experiments.terminal.progress.PROGRESS_EVERY", 0.01)
    one, told = cell(), []

    async def another():
        """The next lines that are told."""
        while not (lines := told_in(capsys)):
            await asyncio.sleep(0.005)
        told.append([line["done"] for line in lines])

    async with asyncio.timeout(60):
        with RunView() as view:
            view.begun(begun_of([one], 3))
            await another()
            await asyncio.sleep(0.1)
            view.record(record(one))
            view.record(record(one))
            await another()
            view.record(record(one))
    assert told == [[0], [2]]  # what is not new is not told
    assert [line["done"] for line in told_in(capsys)] == [3]


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


def test_the_screen_has_a_line_for_each_cell_or_for_several_and_fits_its_width():
    cells = [cell(reasoning, condition) for reasoning in ("direct", "chain_of_thought", "least_to_most")
             for condition in ("provided", "closed-book")]
    tally, clock = tally_of(cells, 6, tokens=10**6)
    for outcome in ("answered", "malformed", "malformed"):
        clock.now += 1
        tally.add(record(cells[0], outcome=outcome))
    tally.begun.spending.add(Usage(3000, 0, 0, 3, None))
    tally.begun.spending.calls, tally.begun.spending.under_way = 3, 2

    def drawn(most, width, **options):
        output = Console(file=io.StringIO(), width=width, force_terminal=True, **options)
        output.print(screen_of(tally, most, width))
        return output.file.getvalue()

    wide = CODE.sub("", drawn(24, 150)).splitlines()
    assert [line.split()[-1 if place else -4] for place, line in enumerate(wide[:6])] == ["3/6", *["0/6"] * 5]
    assert "2 without answer" in wide[0]
    assert [line.strip() for line in wide[6:]] == [
        "3 of 36 questions (8 %) in 6 cells, 1.0 a second, 33 s left",
        "tokens 2,100 in, 36 out; price $0; left of the budget: 997,000 tokens",
        "calls: 3 made, 2 in flight, 3 of 4 allowed at once; without answer: 2 malformed"]
    narrow = drawn(4, 50, no_color=True)
    lines = CODE.sub("", narrow).splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["direct", "chain_of_thought", "least_to_most"]
    assert [re.search(r" \d/12", line)[0] for line in lines[:3]] == [" 3/12", " 0/12", " 0/12"]
    assert max(map(len, lines)) <= 50
    assert not re.search(r"\x1b\[[\d;]*(3[0-7]|38|9[0-7])[\d;]*m", narrow)
