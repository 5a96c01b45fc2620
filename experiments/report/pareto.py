"""Cost against quality: the Pareto front of the cells, its chart, and the ranking of a cell by tests."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragbed.experiments.analysis.view import Chart, Mark, Point
from ragbed.experiments.formatting import column_title, format_dollars, format_interval, metric_title, plural, truncate
from ragbed.experiments.report.cells import Figure, ReportCell, Table
from ragbed.experiments.report.comparable_cells import comparable_cells
from ragbed.experiments.statistics import Comparison


@dataclass(frozen=True, slots=True)
class CellCosts:
    """Cost per question by cell id: in dollars if every cell has a price above 0, otherwise in tokens."""

    priced: bool
    of: Mapping[str, float]  # a cell without a known cost is missing

    @property
    def unit(self) -> str:
        return "dollars per question" if self.priced else "tokens per question"

    def share(self, cell: ReportCell, of: ReportCell) -> float:
        """Return the first cell's cost as a share of the second's; 1 if either is unknown."""
        return self.of[cell.id] / self.of[of.id] if cell.id in self.of and of.id in self.of else 1.0

    def words(self, value: float) -> str:
        """Return `$0.0012 per question`, or `1,205 tokens per question`."""
        return f"{format_dollars(value)} per question" if self.priced else f"{value:,.0f} {self.unit}"


def cost_of(cells: Sequence[ReportCell]) -> CellCosts:
    """Return the cost of each cell per question."""
    if cells and all(cell.price and cell.n for cell in cells):
        return CellCosts(True, {cell.id: (cell.price or 0.0) / cell.n for cell in cells})
    return CellCosts(False, {cell.id: cell.tokens_each for cell in cells if cell.tokens_each})


def pareto_front(table: Table, cost: CellCosts) -> tuple[ReportCell, ...]:
    """Return the cells on the Pareto front, cheapest first; none if the cells were graded by different judges.

    No other cell has a higher mean at the same or a lower cost, or the same mean at a lower cost.
    """
    if len(table.judges) > 1:
        return ()
    known = headline_figures(table)
    placed = [(cost.of[cell.id], known[cell.id].mean or 0.0, cell) for cell in table.cells
              if cell.id in cost.of and cell.id in known]
    best = [(price, mean, cell) for price, mean, cell in placed
            if not any(other <= price and higher >= mean and (other < price or higher > mean)
                       for other, higher, _ in placed)]
    return tuple(cell for _, _, cell in sorted(best, key=lambda one: (one[0], one[2].number)))


def headline_figures(table: Table) -> dict[str, Figure]:
    """Return the figure of the headline metric by cell id. Cells without it are missing."""
    return {cell.id: found[1] for cell in table.cells
            if (found := cell.of(table.quality)) is not None and found[1].mean is not None}


@dataclass(frozen=True, slots=True)
class CellPair:
    """Two cells that differ in one factor, compared over the same questions. `tested.difference` is second - first."""

    first: ReportCell
    second: ReportCell
    tested: Comparison

    def seen_from(self, cell: ReportCell) -> CellPair:
        """Return the pair ordered so that this cell is second. Then a positive difference means that it scores higher.
        """
        if self.second.id == cell.id:
            return self
        difference, high, low = (None if one is None else 0.0 - one for one in (
            self.tested.difference, self.tested.low, self.tested.high))
        return CellPair(self.second, self.first, replace(
            self.tested, difference=difference, low=low, high=high, before=self.tested.after,
            after=self.tested.before))


def tested_pairs(stored: Mapping[str, Any] | None, table: Table) -> list[CellPair]:
    """Return the summary's comparisons of cells in the table, if a difference could be computed."""
    cells = {cell.id: cell for cell in table.cells}
    found = [CellPair(cells[one["first"]], cells[one["second"]], Comparison.of(str(stored["metric"]), one))
             for one in stored["pairs"] if one["first"] in cells and one["second"] in cells] if stored else []
    return [pair for pair in found if pair.tested.difference is not None]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranking of one cell by its tests against others. In each pair the other cell is first.

    Attributes:
        beaten: the cell scores significantly higher.
        tied: there is no significant difference; the closest cell comes first.
        ahead: the other cell scores significantly higher, over the questions that both have.
    """

    cell: ReportCell
    beaten: tuple[CellPair, ...]
    tied: tuple[CellPair, ...]
    ahead: tuple[CellPair, ...]

    @classmethod
    def of(cls, cell: ReportCell, pairs: Sequence[CellPair]) -> Ranking:
        own = sorted((pair.seen_from(cell) for pair in pairs if cell.id in (pair.first.id, pair.second.id)),
                     key=lambda pair: pair.tested.difference or 0.0)
        real = [pair for pair in own if pair.tested.real]
        return cls(cell, tuple(pair for pair in real if (pair.tested.difference or 0.0) > 0),
                   tuple(pair for pair in own if not pair.tested.real),
                   tuple(pair for pair in real if (pair.tested.difference or 0.0) <= 0))

    def cheapest_tie(self, cost: CellCosts) -> CellPair | None:
        """Return the pair with the cheapest tied cell, if that cell costs at most 90 % of this one."""
        pair = min(self.tied, key=lambda pair: cost.share(pair.first, self.cell), default=None)
        return pair if pair and cost.share(pair.first, self.cell) <= 0.9 else None


def best_cells(table: Table) -> list[ReportCell]:
    """Return the cells that tie for the highest mean; none if they were graded by different judges."""
    known = headline_figures(table)
    if len(table.judges) > 1 or not known:
        return []
    highest = max(figure.mean or 0.0 for figure in known.values())
    return [cell for cell in table.cells if cell.id in known and known[cell.id].mean == highest]


_LOWEST = {"unified": -0.5}  # lowest value of the axis, for metrics that go below 0


def cost_chart(table: Table, cost: CellCosts) -> Chart | None:
    """Return the chart of mean quality against cost; None if no cell has both."""
    comparable = comparable_cells(table)
    front, compared = ({cell.id for cell in cells} for cells in (pareto_front(comparable, cost), comparable.cells))
    points = []
    for cell in table.cells:
        found = cell.of(table.quality)
        if cell.id not in cost.of or found is None or found[1].mean is None:
            continue
        column, figure = found
        mean = f"{figure.mean:z.2f} {format_interval(figure.low, figure.high)}"
        words = (truncate(cell.label), f"{column_title(column)} {mean}, {plural(figure.n, 'question')}",
                 cost.words(cost.of[cell.id]))
        mark: Mark = "front" if cell.id in front else "" if cell.id in compared else "faded"
        points.append(Point(cell.label, cost.of[cell.id], found[1].mean, figure.low, figure.high, cell=cell.id,
                            words=words, mark=mark))
    if not points:
        return None
    quality = column_title(table.judges[0]) if len(table.judges) == 1 else metric_title(table.quality)
    judges = "" if len(table.judges) == 1 else " (graded by different judges)"
    return Chart("scatter", f"Mean {quality} with its 95 % interval against {cost.unit}, one point per cell.",
                 cost.unit, f"mean {quality}{judges}", tuple(points), _LOWEST.get(table.quality, 0.0),
                 costs="dollars" if cost.priced else "tokens",
                 caption=_caption(bool(front), len(compared) < len(table.cells)))


def _caption(front: bool, faded: bool) -> str:
    said = ["Bars show 95 % confidence intervals. Points of nearly equal cost are spread slightly."]
    if front:
        said.append("The stepped line is the Pareto front of the means; its cells are ringed.")
    if faded:
        said.append("Faded cells were asked under other conditions, such as gold or closed-book.")
    return " ".join(said)
