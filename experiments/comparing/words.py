"""What a comparison says, in words that claim no more than its test."""
from __future__ import annotations

from experiments.statistics import Comparison

UNKNOWN = "[no interval]"  # as where a figure is infinite in some resample
ON_INTERVALS = ("The test decides. The interval of a difference is of that one alone, approximate and not corrected "
                "for how many are shown; where p is not below 0.05 it is made to hold 0.")


def verdict(comparison: Comparison) -> str:
    """Whether there is a difference, and what could have been found where there is none."""
    if comparison.n == 0:
        return "nothing to compare: no question of both cells has it"
    if comparison.difference is None:
        return "nothing to compare: it has no finite value"
    if comparison.real:
        return f"{'higher' if comparison.difference > 0 else 'lower'} by {abs(comparison.difference):z.2f}"
    if comparison.gained == comparison.lost == 0:
        return f"the same score on {_questions(comparison.n)}"
    if comparison.difference == 0 and comparison.low is None:
        return f"the same figure over {_questions(comparison.n)}"
    return f"no difference that {_questions(comparison.n)} can show{_least(comparison)}"


def _least(comparison: Comparison) -> str:
    if comparison.smallest is None or comparison.smallest > 1:
        return "; they are too few to show any"
    return f"; the smallest they could: {comparison.smallest:z.2f}"


def _questions(n: int) -> str:
    return "1 question" if n == 1 else f"{n} questions"


def difference(comparison: Comparison) -> str:
    """The difference with its interval."""
    return figure(comparison.difference, comparison.low, comparison.high, "+z.2f")


def figure(value: float | None, low: float | None, high: float | None, form: str = "z.2f") -> str:
    """A figure with its interval; one that has none says so."""
    if value is None:
        return "-"
    interval = UNKNOWN if low is None or high is None else f"[{low:{form}}, {high:{form}}]"
    return f"{value:{form}} {interval}"


def probability(p: float | None) -> str:
    """A p with three decimals; what is smaller is said to be."""
    return "-" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def effect(comparison: Comparison) -> str:
    """The odds of the flips, or d_z."""
    if comparison.odds is not None:
        return f"odds {comparison.odds:z.2f}"
    return "-" if comparison.dz is None else f"d_z {comparison.dz:+z.2f}"
