"""The table of a run, as the terminal shows it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.cells import varying
from experiments.metrics.table import shown_name


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
