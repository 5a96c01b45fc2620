"""A run while it goes on: drawn on a terminal, else as JSON Lines on stderr."""
from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from experiments.record import Record
from experiments.settings.limits import shown
from experiments.terminal.display import PROGRESS_EVERY, Bars, console, drawable, print_progress, printable
from experiments.terminal.tally import Tally
from experiments.words import price

if TYPE_CHECKING:
    from experiments.running.runner import Begun

_DRAWN_EVERY = 0.5  # seconds, while records are made; a drawing takes 3 ms
_IDLE = 1.0  # seconds between two drawings where nothing was made
_QUIET = 60.0  # seconds between two lines of JSON where nothing was made
_AROUND = 8  # lines of a terminal that the lines of cells leave free
_MOST = 24  # lines of cells


class RunView:
    """What the runner's `Watch` tells, shown. Before the first call: bars of what is built; then the records."""

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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._bars.stop()
        if self._screen is not None:
            self._screen.stop()
        elif self.tally is not None:
            print_progress(self.tally.figures())

    def stage(self, stage: str, done: int, total: int | None) -> None:
        """What is built goes on."""
        self._bars(stage, done, total)

    def begun(self, begun: Begun) -> None:
        """The first call comes next."""
        self.tally = Tally(begun)
        self._bars.stop()
        loop = asyncio.get_running_loop()
        self._at = loop.time()
        if self._drawn:
            self._screen = Live(console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop")
            self._screen.start()
            self._again(loop, _DRAWN_EVERY, self._draw)
        else:
            self._again(loop, PROGRESS_EVERY, self._tell)

    def record(self, record: Record) -> None:
        """A record was made."""
        assert self.tally is not None
        self.tally.add(record)

    def note(self, text: str) -> None:
        """One line on stderr at once, above what is drawn."""
        self._console.print(printable(text), markup=False, soft_wrap=True)

    def _again(self, loop: asyncio.AbstractEventLoop, every: float, show: Callable[[Tally], None]) -> None:
        """Show what is new every so often; what is not new, seldom: its times change, and it is seen to be alive."""
        def tick() -> None:
            assert self.tally is not None
            idle = _IDLE if self._screen is not None else _QUIET
            if self.tally.made != self._shown or loop.time() - self._at >= idle:
                self._shown, self._at = self.tally.made, loop.time()
                show(self.tally)
            self._timer = loop.call_later(every, tick)

        self._timer = loop.call_later(every, tick)

    def _tell(self, tally: Tally) -> None:
        print_progress(tally.figures())

    def _draw(self, tally: Tally) -> None:
        assert self._screen is not None
        width, height = self._console.size
        self._screen.update(screen_of(tally, max(1, min(_MOST, height - _AROUND)), width), refresh=True)


def screen_of(tally: Tally, most: int, width: int) -> RenderableType:
    """What a terminal of that width shows of a run.

    Args:
        most: lines of cells; where there are more cells, a line stands for several.
    """
    bar = max(6, min(24, width // 5))
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_column(width=bar)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True)
    for line in tally.lines(most):
        table.add_row(Text(printable(line.name)), ProgressBar(line.total, line.done, width=bar),
                      Text(f"{line.done:,}/{line.total:,}"), Text(f"{line.failed:,} failed" if line.failed else "",
                                                                  style="red"))
    return Group(table, *map(Text, (_pace(tally), _use(tally), _calls(tally))))


def _pace(tally: Tally) -> str:
    rate, left = tally.rate(), tally.seconds_left()
    share = 100 * tally.done // tally.total
    cells = len(tally.begun.cells)
    said = f"{tally.done:,} of {tally.total:,} questions ({share} %) in {cells:,} cell{'s' * (cells != 1)}"
    if rate is None or left is None:
        return said
    return f"{said}, {_rate(rate)}, {_duration(left)} left"


def _use(tally: Tally) -> str:
    figures = tally.figures()
    paid, live = figures["price"]["paid"], figures["price"]["live"]
    also = f" ({price(live)} with what the journal had)" if live != paid else ""
    parts = [f"tokens {tally.prompt_tokens:,} in, {tally.completion_tokens:,} out", f"paid now {price(paid)}{also}"]
    left = [shown(name, amount) for name, amount in figures["budget_left"].items()]
    return "; ".join([*parts, *([f"left of the budget: {', '.join(left)}"] if left else [])])


def _calls(tally: Tally) -> str:
    calls = tally.calls()
    said = f"calls: {calls['made']:,} made, {calls['under_way']:,} under way"
    if calls["places"] < calls["places_at_most"]:
        said += f", {calls['places']:,} of {calls['places_at_most']:,} places"
    said += "".join(f", {calls[name]:,} {name.replace('_', '-')}" for name in ("retried", "rate_limited")
                    if calls[name])
    failed = ", ".join(f"{count:,} {outcome}" for outcome, count in tally.failed.most_common())
    return said + (f"; failed: {failed}" if failed else "")


def _rate(rate: float) -> str:
    return f"{rate:,.0f} a second" if rate >= 10 else f"{rate:.1f} a second" if rate >= 1 else \
        f"{60 * rate:.1f} a minute"


def _duration(seconds: float) -> str:
    minutes, hours = seconds / 60, seconds / 3600
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes:.0f} min" if minutes < 90 else \
        f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"
