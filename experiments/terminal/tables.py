"""The table of a run: a row for each cell, with its figures, outcomes and cost."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.analysis.published import published
from experiments.cells import shortened, telling
from experiments.metrics import METRICS, family_of, measured_in, shown_name
from experiments.words import figure, price


def run_table(cells: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: the factors that tell cells apart, figures with their 95 % intervals, outcomes, passages
    shown for a question in the mean, cost.

    Shares that have a column together, joined by ` / `, stand there as counts. How many answers are unjudged has a
    column where any is, and so has what strategies measured themselves.

    Args:
        columns: of the benchmark's scheme.
    """
    factors = telling(cells)
    columns = [*columns, *measured_in(cells)]
    judge = "lexical" if cells and cells[0]["judge"] == "lexical" else None  # a model's name is long, and in the title
    unjudged = ["unjudged"] if any(map(_unjudged, cells)) else []
    header = [*factors, "n", *(_shown(column, judge) for column in columns), *unjudged, "outcomes",
              "passages", "calls", "tokens", "price"]
    return header, [_row(cell, factors, columns, bool(unjudged)) for cell in shortened(cells)]


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
    return [*("-" if (value := cell.get(name)) is None else str(value) for name in factors), str(cell["n"]),
            *(_figures(metrics, column) for column in columns), *([str(_unjudged(cell))] if unjudged else []),
            _outcomes(cell["outcomes"]), _passages(cell.get("passages")), str(usage["calls"]),
            str(usage["prompt_tokens"] + usage["completion_tokens"]), price(usage["price"], "?")]


def _figures(metrics: Mapping[str, Any], column: str) -> str:
    names = column.split(" / ")
    if len(names) > 1 and all(METRICS[family_of(name)].share for name in names):
        return _counts([metrics.get(name) for name in names])
    return " / ".join(_interval(metrics.get(name)) for name in names)


def _counts(shares: Sequence[Mapping[str, Any] | None]) -> str:
    """Shares as the numbers that they are of, such as `1 / 1 / 6 of 8`: several intervals have no room."""
    sizes = {0 if share is None else share["n"] for share in shares}
    if len(sizes) == 1:
        n, = sizes
        return f"{' / '.join(map(_count, shares))} of {n}" if n else "-"
    return " / ".join("-" if share is None or not share["n"] else f"{_count(share)} of {share['n']}"
                      for share in shares)


def _count(share: Mapping[str, Any] | None) -> str:
    return "-" if share is None or share["mean"] is None else str(round(share["mean"] * share["n"]))


def _unjudged(cell: Mapping[str, Any]) -> int:
    count = _count(cell["metrics"].get("unjudged"))
    return int(count) if count != "-" else 0


def _interval(metric: Mapping[str, Any] | None) -> str:
    return "-" if metric is None else figure(metric["mean"], metric["low"], metric["high"])


def _passages(mean: float | None) -> str:
    """How many a question's prompts showed; summaries of earlier versions do not say."""
    return "-" if mean is None else f"{mean:.3g}"


def _outcomes(counts: Mapping[str, int]) -> str:
    return "\n".join(f"{count} {name}" for name, count in counts.items() if count)
