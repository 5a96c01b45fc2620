"""Which cells refuse what they should, and which what they should not, in sentences."""
from __future__ import annotations

from experiments.report.cells import Cell, Figure, Table

_RIGHTLY, _NEEDLESSLY = "refusal_accuracy", "refused_answerable"


def on_refusals(table: Table) -> list[str]:
    """Of the cells whose refusals are scored, those at either end."""
    right, over = _known(table, _RIGHTLY), _known(table, _NEEDLESSLY)
    said = [_ends(right, "rightly refuses", "unanswerable questions")] if right else []
    if over and not right:
        said.append("Every question is answerable, so that each refusal is needless.")
    return said + ([_ends(over, "needlessly refuses", "answerable questions")] if over else [])


def _known(table: Table, metric: str) -> list[tuple[Cell, Figure]]:
    return [(cell, found[1]) for cell in table.cells if (found := cell.of(metric)) and found[1].mean is not None]


def _ends(known: list[tuple[Cell, Figure]], verb: str, questions: str) -> str:
    (most, high), (least, low) = (end(known, key=lambda one: one[1].mean or 0.0) for end in (max, min))
    counts = [f"{figure.count} of {figure.n}" for figure in (high, low)]
    if high.mean == low.mean:
        who = "Each cell" if len(known) > 1 else f"The cell {most.label}"
        return f"{who} {verb} {counts[0]} {questions}."
    return f"The cell {most.label} {verb} the most, {counts[0]} {questions}; {least.label} the fewest, {counts[1]}."
