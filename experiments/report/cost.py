"""What a question costs in each cell, and the cells that nothing beats at both cost and quality."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.report.cells import Cell, Table
from experiments.report.words import money


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost per question.

    Attributes:
        priced: in dollars, which takes a price of every cell that is not 0; else in tokens.
        of: by the cell's id; what has none is not there.
    """

    priced: bool
    of: Mapping[str, float]

    @property
    def unit(self) -> str:
        return "dollars per question" if self.priced else "tokens per question"

    @property
    def what(self) -> str:
        return "price" if self.priced else "tokens"

    def share(self, cell: Cell, of: Cell) -> float:
        """What one cell costs of another's cost; 1 where either's is not known."""
        return self.of[cell.id] / self.of[of.id] if cell.id in self.of and of.id in self.of else 1.0

    def words(self, value: float) -> str:
        """`$0.0012`, or `1,205`."""
        return money(value) if self.priced else f"{value:,.0f}"

    def full(self, value: float) -> str:
        """`$0.0012`, or `1,205 tokens`, per question."""
        return f"{self.words(value)} per question" if self.priced else f"{value:,.0f} {self.unit}"


def cost_of(cells: Sequence[Cell]) -> Cost:
    """Price where all cells have one, none of them 0; else prompt and completion tokens."""
    if cells and all(cell.price and cell.n for cell in cells):
        return Cost(True, {cell.id: (cell.price or 0.0) / cell.n for cell in cells})
    return Cost(False, {cell.id: cell.tokens_each for cell in cells if cell.tokens_each})


def front(table: Table, cost: Cost) -> tuple[Cell, ...]:
    """The Pareto front, cheapest first: the cells than which none is as good for less, nor better for as much.

    By means alone. Cells of different judges do not compare, so there is none.
    """
    placed = [(cost.of[cell.id], found[1].mean, cell) for cell in table.cells
              if cell.id in cost.of and (found := cell.of(table.quality)) and found[1].mean is not None]
    if len(table.judges) > 1:
        return ()
    best = [(price, mean, cell) for price, mean, cell in placed
            if not any(other <= price and higher >= mean and (other < price or higher > mean)
                       for other, higher, _ in placed)]
    return tuple(cell for _, _, cell in sorted(best, key=lambda one: (one[0], one[2].number)))
