"""`View`: a table of plain values with notes, tests and charts. The terminal, the report and JSON show the same views.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from ragbed.experiments.formatting import BOUNDS, estimate, format_bounds, format_p
from ragbed.guests import entries, load

# A mapping is a figure (`mean`, `low`, `high`, `n`), a number of questions (`count`) or text about cells (`text`,
# `cells`). Figures and counts may have `questions`: the filter of the report's question list that shows them.
Value = str | int | float | None | Mapping[str, Any]
Mark = Literal["", "front", "faded", "hollow"]


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a chart, or a part of a bar."""

    series: str  # what the colour shows: a curve, a cell or a cause
    x: float | str  # a number, or the cell if the chart has bars
    y: float
    low: float | None = None  # interval of y; `x_low` and `x_high` are that of x
    high: float | None = None
    x_low: float | None = None
    x_high: float | None = None
    cell: str = ""  # label of the linked cell
    line: str = ""  # points with the same value are joined in order
    words: tuple[str, ...] = ()  # lines of the tooltip
    questions: Mapping[str, str] | None = None  # filter for the point's questions; `n`: the denominator of y
    n: int | None = None
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Goal:
    """The ideal point of a chart, on a vertical line."""

    x: float
    y: float
    line: str
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing of a view."""

    kind: Literal["scatter", "lines", "bars"]
    title: str
    x: str  # title of the axis
    y: str
    points: tuple[Point, ...]
    least: float = 0.0  # the lowest possible value of y
    ticks: tuple[tuple[float, str], ...] = ()  # labels of x that are not numbers
    series: tuple[str, ...] = ()  # all series in the order of their colours; by default in the order of the points
    percent: bool = False  # both axes show percentages; `costs`: the unit if x is a cost
    costs: Literal["", "dollars", "tokens"] = ""
    goal: Goal | None = None
    caption: str = ""  # explanation for readers


@dataclass(frozen=True, slots=True)
class View:
    """A table and how to read it."""

    name: str  # such as `by:language`; the part before the colon is the analysis
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]  # values per column; the first `keys` identify the row
    keys: int = 1
    main: int | None = None  # column that represents the row; by default the second after the keys
    notes: tuple[str, ...] = ()
    signed: tuple[str, ...] = ()  # columns of differences, shown with a sign
    p: tuple[str, ...] = ()  # columns of p values; a row is significant if the last is below 0.05
    shaded: tuple[float, float] | None = None  # for a heat map: values with the faintest and the strongest shade
    charts: tuple[Chart, ...] = ()
    section: str = "Breakdowns"  # section of the report; the terminal shows `Breakdowns` when a run ends
    folded: bool = False  # collapsed in the report

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> View:
        """Rebuild a view from the output of `as_json`."""
        view: View = _adapter(View).validate_python(stored)
        return view

    def as_json(self) -> dict[str, Any]:
        """Return the view as plain JSON."""
        plain: dict[str, Any] = _adapter(View).dump_python(replace(self, charts=()), mode="json")
        return {**plain, "charts": [_adapter(Chart).dump_python(one, mode="json", exclude_defaults=True)
                                    for one in self.charts]}

    @property
    def counted(self) -> bool:
        """Return whether one of the columns is the number of questions."""
        return any(name in ("n", "answers") or ", n " in name for name in self.header)

    def _repr_html_(self) -> str:
        return str(load(entries("table")["html"])(self))

    def column(self, name: str) -> list[Value]:
        """Return the values under a header."""
        place = self.header.index(name)
        return [row[place] for row in self.rows]

    def p_of(self, row: Sequence[Value]) -> float | None:
        """Return the corrected p of a row, or None if it has no test."""
        found = row[self.header.index(self.p[-1])] if self.p else None
        return found if isinstance(found, float | int) else None


@lru_cache(maxsize=2)
def _adapter(kind: type) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def format_value(view: View, column: str, value: Value) -> str:
    """Format a value for people: a figure with its interval, p with three digits, `-` for a missing value."""
    if isinstance(value, Mapping):
        if "mean" in value:
            signed = column in view.signed
            of = "" if signed or value.get("n") is None or view.counted else f" n {value['n']}"
            return estimate(value["mean"], value["low"], value["high"], "+z.2f" if signed else "z.2f") + of + (
                format_bounds(value.get("bounds"), f" {BOUNDS} "))
        return str(value["count"] if "count" in value else value["text"])
    if column in view.p:
        return "" if value is None else format_p(float(value))
    if isinstance(value, float):
        return format_amount(value)
    return "-" if value is None else str(value)


def make_figure(mean: float | None, low: float | None, high: float | None, n: int | None = None) -> Value:
    """Return a figure as a value of a view, or None if it has no mean."""
    return None if mean is None else {"mean": mean, "low": low, "high": high, "n": n}


def format_amount(value: float) -> str:
    """Format a number with at most three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"
