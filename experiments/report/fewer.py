"""Means over fewer questions than were asked: how many are left out, and why."""
from __future__ import annotations

from experiments.metrics.catalogue import METRICS
from experiments.metrics.metric import family_of
from experiments.report.cells import Cell, Figure, Table
from experiments.report.words import listed, metric_words


def on_fewer(table: Table) -> list[str]:
    """A sentence for all cells of which the same is left out by the first column's metric."""
    alike: dict[tuple[int, int, str], list[Cell]] = {}
    for cell in table.cells:
        found = cell.of(table.quality)
        if found and found[1].mean is not None and found[1].n < cell.n:
            alike.setdefault((found[1].n, cell.n, _why(cell, found[1], table)), []).append(cell)
    return [f"{_who(cells, table)} over {n:,} of {of:,} questions: {why}."
            for (n, of, why), cells in alike.items()]


def _who(cells: list[Cell], table: Table) -> str:
    """By their conditions where these are all of them that have these."""
    if len(cells) == len(table.cells):
        return "Every mean is"
    conditions = dict.fromkeys(cell.factors.get("condition") or "" for cell in cells)
    if len(cells) == sum(cell.factors.get("condition") in conditions for cell in table.cells):
        return f"Under {listed(list(conditions))} each mean is"
    return f"Of {listed([cell.label for cell in cells])} the mean is"


def _why(cell: Cell, figure: Figure, table: Table) -> str:
    known = METRICS.get(family_of(table.quality))
    if table.drops_empty:
        return "as published, answers without text count in no mean"
    if table.quality == "unified" and cell.factors.get("rules") == "closed-book":
        return f"closed-book offers no refusal, so that the {cell.n - figure.n:,} unanswerable ones have no score"
    return f"{metric_words(table.quality)} is of {known.over}" if known else "the others have no score"
