"""The cells as ways of answering: those that differ in repeats and seeds alone, together."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from experiments.cells import REPLICATED, called
from experiments.report.cells import Cell, Figure, Table, column
from experiments.report.words import plural


def entrants(table: Table, repeated: Sequence[Mapping[str, Any]] = ()) -> Table:
    """The table with one cell for all that ask the same again, under the first one's id. Comparisons name them so.

    Args:
        repeated: the summary's figures of them; without, they have their means and no intervals.
    """
    factors = [name for name in table.varying if name not in REPLICATED]
    if len(factors) == len(table.varying):
        return table
    known = {row["cell"]: row["metrics"] for row in repeated}
    alike: dict[tuple[str | None, ...], list[Cell]] = {}
    for cell in table.cells:
        key = tuple(value for name, value in cell.factors.items() if name not in REPLICATED)
        alike.setdefault(key, []).append(cell)
    cells = tuple(_together(cells, factors, known.get(cells[0].id, {})) for cells in alike.values())
    return replace(table, cells=cells, varying=tuple(factors))


def _together(cells: Sequence[Cell], factors: Sequence[str], known: Mapping[str, Any]) -> Cell:
    first = cells[0]
    label = called(first.factors, factors) or first.factors.get("reasoning") or first.label
    if len(cells) == 1:
        return replace(first, label=label)
    shown = [cell.passages for cell in cells if cell.passages is not None]
    prices = [cell.price for cell in cells if cell.price is not None]
    return replace(
        first, ids=tuple(cell.id for cell in cells), label=f"{label} ({plural(len(cells), 'repeat')})",
        n=sum(cell.n for cell in cells),
        figures={name: _mean([cell.figures[name] for cell in cells if name in cell.figures]) for name in first.figures}
        | {column(name, first.judge): Figure.of(value) for name, value in known.items()},
        outcomes=tuple((name, sum(dict(cell.outcomes).get(name, 0) for cell in cells))
                       for name in dict.fromkeys(name for cell in cells for name, _ in cell.outcomes)),
        prompt_tokens=sum(cell.prompt_tokens for cell in cells), calls=sum(cell.calls for cell in cells),
        completion_tokens=sum(cell.completion_tokens for cell in cells),
        passages=fmean(shown) if shown else None, price=sum(prices) if len(prices) == len(cells) else None)


def _mean(figures: Sequence[Figure]) -> Figure:
    known = [figure.mean for figure in figures if figure.mean is not None]
    return Figure(fmean(known) if known else None, None, None, max(figure.n for figure in figures))
