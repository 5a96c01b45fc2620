"""The tables of a run, as the terminal shows them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.cells import varying
from experiments.metrics.table import shown_name
from experiments.published import published

_LONG = 12  # rows above which a view over several cells becomes a cross table
_LONGEST, _WIDEST = 40, 8  # rows and cells of what a terminal shows at all

Table = tuple[list[str], list[list[str]]]


def run_table(cells: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: the factors that vary, figures with their 95 % intervals, outcomes, cost.

    Metrics that share a column, joined by ` / `, stand without intervals. How many answers are unjudged has a column
    where any is.

    Args:
        columns: of the benchmark's scheme.
    """
    factors = varying(cells)
    judge = "lexical" if cells and cells[0]["judge"] == "lexical" else None  # a model's name is long, and in the title
    unjudged = ["unjudged"] if any(map(_unjudged, cells)) else []
    header = [*factors, "n", *(_shown(column, judge) for column in columns), *unjudged, "outcomes", "calls", "tokens",
              "price"]
    return header, [_row(cell, factors, columns, bool(unjudged)) for cell in cells]


def view_table(view: Mapping[str, Any]) -> tuple[str, Table | None]:
    """Title and table of a view. A long one over several cells becomes a cross table of its first figure.

    Returns:
        the title and header with rows; None for the table where it is too long or wide for a terminal.
    """
    keys, header, rows = view["keys"], view["header"], view["rows"]
    cells = list(dict.fromkeys(row[keys - 1] for row in rows))
    title, table = view["title"], (header, rows)
    if len(cells) == 1:
        table = ([*header[:keys - 1], *header[keys:]], [[*row[:keys - 1], *row[keys:]] for row in rows])
    elif len(rows) > _LONG:
        at = next(place for place, value in enumerate(rows[0]) if isinstance(value, dict))
        title, table = f"{title}: {header[at]}", _crossed(header, rows, keys, cells, at)
    if len(table[1]) > _LONGEST or len(cells) > _WIDEST:
        return f"{view['title']}: {len(rows)} rows, in the report and with --json", None
    return title, (list(table[0]), [[_value(value, view["shaded"]) for value in row] for row in table[1]])


def _crossed(header: Sequence[str], rows: Sequence[Sequence[Any]], keys: int, cells: Sequence[str],
             at: int) -> tuple[list[str], list[list[Any]]]:
    """A row for the keys before the cell, a column for each cell, and the figure at that place."""
    crossed: dict[tuple[Any, ...], dict[str, Any]] = {}
    sizes: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        key = tuple(row[:keys - 1])
        crossed.setdefault(key, {})[row[keys - 1]] = row[at]
        sizes.setdefault(key, []).append(row[keys])
    return [*header[:keys - 1], "n", *cells], [[*key, _span(sizes[key]), *(found.get(cell) for cell in cells)]
                                               for key, found in crossed.items()]


def _span(sizes: Sequence[int]) -> str:
    least, most = min(sizes), max(sizes)
    return str(least) if least == most else f"{least} to {most}"


def _value(value: Any, shaded: bool) -> str:
    if isinstance(value, Mapping):
        return _number(value) if shaded else _interval(value)
    return "-" if value is None else str(value)


def on_published(names: Sequence[str]) -> list[str]:
    """Which of the paper's tables stand in the report."""
    by_paper: dict[str, list[str]] = {}
    for table in map(published, names):
        by_paper.setdefault(table.paper, []).append(table.table)
    return [f"The report has the paper's own figures beside these, marked as published: {paper}, {', '.join(tables)}."
            for paper, tables in by_paper.items()]


def _shown(column: str, judge: str | None) -> str:
    """The column's header: its metrics in words, and the judge's name once."""
    names = column.split(" / ")
    judged = shown_name(names[0], judge).removeprefix(names[0])
    return column.replace("_", " ") + judged


def _row(cell: Mapping[str, Any], factors: Sequence[str], columns: Sequence[str], unjudged: bool) -> list[str]:
    metrics, usage = cell["metrics"], cell["usage"]
    price = "?" if usage["price"] is None else f"${usage['price']:.4f}" if usage["price"] else "0"
    return [*("-" if cell[name] is None else str(cell[name]) for name in factors), str(cell["n"]),
            *(_figures(metrics, column) for column in columns), *([str(_unjudged(cell))] if unjudged else []),
            _outcomes(cell["outcomes"]), str(usage["calls"]),
            str(usage["prompt_tokens"] + usage["completion_tokens"]), price]


def _figures(metrics: Mapping[str, Any], column: str) -> str:
    names = column.split(" / ")
    if len(names) == 1:
        return _interval(metrics.get(column))
    return " / ".join(_number(metrics.get(name)) for name in names)


def _unjudged(cell: Mapping[str, Any]) -> int:
    metric = cell["metrics"].get("unjudged")
    return 0 if metric is None or metric["mean"] is None else round(metric["mean"] * metric["n"])


def _number(metric: Mapping[str, Any] | None) -> str:
    return "-" if metric is None or metric["mean"] is None else f"{metric['mean']:.2f}"


def _interval(metric: Mapping[str, Any] | None) -> str:
    if metric is None or metric["low"] is None:
        return _number(metric)
    return f"{_number(metric)} [{metric['low']:.2f}, {metric['high']:.2f}]"


def _outcomes(counts: Mapping[str, int]) -> str:
    return "\n".join(f"{count} {name}" for name, count in counts.items() if count)
