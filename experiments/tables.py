"""The table of a run, as the terminal shows it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.cells import varying
from experiments.metrics.table import shown_name

_SHARES = ("refusal_accuracy", "citation_f1")
_GRADES = ("correct", "partial", "wrong")


def run_table(cells: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: the factors that vary, figures with their 95 % intervals, outcomes, cost.

    How many answers are unjudged has a column where any is.
    """
    factors = varying(cells)
    judge = "lexical" if cells and cells[0]["judge"] == "lexical" else None  # a model's name is long, and in the title
    unjudged = ["unjudged"] if any(map(_unjudged, cells)) else []
    header = [*factors, "n", shown_name("unified", judge), shown_name("correct", judge).replace(
        "correct", " / ".join(_GRADES), 1), *unjudged, "refusal accuracy", "citation F1", "outcomes", "calls", "tokens",
        "price"]
    return header, [_row(cell, factors, bool(unjudged)) for cell in cells]


def _row(cell: Mapping[str, Any], factors: Sequence[str], unjudged: bool) -> list[str]:
    metrics, usage = cell["metrics"], cell["usage"]
    grades = " / ".join(_number(metrics.get(name)) for name in _GRADES)
    price = "?" if usage["price"] is None else f"${usage['price']:.4f}" if usage["price"] else "0"
    return [*("-" if cell[name] is None else str(cell[name]) for name in factors), str(cell["n"]),
            _interval(metrics.get("unified")), grades, *([str(_unjudged(cell))] if unjudged else []),
            *(_interval(metrics.get(name)) for name in _SHARES), _outcomes(cell["outcomes"]), str(usage["calls"]),
            str(usage["prompt_tokens"] + usage["completion_tokens"]), price]


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
