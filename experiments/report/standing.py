"""How cells stand against each other by the metric of the first column: of paired tests, corrected for their number."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.report.cells import Cell, Figure, Table
from experiments.report.comparisons import Comparisons, Pair
from experiments.report.cost import Cost

_CHEAPER = 0.9  # of the cell's cost, from which on less is worth a word


@dataclass(frozen=True, slots=True)
class Standing:
    """A cell against each that it was tested against, over the questions that both have.

    Attributes:
        below: those that it is really better than; `above`, those that are really better.
        alone: those that it differs from by a test on its own, not after the correction.
        level: those from which no difference is seen.
    """

    cell: Cell
    below: tuple[Pair, ...]
    alone: tuple[Pair, ...]
    level: tuple[Pair, ...]
    above: tuple[Pair, ...]

    @property
    def tested(self) -> int:
        return len(self.below) + len(self.alone) + len(self.level) + len(self.above)

    @property
    def unsettled(self) -> list[Pair]:
        """Those that are not really different, the least far below first."""
        return sorted((*self.alone, *self.level), key=lambda pair: pair.beyond(self.cell) or 0.0)

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
                    tuple(pair for pair in pairs if pair.alone),
                    tuple(pair for pair in pairs if not pair.tested.real and not pair.alone),
                    tuple(pair for pair in real if (pair.beyond(cell) or 0.0) <= 0))


def cheapest(found: Standing, cost: Cost) -> Pair | None:
    """With the cheapest cell that is not really different, where that costs clearly less."""
    pair = min(found.unsettled, key=lambda pair: cost.share(pair.other(found.cell), found.cell), default=None)
    return pair if pair and cost.share(pair.other(found.cell), found.cell) <= _CHEAPER else None
