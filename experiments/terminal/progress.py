"""Show the progress of a run: bars on a terminal, otherwise JSON Lines on stderr."""
from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ragbed.agents.types import Cost
from ragbed.experiments.cells import FACTORS, describe_factors, label_rows, shorten_models, varying_factors
from ragbed.experiments.formatting import format_price, plural
from ragbed.experiments.record import Record
from ragbed.experiments.settings.spending import format_amount
from ragbed.experiments.terminal.display import PROGRESS_EVERY, Bars, console, drawable, print_progress, printable

if TYPE_CHECKING:
    from ragbed.experiments.running.runner import RunStarted

_DRAWN_EVERY = 0.5  # seconds between drawings, which take 3 ms each
_IDLE = 1.0  # seconds between drawings without new records
_QUIET = 60.0  # seconds between lines of JSON without new records
_AROUND = 8  # lines of the terminal that stay free
MAX_LINES = 24  # largest number of lines for cells
_WINDOW = 60.0  # seconds over which the rate is measured; more if they have fewer than `_FEW` records
_FEW = 20
_APART, MAX_MOMENTS = 1.0, 600  # seconds between remembered moments, and their number
_FINE = ("answered", "refused", "searched")
NOTHING = "nothing to do: the run is complete"


class Tally:
    """Count the records of one session, and estimate the remaining time.

    Attributes:
        done: finished records, of `total`.
        made: records of this session, with their `cost`, `prompt_tokens` and `completion_tokens`.
        failed: records of this session without answer or refusal, by outcome.
        replayed: price of the calls taken from the journal; `unpriced`: whether any price is unknown.
    """

    def __init__(self, begun: RunStarted, clock: Callable[[], float] = time.monotonic) -> None:
        self.begun = begun
        self.total = len(begun.cells) * begun.questions
        self.made = self.prompt_tokens = self.completion_tokens = 0
        self.cost, self.replayed, self.unpriced = Cost(), 0.0, False
        self.failed: Counter[str] = Counter()
        cells = {cell.id for cell in begun.cells}
        self._done = Counter(cell for cell, _ in begun.done if cell in cells)
        self._failed: Counter[str] = Counter()
        self.done = self._done.total()
        self._clock = clock
        self._called, self._burst = False, (clock(), 0)  # whether a model was called; end of the burst
        self._moments = deque([self._burst], maxlen=MAX_MOMENTS)

    def add(self, record: Record) -> None:
        """Count a record."""
        result, timing = record.result, record.timing
        self.made += 1
        self.done += 1
        self._done[result.cell] += 1
        if result.outcome not in _FINE:
            self.failed[result.outcome] += 1
            self._failed[result.cell] += 1
        if not self._called:
            self._called = timing.attempts > 0
            if self._called:
                self._moments = deque([self._burst], maxlen=MAX_MOMENTS)
            else:
                self._burst = (self._clock(), self.made)
        self.cost += Cost(0.0, timing.attempts, timing.replayed, timing.paid, timing.retried)
        usage = result.usage + result.judge_usage + result.sub_usage + result.asked_usage + result.probe_usage
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.unpriced |= usage.price is None
        self.replayed += (usage.price or 0.0) - (timing.paid or 0.0)

    def lines(self, most: int) -> list[tuple[str, int, int, int]]:
        """Return a line per cell: name, finished records, all records, and failures of this session.

        With more than `most` cells, return a line per level of one factor instead, or none.
        """
        cells = self.begun.cells
        rows = shorten_models([{"id": cell.id, **cell.levels} for cell in cells])
        if len(cells) <= most:
            named = dict(zip((cell.id for cell in cells), label_rows(rows), strict=True))
        else:
            levels = {factor: {str(row["id"]): describe_factors(row, [factor]) or f"no {factor}" for row in rows}
                      for factor in ("model", *varying_factors(rows), *FACTORS) if factor in rows[0]}
            named = next((by for by in levels.values() if 1 < len(set(by.values())) <= most), {})
        grouped: dict[str, list[str]] = {}
        for id, name in named.items():
            grouped.setdefault(name, []).append(id)
        return [(name, sum(self._done[id] for id in ids), len(ids) * self.begun.questions,
                 sum(self._failed[id] for id in ids)) for name, ids in grouped.items()]

    def rate(self) -> float | None:
        """Return the recent records per second; None before the first record.

        Records replayed from the journal before the first model call do not count, since new ones take longer.
        """
        now = self._clock()
        if now - self._moments[-1][0] >= _APART:
            self._moments.append((now, self.made))
        since, before = next((moment for moment in reversed(self._moments)
                              if now - moment[0] >= _WINDOW and self.made - moment[1] >= _FEW), self._moments[0])
        return (self.made - before) / (now - since) if self.made > before and now > since else None

    def seconds_left(self) -> float | None:
        """Estimate the remaining seconds; None if the rate is unknown."""
        rate = self.rate()
        return None if rate is None else (self.total - self.done) / rate

    def figures(self) -> dict[str, Any]:
        """Return all figures as plain JSON."""
        spending, rate, left = self.begun.spending, self.rate(), self.seconds_left()
        paid, unpriced = spending.dollars, self.unpriced or spending.unpriced
        return {"stage": "questions", "done": self.done, "total": self.total, "cells": len(self.begun.cells),
                "rate": None if rate is None else round(rate, 3),
                "seconds_left": None if left is None else round(left),
                "tokens": {"prompt": self.prompt_tokens, "completion": self.completion_tokens},
                "price": {"paid": None if unpriced else round(paid, 6),
                          "live": None if unpriced else round(paid + self.replayed, 6)},
                "failed": dict(self.failed), "calls": self.calls(),
                "budget_left": {name: round(left, 6) for name, left in spending.left().items()}}

    def summary(self) -> str:
        """Summarise the session in one line."""
        if not self.made and self.done == self.total:
            return NOTHING
        cost, spending = self.cost, self.begun.spending
        paid = format_price(None if spending.unpriced else cost.paid, "unknown")
        if spending.estimated:
            paid = (f"{format_price(None if spending.unpriced else spending.dollars, 'unknown')} estimated: the server "
                    f"did not report the tokens of {plural(spending.estimated, 'call')}")
        retried = f", including retries of {cost.retried}," if cost.retried else ""
        return (f"{self.made} new records, {cost.attempts} calls sent{retried} and {cost.replayed} reused from the "
                f"journal, price {paid}")

    def calls(self) -> Mapping[str, int]:
        """Return the calls of this session, and the current limit of concurrent calls."""
        spending, clients = self.begun.spending, self.begun.clients
        return {"made": spending.calls, "retried": spending.retried,
                "rate_limited": sum(client.rate_limited for client in clients), "under_way": spending.under_way,
                "places": sum(client.places for client in clients),
                "places_at_most": sum(client.limits.concurrency for client in clients)}


class RunView:
    """Show a run's progress through the runner's callbacks: bars while an index is built, then the records."""

    def __init__(self) -> None:
        self.tally: Tally | None = None
        self._console = console(stderr=True)
        self._drawn = drawable(self._console)
        self._bars = Bars()
        self._screen: Live | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._shown, self._at = -1, 0.0

    def __enter__(self) -> RunView:
        self._bars.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._bars.stop()
        if self._screen is not None:
            self._screen.stop()
        elif self.tally is not None:
            print_progress(self.tally.figures())

    def stage(self, stage: str, done: int, total: int | None) -> None:
        """Show the progress of a stage."""
        self._bars(stage, done, total)

    def begun(self, begun: RunStarted) -> None:
        """Start the display of records; called when the run starts."""
        self.tally = Tally(begun)
        self._bars.stop()
        loop = asyncio.get_running_loop()
        self._at = loop.time()
        if self._drawn:
            self._screen = screen = Live(console=self._console, auto_refresh=False, transient=True,
                                         vertical_overflow="crop")
            screen.start()
            self._repeat(loop, _DRAWN_EVERY, lambda tally: screen.update(screen_of(tally, max(1, min(
                MAX_LINES, self._console.size.height - _AROUND)), self._console.size.width), refresh=True))
        else:
            self._repeat(loop, PROGRESS_EVERY, lambda tally: print_progress(tally.figures()))

    def record(self, record: Record) -> None:
        """Count a record that was made."""
        assert self.tally is not None
        self.tally.add(record)

    def note(self, text: str) -> None:
        """Print one line on stderr, above the bars."""
        self._console.print(printable(text), markup=False, soft_wrap=True)

    def _repeat(self, loop: asyncio.AbstractEventLoop, every: float, show: Callable[[Tally], None]) -> None:
        """Redraw regularly, and less often without new records."""
        def tick() -> None:
            assert self.tally is not None
            idle = _IDLE if self._screen is not None else _QUIET
            if self.tally.made != self._shown or loop.time() - self._at >= idle:
                self._shown, self._at = self.tally.made, loop.time()
                show(self.tally)
            self._timer = loop.call_later(every, tick)

        self._timer = loop.call_later(every, tick)


def screen_of(tally: Tally, most: int, width: int) -> RenderableType:
    """Return the display of a run for a terminal of this width, with at most `most` lines of cells."""
    bar = max(6, min(24, width // 5))
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_column(width=bar)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True)
    for name, done, total, failed in tally.lines(most):
        table.add_row(Text(printable(name)), ProgressBar(total, done, width=bar), Text(f"{done:,}/{total:,}"),
                      Text(f"{failed:,} without answer" if failed else "", style="red"))
    return Group(table, *map(Text, (_pace(tally), _use(tally), _calls(tally))))


def _pace(tally: Tally) -> str:
    rate, left = tally.rate(), tally.seconds_left()
    text = (f"{tally.done:,} of {tally.total:,} questions ({100 * tally.done // tally.total} %) in "
            f"{plural(len(tally.begun.cells), 'cell')}")
    if rate is None or left is None:
        return text
    return f"{text}, {format_pace(rate, left)}"


def _use(tally: Tally) -> str:
    figures = tally.figures()
    paid, live = figures["price"]["paid"], figures["price"]["live"]
    also = f" ({format_price(live)} including reused calls)" if live != paid else ""
    left = ", ".join(format_amount(name, amount) for name, amount in figures["budget_left"].items())
    return (f"tokens {tally.prompt_tokens:,} in, {tally.completion_tokens:,} out; "
            f"price {format_price(paid, 'unknown')}{also}"
            f"{f'; left of the budget: {left}' if left else ''}")


def _calls(tally: Tally) -> str:
    calls = tally.calls()
    text = f"calls: {calls['made']:,} made, {calls['under_way']:,} in flight"
    if calls["places"] < calls["places_at_most"]:
        text += f", {calls['places']:,} of {calls['places_at_most']:,} allowed at once"
    text += "".join(f", {calls[name]:,} {name.replace('_', '-')}" for name in ("retried", "rate_limited")
                    if calls[name])
    failed = ", ".join(f"{count:,} {outcome}" for outcome, count in tally.failed.most_common())
    return text + (f"; without answer: {failed}" if failed else "")


def format_pace(rate: float, seconds: float) -> str:
    """Format records per second, and the seconds left."""
    pace = f"{rate:,.0f} a second" if rate >= 10 else f"{rate:.1f} a second" if rate >= 1 else \
        f"{60 * rate:.1f} a minute"
    return f"{pace}, {_duration(seconds)} left"


def _duration(seconds: float) -> str:
    minutes, hours = seconds / 60, seconds / 3600
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes:.0f} min" if minutes < 90 else \
        f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"
