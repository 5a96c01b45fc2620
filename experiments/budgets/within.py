"""The answers of a run as a budget for each question would have left them: those that took more were ended by it."""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from experiments.cells import Cell
from experiments.metrics.scored import Scoring
from experiments.question import Question
from experiments.record import Record, Result
from experiments.running.results import scored_result
from experiments.scheme import Scheme
from experiments.usage import Unit, used
from strategies.types import Failure

_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_CUT = ("budget", "timeout", "error")
_NOTHING = {"text": "", "refused": False, "refused_as_published": False, "cited": (), "invalid_citations": (),
            "tagged": None, "verdict": None, "figures": {}}


@dataclass(frozen=True, slots=True)
class Kept:
    """A record with what its answer took, and what it would have been if the budget had ended it.

    Attributes:
        again: whether a journal answered some of its calls, so that its seconds say nothing of a model's speed.
        cut: whether a limit of the run, a timeout or an error ended it, so that what its answer would have taken is
            not known.
    """

    used: float
    result: Result
    ended: Result
    again: bool
    cut: bool

    def fits(self, budget: float) -> bool:
        """Whether it came to its own end with this budget."""
        return self.used <= budget and not self.cut

    def within(self, budget: float) -> Result:
        """What the record is with this budget; one that was cut is a failure with any."""
        return self.result if self.used <= budget else self.ended


def kept_of(record: Record, unit: Unit, cell: Cell, question: Question, scheme: Scheme, scoring: Scoring) -> Kept:
    """The record, and its scores with the outcome `budget`: strategies are played alike whatever is left to them, so
    that nothing but its end is different."""
    result = record.result
    ended = result.model_copy(update={**_NOTHING, "outcome": "budget",
                                      "failure": Failure("budget", f"the question may use fewer {unit}")})
    return Kept(used(record, unit), result, scored_result(ended, cell, question, scheme, scoring),
                record.timing.replayed > 0, result.outcome in _CUT)


def usual_budgets(kept: Iterable[Kept]) -> tuple[float, ...]:
    """Those that a tenth, a quarter, half, three quarters, nine tenths and all of the records that came to their own
    end keep, rounded up to two digits; of all records where none did."""
    every = list(kept)
    values = sorted(one.used for one in every if not one.cut) or sorted(one.used for one in every)
    return tuple(dict.fromkeys(_up(values[math.ceil(share * len(values)) - 1]) for share in _SHARES)) if values else ()


def answers_within(kept: Mapping[str, Mapping[str, Kept]], budget: float) -> dict[str, dict[str, Result]]:
    """By cell, then by question: the results with this budget."""
    return {cell: {question: one.within(budget) for question, one in own.items()} for cell, own in kept.items()}


def share_within(cells: Sequence[Mapping[str, Kept]], budget: float) -> float:
    """The share of the records that came to their own end within the budget."""
    every = [one.fits(budget) for own in cells for one in own.values()]
    return sum(every) / len(every) if every else 0.0


def _up(value: float) -> float:
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    rounded = math.ceil(round(value / unit, 9)) * unit
    return float(round(rounded)) if rounded >= 10 else round(rounded, 12)
