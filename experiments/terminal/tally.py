"""How far a run is: its records counted as they are made, their rate, and the time that is left."""
from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from agents.types import Cost
from experiments.cells import FACTORS, called, labels, shortened, varying
from experiments.record import Record
from experiments.words import price

if TYPE_CHECKING:
    from experiments.running.runner import Begun

_WINDOW = 60.0  # seconds over which the rate is taken; longer while that holds few records
_FEW = 20
_APART, _KEPT = 1.0, 600  # seconds between two moments that are remembered, and how many are
_FINE = ("answered", "refused", "searched")


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """Some cells of a run together.

    Attributes:
        failed: records made in this sitting that hold neither answer nor refusal.
    """

    name: str
    done: int
    total: int
    failed: int


class Tally:
    """Counts the records of one sitting.

    Args:
        clock: in seconds.

    Attributes:
        done: records that are there, of `total`.
        made: those made in this sitting; `cost` is what they took.
        failed: of these, by outcome, those that hold neither answer nor refusal.
        prompt_tokens, completion_tokens: of these, what came from the journal included.
        replayed: the price of what came from the journal; `unpriced` where one is unknown.
    """

    def __init__(self, begun: Begun, clock: Callable[[], float] = time.monotonic) -> None:
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
        self._asked, self._burst = False, (clock(), 0)
        self._moments = deque([self._burst], maxlen=_KEPT)

    def add(self, record: Record) -> None:
        """Count a record."""
        result, timing = record.result, record.timing
        self.made += 1
        self.done += 1
        self._done[result.cell] += 1
        if result.outcome not in _FINE:
            self.failed[result.outcome] += 1
            self._failed[result.cell] += 1
        if not self._asked:
            self._look(timing.attempts > 0)
        self.cost += Cost(0.0, timing.attempts, timing.replayed, timing.paid, timing.retried)
        worth = 0.0
        for usage in (result.usage, result.judge_usage, result.sub_usage):
            self.prompt_tokens += usage.prompt_tokens
            self.completion_tokens += usage.completion_tokens
            if usage.price is None:
                self.unpriced = True
            else:
                worth += usage.price
        self.replayed += worth - (timing.paid or 0.0)

    def _look(self, asked: bool) -> None:
        """Until the model is asked: remember when the burst from the journal ended."""
        if asked:
            self._asked = True
            self._moments = deque([self._burst], maxlen=_KEPT)
        else:
            self._burst = (self._clock(), self.made)

    def lines(self, most: int) -> list[ProgressLine]:
        """A line for each cell; where there are more than `most`, for each level of one factor; none at the worst."""
        cells = self.begun.cells
        rows = shortened([{"id": cell.id, **asdict(cell)} for cell in cells])
        if len(cells) <= most:
            named = dict(zip((cell.id for cell in cells), labels(rows), strict=True))
        else:
            levels = {factor: {str(row["id"]): called(row, [factor]) or f"no {factor}" for row in rows}
                      for factor in ("model", *varying(rows), *FACTORS) if factor in rows[0]}
            named = next((by for by in levels.values() if 1 < len(set(by.values())) <= most), {})
        return [self._line(name, [id for id, other in named.items() if other == name])
                for name in dict.fromkeys(named.values())]

    def _line(self, name: str, cells: list[str]) -> ProgressLine:
        return ProgressLine(name, sum(self._done[cell] for cell in cells), len(cells) * self.begun.questions,
                    sum(self._failed[cell] for cell in cells))

    def rate(self) -> float | None:
        """Records a second, recently; None before the first.

        What came from the journal in a burst, before the model was asked, does not count: the rest is as slow as it.
        """
        now = self._clock()
        if now - self._moments[-1][0] >= _APART:
            self._moments.append((now, self.made))
        since, before = next((moment for moment in reversed(self._moments)
                              if now - moment[0] >= _WINDOW and self.made - moment[1] >= _FEW), self._moments[0])
        return (self.made - before) / (now - since) if self.made > before and now > since else None

    def seconds_left(self) -> float | None:
        """By the rate; None where it is not known yet."""
        rate = self.rate()
        return None if rate is None else (self.total - self.done) / rate

    def figures(self) -> dict[str, Any]:
        """All of it as plain JSON."""
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

    def said(self) -> str:
        """The sitting in one line, at its end."""
        if not self.made and self.done == self.total:
            return NOTHING
        return _said(self.made, replace(self.cost, paid=None) if self.begun.spending.unpriced else self.cost)

    def calls(self) -> Mapping[str, int]:
        """The calls of this sitting, and the places that their servers leave them now."""
        spending, clients = self.begun.spending, self.begun.clients
        return {"made": spending.calls, "retried": spending.retried,
                "rate_limited": sum(client.rate_limited for client in clients), "under_way": spending.under_way,
                "places": sum(client.places for client in clients),
                "places_at_most": sum(client.limits.concurrency for client in clients)}


def _said(made: int, cost: Cost) -> str:
    again = f", tries of {cost.retried} retried ones among them," if cost.retried else ""
    return (f"{made} records made now, {cost.attempts} calls sent{again} and {cost.replayed} from the journal, "
            f"paid now {price(cost.paid)}")


NOTHING = "nothing was left to do"
