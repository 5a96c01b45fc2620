"""Lay out the views of a summary as tables, with shaded figures, links to questions, and significant tests first."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ragbed.experiments.analysis.view import Value, View, format_value
from ragbed.experiments.cells import short_name
from ragbed.experiments.formatting import BOUNDS, UNKNOWN, estimate, format_bounds, metric_title, visible
from ragbed.experiments.metrics import METRICS, family_of
from ragbed.experiments.metrics.intervals import ALPHA
from ragbed.experiments.report.cell_table import Table
from ragbed.experiments.report.charts import Drawing, draw
from ragbed.experiments.report.report_input import to_questions

_SHADES = 10
_ALL = "all"  # this group comes first
_FEW, _LEAST = 12, 3  # a view with more than 12 tests is folded, but shows at least 3


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a table."""

    text: str = ""
    mean: str = ""  # of a figure
    interval: str = ""
    n: int | None = None  # number of questions of a figure, if it differs from its row's
    shade: int | None = None  # from 0 to 10, in a heat map
    best: bool = False
    marks: tuple[float, float, float] | None = None  # positions of mean, low and high of a difference, from 0 to 100
    href: str = ""  # link to the counted questions; `label` describes them
    label: str = ""
    cells: tuple[tuple[int, str], ...] = ()  # number and label of each cell in the text

    @property
    def apart(self) -> bool:
        """Whether the interval of a difference excludes 0."""
        return self.marks is not None and (self.marks[1] > 50 or self.marks[2] < 50)


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row: its names, without the name of its group, and its values."""

    names: tuple[Entry, ...]
    entries: tuple[Entry, ...]
    real: bool


@dataclass(frozen=True, slots=True)
class ShownView:
    """A view as the page shows it. Tests that are not significant may be folded into `rest`."""

    view: View
    anchor: str
    title: str
    header: tuple[str, ...]
    groups: tuple[tuple[Entry, tuple[ShownRow, ...]], ...]
    rest: tuple[tuple[Entry, tuple[ShownRow, ...]], ...]
    drawings: tuple[Drawing, ...]

    @property
    def folded(self) -> int:
        return sum(len(rows) for _, rows in self.rest)


@dataclass(frozen=True, slots=True)
class Section:
    """Views under one heading, with their notes."""

    anchor: str
    title: str
    views: tuple[ShownView, ...]
    notes: tuple[str, ...]


def sections(stored: Iterable[Mapping[str, Any]], table: Table, whole: Table, linked: bool) -> list[Section]:
    """Return the summary's views by section.

    `table` has all cells, `whole` one cell for all repeats of a configuration. Figures link to their questions if
    `linked`.
    """
    numbers = {**_numbers(whole), **_numbers(table)}
    single = {cell.label: cell.number for cell in table.cells} if linked else {}
    judges = {cell.judge for cell in table.cells if cell.judge}
    found: dict[str, list[View]] = {}
    for one in stored:
        view = View.of(one)
        found.setdefault(view.section, []).append(view)
    made = []
    for title, views in found.items():
        anchor = title.split()[0].lower()
        made.append(Section(anchor, visible(title), tuple(
            _Builder(view, numbers, single, table).shown(f"{anchor}-{place}", judges)
            for place, view in enumerate(views, 1)),
            tuple(visible(note) for note in dict.fromkeys(note for view in views for note in view.notes))))
    return made


def _numbers(table: Table) -> dict[str, int]:
    return {name: cell.number for cell in table.cells for name in (cell.id, cell.label)}


@dataclass(frozen=True)
class _Builder:
    """Make the entries of one view. `numbers` has cell numbers by id and label. `single` has the numbers of cells to
    which links can point."""

    view: View
    numbers: Mapping[str, int]
    single: Mapping[str, int]
    table: Table

    def shown(self, anchor: str, judges: Iterable[str]) -> ShownView:
        view = self.view
        first, rest = view.rows, view.rows[:0]
        if "difference" in view.signed and len(view.rows) > _FEW:
            real, others = (tuple(row for row in view.rows if self._real(row) is which) for which in (True, False))
            more = max(_LEAST - len(real), 0)
            first, rest = (*real, *others[:more]), others[more:]
        return ShownView(view, anchor, visible(view.title), tuple(_head(name, judges) for name in view.header),
                         self._groups(first), self._groups(rest),
                         tuple(draw(chart, self.table, self.numbers) for chart in view.charts))

    def _real(self, row: Sequence[Value]) -> bool:
        p = self.view.p_of(row)
        return p is not None and p < ALPHA

    def _groups(self, rows: Sequence[tuple[Value, ...]]) -> tuple[tuple[Entry, tuple[ShownRow, ...]], ...]:
        ordered = sorted(rows, key=lambda row: row[0] != _ALL) if self.view.keys > 1 else rows
        parts = groupby(ordered, key=lambda row: row[0]) if self.view.keys > 1 else ((row[0], [row]) for row in ordered)
        return tuple((self._name(self.view.header[0], key), tuple(map(self._row, own))) for key, own in parts)

    def _row(self, row: tuple[Value, ...]) -> ShownRow:
        keys, header = self.view.keys, self.view.header
        n = row[header.index("n")] if "n" in header else row[header.index("answers")] if "answers" in header else None
        values = zip(header[keys:], row[keys:], strict=True)
        return ShownRow(tuple(map(self._name, header[1:keys], row[1:keys])),
                        tuple(self._entry(name, value, n) for name, value in values), self._real(row))

    def _name(self, column: str, value: Value) -> Entry:
        if isinstance(value, Mapping):
            cells = tuple((self.numbers[one], visible(one)) for one in value["cells"] if one in self.numbers)
            return Entry(visible(value["text"]), cells=cells)
        text = "none" if value is None else format_value(self.view, column, value)
        named = column == "cell" and text in self.numbers
        return Entry(visible(text), cells=((self.numbers[text], visible(text)),) if named else ())

    def _entry(self, column: str, value: Value, n: Value) -> Entry:
        if not isinstance(value, Mapping):
            if value is None:
                return Entry("" if column in self.view.p else "none")
            return Entry(visible(format_value(self.view, column, value)))
        if "count" in value:
            href, label = self._link(value)
            return Entry(str(value["count"]), href=href, label=f"{value['count']} {column}: {label}" if href else "")
        mean = value["mean"]
        if mean is None:
            return Entry("none", n=value.get("n") or None)
        href, label = self._link(value)
        words = estimate(mean, value["low"], value["high"], "+z.2f" if column in self.view.signed else "z.2f")
        shown, _, interval = (words + format_bounds(value.get("bounds"), f" {BOUNDS} ")).partition(" ")
        own, (low, high) = value.get("n"), self.view.shaded or (0.0, 0.0)
        shade = None if self.view.shaded is None else 0 if high <= low else min(max(
            round((mean - low) / (high - low) * _SHADES), 0), _SHADES)
        return Entry("", shown, interval.replace(UNKNOWN, "no interval"),
                     own if own is not None and own != n and column not in self.view.signed else None,
                     shade, self.view.shaded is not None and self.view.shaded[1] == mean
                     and self.view.shaded[0] < mean and self.view.section == "Factors",
                     self._marks(column, value), href, label)

    def _link(self, value: Mapping[str, Any]) -> tuple[str, str]:
        """Return the link to the questions of a figure, and its description; empty without one."""
        wanted: Mapping[str, str] = value.get("questions") or {}
        if not wanted or not all(label in self.single for label in wanted.values()):
            return "", ""
        filters = {name: self.single[label] for name, label in wanted.items()}
        if list(filters) == ["wrong"]:  # show the wrong answers with all answers of that cell
            filters = {"cell": filters["wrong"], **filters} if value.get("mean") != 1 else {"cell": filters["wrong"]}
        return to_questions(**filters), ", ".join(f"{name} in {visible(label)}" for name, label in wanted.items())

    def _marks(self, column: str, value: Mapping[str, Any]) -> tuple[float, float, float] | None:
        """Return positions on an axis that is symmetric around 0 and as wide as the column needs."""
        if column not in self.view.signed or value["low"] is None or value["high"] is None:
            return None
        reach = max((abs(bound) for one in self.view.column(column) if isinstance(one, Mapping)
                     for bound in (one["mean"], one["low"], one["high"]) if bound is not None), default=0.0) or 1.0
        mean, low, high = (round(50 + 50 * value[name] / (reach * 1.05), 2) for name in ("mean", "low", "high"))
        return mean, low, high


def _head(words: str, judges: Iterable[str]) -> str:
    """Return the title of a column: a metric in words, with the judge's short name."""
    for judge in judges:
        words = words.replace(f"({judge})", f"({short_name(judge)})")
    metric, colon, rest = words.partition(":")
    name, space, judge = metric.partition(" ")
    known = metric_title(name) if family_of(name) in METRICS else name
    return visible(f"{known}{space}{judge}{colon}{rest}")
