"""Cost against quality, one point a way of answering, with the Pareto front of those that compete.

What a question costs in each cell, and the cells that nothing beats at both cost and quality.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from experiments.report.axes import Axis, cost_axis, quality_axis
from experiments.report.cells import Cell, Figure, Table
from experiments.report.entrants import contenders
from experiments.report.scatter import Scatter, Spot, beside, looks
from experiments.words import column_words, cut, interval, metric_words, money, plural


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


_LEAST = {"unified": -0.5}  # of metrics that go below 0


def plot(table: Table, cost: Cost) -> Scatter | None:
    """None where no cell has both the first column's figure and a cost.

    Args:
        table: of entrants, so that repeats of a cell do not compete with each other.
    """
    found = [(cell, *one) for cell in table.cells
             if cell.id in cost.of and (one := cell.of(table.quality)) and one[1].mean is not None]
    if not found:
        return None
    x = cost_axis([cost.of[cell.id] for cell, _, _ in found], cost.words)
    y = quality_axis([bound for _, _, one in found for bound in (one.mean, one.low, one.high)],
                     _LEAST.get(table.quality, 0.0))
    styles, keys = looks(table, [cell for cell, _, _ in found])
    rivals = contenders(table)
    best, competing = ({cell.id for cell in cells} for cells in (front(rivals, cost), rivals.cells))
    heights = [y.down(figure.mean or 0.0) for _, _, figure in found]
    places = beside([x.at(cost.of[cell.id]) for cell, _, _ in found], heights)
    spots = tuple(Spot(cell, styles[cell.id], place, height, None, _up(figure, y), _lines(cell, column, figure, cost),
                       cell.id in best, cell.id not in competing)
                  for (cell, column, figure), place, height in zip(found, places, heights, strict=True))
    title = column_words(table.judges[0]) if len(table.judges) == 1 else \
        f"{metric_words(table.quality)} (judges differ: see the table)"
    return Scatter(spots, x, y, cost.unit + (", logarithmic" if x.logarithmic else ""), f"mean {title}", keys,
                   _steps([spot for spot in spots if spot.front]))


def _up(figure: Figure, axis: Axis) -> tuple[float, float] | None:
    if figure.low is None or figure.high is None:
        return None
    return axis.down(figure.low), axis.down(figure.high)


def _lines(cell: Cell, column: str, figure: Figure, cost: Cost) -> tuple[str, ...]:
    return (cut(cell.label), f"{column_words(column)} {figure.mean or 0.0:z.2f} {interval(figure.low, figure.high)}, "
            f"{plural(figure.n, 'question')}", cost.full(cost.of[cell.id]))


def _steps(spots: Sequence[Spot]) -> tuple[tuple[float, float, float, float], ...]:
    """Up from the axis to the cheapest, then along and up from one to the next, and along from the best."""
    at = sorted((spot.x, spot.y) for spot in spots)
    if not at:
        return ()
    lines = [(at[0][0], 100.0, *at[0])]
    for (x, y), (further, higher) in pairwise(at):
        lines += [(x, y, further, y), (further, y, further, higher)]
    return (*lines, (*at[-1], 100.0, at[-1][1]))
