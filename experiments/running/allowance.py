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

LEAST = {"calls": 1, "tokens": 1, "searches": 0}  # that the limits of a question may be


class Allowances:
    """The allowance of every cell of a run; without limits no question waits for another."""

    def __init__(self, limits: CellLimits, each: Limits) -> None:
        self._limits, self._each = limits, each
        self._used: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(CellLimits.model_fields, 0.0))
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
        used = self._used[cell]
        return next((f"the cell may use {limit:g} {name}, and its questions have used {used[name]:g}"
                     for name, limit in self._limits.given.items() if used[name] >= limit), None)

    def limits(self, cell: str) -> Limits:
        """What the cell's next question may use."""
        left = {name: limit - self._used[cell][name] for name, limit in self._limits.given.items()}
        return self._each.model_copy(update={name: min(getattr(self._each, name), _whole(name, amount))
                                             for name, amount in left.items()})

    def count(self, record: Record) -> None:
        """A question of the cell was asked."""
        if self._limits.given:
            self._take(record)

    def _take(self, record: Record) -> None:
        result, used = record.result, self._used[record.result.cell]
        used["calls"] += result.usage.calls
        used["tokens"] += result.usage.prompt_tokens + result.usage.completion_tokens
        used["searches"] += sum(step.kind == "search" for step in result.trace)
        used["seconds"] += record.timing.seconds


def _whole(name: str, left: float) -> float:
    return left if name == "seconds" else max(int(left), LEAST[name])
