"""How cells stand against each other by the metric of the first column: of paired tests, corrected for their number."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.report.cells import Cell, Figure, Table
from experiments.report.comparisons import Comparisons, Pair


@dataclass(frozen=True, slots=True)
class Standing:
    """A cell against each that it was tested against.

    Attributes:
        below: those that it is really better than; `level`, those that it cannot be told apart from; `above`, those
            that are really better, over the questions that both have.
    """

    cell: Cell
    below: tuple[Pair, ...]
    level: tuple[Pair, ...]
    above: tuple[Pair, ...]

    @property
    def tested(self) -> int:
        return len(self.below) + len(self.level) + len(self.above)

    def others(self, pairs: Sequence[Pair]) -> list[Cell]:
        return [pair.other(self.cell) for pair in pairs]


def figures(table: Table) -> dict[str, Figure]:
    """By the cell's id, its figure of the first column; what has none is not there."""
    return {cell.id: found[1] for cell in table.cells
            if (found := cell.of(table.quality)) is not None and found[1].mean is not None}


def leaders(table: Table, among: Sequence[Cell] | None = None) -> list[Cell]:
    """The cells with the highest mean, several where it is the same; none where judges differ."""
    known = figures(table)
    cells = [cell for cell in (table.cells if among is None else among) if cell.id in known]
    if len(table.judges) > 1:
        return []
    highest = max((known[cell.id].mean or 0.0 for cell in cells), default=0.0)
    return [cell for cell in cells if known[cell.id].mean == highest]


def standing(cell: Cell, tested: Comparisons | None, factor: str | None = None) -> Standing:
    """Of the pairs that have a figure, by one factor alone where it is named."""
    pairs = [pair for pair in (tested.of(cell) if tested else ())
             if pair.tested.difference is not None and factor in (None, pair.factor)]
    real = [pair for pair in pairs if pair.tested.real]
    return Standing(cell, tuple(pair for pair in real if (pair.beyond(cell) or 0.0) > 0),
                    tuple(pair for pair in pairs if not pair.tested.real),
                    tuple(pair for pair in real if (pair.beyond(cell) or 0.0) <= 0))
