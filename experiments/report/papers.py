"""The papers' tables with the run's own rows beside theirs."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.analysis.published import Column, Published, Row, own_figures, published
from experiments.metrics import Estimate
from experiments.record import Result
from experiments.report.cells import Cell
from experiments.report.text import ReportInput, visible


@dataclass(frozen=True, slots=True)
class Value:
    """A value as printed, or one of the run with its interval and n."""

    text: str = ""
    interval: str = ""
    n: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A row.

    Attributes:
        number: of the run's cell; None in a published row.
        measured: where it stands, over how many questions, with which prompt and judge.
    """

    number: int | None
    name: str
    method: str
    measured: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Paper:
    """One table: the run's rows, where any figure corresponds, and the published ones.

    Attributes:
        columns: names, with `%` where not all have that unit; `caption` says what has it.
    """

    anchor: str
    title: str
    caption: str
    columns: tuple[str, ...]
    own: tuple[Line, ...]
    printed: tuple[Line, ...]
    notes: tuple[str, ...]


def papers(view: ReportInput, cells: Sequence[Cell], results: Sequence[Result]) -> list[Paper]:
    """The tables that the run's summary names, in order."""
    by_cell: dict[str, list[Result]] = {}
    for result in results:
        by_cell.setdefault(result.cell, []).append(result)
    stored = {row["id"]: row for row in view.summary.get("cells") or ()}
    found = []
    for table in map(published, view.summary.get("published") or ()):
        lines = [_own(table, cell, stored[cell.id], by_cell.get(cell.id, []), view) for cell in cells]
        found.append(Paper(
            f"paper-{table.name}", f"{table.paper}, {table.table}", f"{table.caption} {_unit(table)}".strip(),
            tuple(_head(column, table) for column in table.columns), tuple(line for line in lines if line is not None),
            tuple(Line(None, row.model, row.method, _measured(table), _printed(row, table)) for row in table.rows),
            table.notes))
    return found


def _unit(table: Published) -> str:
    shares = [column.percent for column in table.columns]
    return "All figures are in percent." if all(shares) else "Columns with % are in percent." if any(shares) else ""


def _head(column: Column, table: Published) -> str:
    return f"{column.name}, %" if column.percent and not all(one.percent for one in table.columns) else column.name


def _printed(row: Row, table: Published) -> tuple[Value, ...]:
    return tuple(Value(text.removesuffix("%").rstrip() if column.percent else text)
                 for text, column in zip(row.values, table.columns, strict=True))


def _measured(table: Published) -> str:
    judged = f"; judge: {table.judge}" if table.judge else ""
    return f"{table.table}; n: {table.n}; prompt: {table.layout}{judged}"


def _own(table: Published, cell: Cell, stored: Mapping[str, Any], results: Sequence[Result],
         view: ReportInput) -> Line | None:
    figures = own_figures(table, stored, results, view.questions, stored["scoring"],
                          int(view.summary.get("seed") or 0))
    if all(figure is None or figure["mean"] is None for figure in figures):
        return None
    judged = f"; judge: {cell.judge}" if table.judge and cell.judge else ""
    measured = f"this run, {stored['scoring']} scoring; n: {cell.n}; prompt: {stored.get('layout')}{judged}"
    return Line(cell.number, cell.label, "", visible(measured.replace("_", " ")),
                tuple(_value(figure, column) for figure, column in zip(figures, table.columns, strict=True)))


def _value(figure: Estimate | None, column: Column) -> Value:
    """In the unit of the column."""
    if figure is None or figure["mean"] is None:
        return Value()
    scale, digits = (100, 1) if column.percent else (1, 2)
    low, high = figure["low"], figure["high"]
    interval = "" if low is None or high is None else f"[{low * scale:z.{digits}f}, {high * scale:z.{digits}f}]"
    return Value(f"{figure['mean'] * scale:z.{digits}f}", interval, figure["n"])
