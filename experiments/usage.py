"""What the answer of a record took, in each of the units that limits and budgets have."""
from __future__ import annotations

from typing import Literal, get_args

from experiments.record import Record

Unit = Literal["tokens", "calls", "searches", "seconds"]
UNITS: tuple[Unit, ...] = get_args(Unit)


def used(record: Record, unit: Unit) -> float:
    """What the answer took, judges and sub-questions apart; seconds as they were measured.

    Args:
        record: with its trace, where searches are counted.
    """
    if unit == "tokens":
        return record.result.usage.tokens
    if unit == "calls":
        return record.result.usage.calls
    if unit == "searches":
        return sum(step.kind == "search" for step in record.result.trace)
    return record.timing.seconds
