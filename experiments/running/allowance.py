"""What the questions of one cell may use together: asked in their order, each of what those before it left."""
from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from agents.settings import Limits
from experiments.record import Record
from experiments.runs.store import RunFolder
from experiments.settings.cell_limits import CellLimits
from experiments.usage import UNITS, used


class Allowances:
    """The allowance of every cell of a run; without limits no question waits for another."""

    def __init__(self, limits: CellLimits, each: Limits) -> None:
        self._limits, self._each = limits, each
        self._used: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(UNITS, 0.0))
        self._turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def recall(self, folder: RunFolder, done: Collection[tuple[str, str]]) -> None:
        """Take over what earlier sittings used.

        Args:
            done: the (cell, question) pairs whose records stay.
        """
        for record in folder.records(traces=True) if self._limits.given and done else ():
            if (record.result.cell, record.result.question) in done:
                self._take(record)

    @asynccontextmanager
    async def turn(self, cell: str) -> AsyncIterator[None]:
        """Held while a question of the cell is asked, where what it uses decides what the next one may use."""
        if not self._limits.given:
            yield
            return
        async with self._turns[cell]:
            yield

    def spent(self, cell: str) -> str | None:
        """What of the cell's allowance is used up, in words; None where something of each part is left."""
        so_far = self._used[cell]
        return next((f"the cell may use {limit:g} {name}, and its questions have used {so_far[name]:g}"
                     for name, limit in self._limits.given.items() if so_far[name] >= limit), None)

    def limits(self, cell: str) -> Limits:
        """What the cell's next question may use, where something of each part is left."""
        left = {name: limit - self._used[cell][name] for name, limit in self._limits.given.items()}
        return self._each.model_copy(update={name: min(getattr(self._each, name), _whole(name, amount))
                                             for name, amount in left.items()})

    def count(self, record: Record) -> None:
        """A question of the cell was asked."""
        if self._limits.given:
            self._take(record)

    def _take(self, record: Record) -> None:
        for unit in UNITS:
            self._used[record.result.cell][unit] += used(record, unit)


def _whole(name: str, left: float) -> float:
    return left if name == "seconds" else int(left)
