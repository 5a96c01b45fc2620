"""View: a table of plain values with notes, tests and charts, which the terminal, the report and JSON show alike."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from ragbed.experiments.formatting import estimate, format_p

# A mapping is a figure (`mean`, `low`, `high`, `n`), a number of questions (`count`) or words about cells (`text` and
# `cells`). A figure or a number may have `questions`: the filter of the report's browser that shows what it is of.
Value = str | int | float | None | Mapping[str, Any]
Mark = Literal["", "front", "faded", "hollow"]


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a chart, or a part of a bar."""

    series: str  # what its colour stands for: a curve, a cell, a cause
    x: float | str  # a number; of bars the cell that the bar is of
    y: float
    low: float | None = None  # the ends of the interval of y; `x_low` and `x_high`, of x
    high: float | None = None
    x_low: float | None = None
    x_high: float | None = None
    cell: str = ""  # the label of the cell that it leads to
    line: str = ""  # the points of one line are joined in their order
    words: tuple[str, ...] = ()  # what it says when it is pointed at
    questions: Mapping[str, str] | None = None  # the filter that shows what it is of; n, how many y is a share of
    n: int | None = None
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Goal:
    """The best place there is, on an upright line, and what the line and the place are called."""

    x: float
    y: float
    line: str
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What a view shows, drawn."""

    kind: Literal["scatter", "lines", "bars"]
    title: str
    x: str  # title of the axis
    y: str
    points: tuple[Point, ...]
    least: float = 0.0  # the lowest value of y that means anything
    ticks: tuple[tuple[float, str], ...] = ()  # places along x with their words, where these are no numbers
    series: tuple[str, ...] = ()  # all series in the order in which they get colours; by default as the points come
    percent: bool = False  # whether both axes are shares, in percent; `costs`, whether x is one, in dollars or tokens
    costs: Literal["", "dollars", "tokens"] = ""
    goal: Goal | None = None
    caption: str = ""  # what a reader of it has to know


@dataclass(frozen=True, slots=True)
class View:
    """A table, and how it is read."""

    name: str  # such as `by:language`; what precedes a colon is the analysis
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]  # values under the header; the first `keys` of them say what the row is of
    keys: int = 1
    main: int | None = None  # place of the column that stands for the row; by default the second after the keys
    notes: tuple[str, ...] = ()
    signed: tuple[str, ...] = ()  # columns of differences, whose figures have their sign
    p: tuple[str, ...] = ()  # columns of tests; by the last of them a row is really different where it is below 0.05
    shaded: tuple[float, float] | None = None  # values with the faintest and the strongest shade: a heat map
    charts: tuple[Chart, ...] = ()
    section: str = "Breakdowns"  # of the report; the terminal shows those of `Breakdowns` when a run ends
    folded: bool = False  # whether it is shown on demand only

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> View:
        """Return the view that `as_json` made of one."""
        view: View = _adapter(View).validate_python(stored)
        return view

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        plain: dict[str, Any] = _adapter(View).dump_python(replace(self, charts=()), mode="json")
        return {**plain, "charts": [_adapter(Chart).dump_python(one, mode="json", exclude_defaults=True)
                                    for one in self.charts]}

    @property
    def counted(self) -> bool:
        """Whether rows or columns say of how many questions their figures are."""
        return any(name in ("n", "answers") or ", n " in name for name in self.header)

    def column(self, name: str) -> list[Value]:
        """Return the values under a header."""
        place = self.header.index(name)
        return [row[place] for row in self.rows]

    def p_of(self, row: Sequence[Value]) -> float | None:
        """Return the corrected p of a row; None where it has no test."""
        found = row[self.header.index(self.p[-1])] if self.p else None
        return found if isinstance(found, float | int) else None


@lru_cache(maxsize=2)
def _adapter(kind: type) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def format_value(view: View, column: str, value: Value) -> str:
    """Return a value in words: a figure with its interval, p with three digits, `-` for what is not there."""
    if isinstance(value, Mapping):
        if "mean" in value:
            signed = column in view.signed
            of = "" if signed or value.get("n") is None or view.counted else f" n {value['n']}"
            return estimate(value["mean"], value["low"], value["high"], "+z.2f" if signed else "z.2f") + of
        return str(value["count"] if "count" in value else value["text"])
    if column in view.p:
        return "" if value is None else format_p(float(value))
    if isinstance(value, float):
        return format_amount(value)
    return "-" if value is None else str(value)


def make_figure(mean: float | None, low: float | None, high: float | None, n: int | None = None) -> Value:
    """Return a figure as a value of a view; None where it has no mean."""
    return None if mean is None else {"mean": mean, "low": low, "high": high, "n": n}


def format_amount(value: float) -> str:
    """Return a number with as many digits as tell it from others of its size."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"
