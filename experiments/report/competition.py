"""What cells cost, drawn against quality, which of them nothing beats, and how they stand by the tests."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragbed.experiments.analysis.view import Chart, Mark, Point
from ragbed.experiments.report.cells import Figure, ReportCell, Table
from ragbed.experiments.report.entrants import contenders
from ragbed.experiments.statistics import Comparison
from ragbed.experiments.words import column_words, cut, interval, is_alone, metric_words, money, plural, probability


@dataclass(frozen=True, slots=True)
class CellCosts:
    """Cost per question."""

    priced: bool  # in dollars, which takes a price of every cell that is not 0; else in tokens
    of: Mapping[str, float]  # by the cell's id; what has none is not there

    @property
    def unit(self) -> str:
        return "dollars per question" if self.priced else "tokens per question"

    @property
    def what(self) -> str:
        return "price" if self.priced else "tokens"

    def share(self, cell: ReportCell, of: ReportCell) -> float:
        """Return what one cell costs of another's cost; 1 where either's is not known."""
        return self.of[cell.id] / self.of[of.id] if cell.id in self.of and of.id in self.of else 1.0

    def words(self, value: float) -> str:
        """`$0.0012`, or `1,205`."""
        return money(value) if self.priced else f"{value:,.0f}"

    def full(self, value: float) -> str:
        """`$0.0012`, or `1,205 tokens`, per question."""
        return f"{self.words(value)} per question" if self.priced else f"{value:,.0f} {self.unit}"


def cost_of(cells: Sequence[ReportCell]) -> CellCosts:
    """Price where all cells have one, none of them 0; else prompt and completion tokens."""
    if cells and all(cell.price and cell.n for cell in cells):
        return CellCosts(True, {cell.id: (cell.price or 0.0) / cell.n for cell in cells})
    return CellCosts(False, {cell.id: cell.tokens_each for cell in cells if cell.tokens_each})


def front(table: Table, cost: CellCosts) -> tuple[ReportCell, ...]:
    """Return the Pareto front by means, cheapest first: the cells than which none is as good for less, nor better for
    as much. Cells of different judges do not compare, so there is none."""
    placed = [(cost.of[cell.id], found[1].mean, cell) for cell in table.cells
              if cell.id in cost.of and (found := cell.of(table.quality)) and found[1].mean is not None]
    if len(table.judges) > 1:
        return ()
    best = [(price, mean, cell) for price, mean, cell in placed
            if not any(other <= price and higher >= mean and (other < price or higher > mean)
                       for other, higher, _ in placed)]
    return tuple(cell for _, _, cell in sorted(best, key=lambda one: (one[0], one[2].number)))


@dataclass(frozen=True, slots=True)
class CellPair:
    """Two cells that differ in one factor over the same questions: `before` is of the first, `after` of the second."""

    factor: str
    first: ReportCell
    second: ReportCell
    tested: Comparison

    @property
    def alone(self) -> bool:
        """Whether they differ by their own test, though not after the correction for all."""
        return is_alone(self.tested)

    def place(self) -> tuple[bool, float, float]:
        """Return what the pair is ordered by: real ones first, then by p, then by size."""
        return (not self.tested.real, 2.0 if self.tested.p is None else self.tested.p,
                -abs(self.tested.difference or 0.0))

    @property
    def both_p(self) -> str:
        """The test's p, and after the correction."""
        p, p_holm = probability(self.tested.p), probability(self.tested.p_holm)
        return f"p {p}" if self.tested.p == self.tested.p_holm else f"p {p}, corrected {p_holm}"

    def seen_from(self, cell: ReportCell) -> CellPair:
        """Return the pair with this cell as the second, so that the difference is by how much it is above the other."""
        if self.second.id == cell.id:
            return self
        difference, high, low = (None if one is None else 0.0 - one for one in (
            self.tested.difference, self.tested.low, self.tested.high))
        return replace(self, first=self.second, second=self.first,
                       tested=replace(self.tested, difference=difference, low=low, high=high))


@dataclass(frozen=True, slots=True)
class CellPairs:
    """Pairs that were tested together; p is corrected for `many`: those that are not here too."""

    pairs: tuple[CellPair, ...]
    many: int

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None, table: Table) -> CellPairs | None:
        """Return the summary's comparisons of the table's cells, real ones first and then by p; None without any."""
        cells = {cell.id: cell for cell in table.cells}
        found = [CellPair(one["factor"], cells[one["first"]], cells[one["second"]],
                          Comparison.of(str(stored["metric"]), one)) for one in stored["pairs"]
                 if one["first"] in cells and one["second"] in cells] if stored else []
        return cls(tuple(sorted(found, key=CellPair.place)), len(found)) if found else None

    @property
    def real(self) -> int:
        return sum(pair.tested.real for pair in self.pairs)

    @property
    def alone(self) -> int:
        return sum(pair.alone for pair in self.pairs)

    def among(self, table: Table) -> CellPairs:
        """Return those of the table's cells alone, called as they are there."""
        cells = {cell.id: cell for cell in table.cells}
        return replace(self, pairs=tuple(replace(one, first=cells[one.first.id], second=cells[one.second.id])
                                         for one in self.pairs if one.first.id in cells and one.second.id in cells))


_CHEAPER = 0.9  # of the cell's cost, from which on less is worth a word


@dataclass(frozen=True, slots=True)
class Standing:
    """A cell against each that it was tested against, which is the first of its pairs, over the questions of both."""

    cell: ReportCell
    below: tuple[CellPair, ...]  # those that it is really better than; `above`, those that are really better
    alone: tuple[CellPair, ...]  # those that it differs from by a test on its own, not after the correction
    level: tuple[CellPair, ...]  # those from which no difference is seen
    above: tuple[CellPair, ...]

    @property
    def tested(self) -> int:
        return len(self.below) + len(self.alone) + len(self.level) + len(self.above)

    @property
    def unsettled(self) -> list[CellPair]:
        """Those that are not really different, the least far below first."""
        return sorted((*self.alone, *self.level), key=lambda pair: pair.tested.difference or 0.0)


def figures(table: Table) -> dict[str, Figure]:
    """By the cell's id, its figure of the first column; what has none is not there."""
    return {cell.id: found[1] for cell in table.cells
            if (found := cell.of(table.quality)) is not None and found[1].mean is not None}


def leaders(table: Table, among: Sequence[ReportCell] | None = None) -> list[ReportCell]:
    """Return the cells with the highest mean, several where it is the same; none where judges differ."""
    known = figures(table)
    cells = [cell for cell in (table.cells if among is None else among) if cell.id in known]
    if len(table.judges) > 1:
        return []
    highest = max((known[cell.id].mean or 0.0 for cell in cells), default=0.0)
    return [cell for cell in cells if known[cell.id].mean == highest]


def standing(cell: ReportCell, tested: CellPairs | None, factor: str | None = None) -> Standing:
    """Of the pairs that have a figure, by one factor alone where it is named."""
    pairs = [pair.seen_from(cell) for pair in (tested.pairs if tested else ())
             if cell.id in (pair.first.id, pair.second.id) and pair.tested.difference is not None
             and factor in (None, pair.factor)]
    real = [pair for pair in pairs if pair.tested.real]
    return Standing(cell, tuple(pair for pair in real if (pair.tested.difference or 0.0) > 0),
                    tuple(pair for pair in pairs if pair.alone),
                    tuple(pair for pair in pairs if not pair.tested.real and not pair.alone),
                    tuple(pair for pair in real if (pair.tested.difference or 0.0) <= 0))


def cheapest(found: Standing, cost: CellCosts) -> CellPair | None:
    """With the cheapest cell that is not really different, where that costs clearly less."""
    pair = min(found.unsettled, key=lambda pair: cost.share(pair.first, found.cell), default=None)
    return pair if pair and cost.share(pair.first, found.cell) <= _CHEAPER else None


_LEAST = {"unified": -0.5}  # of metrics that go below 0


def plot(table: Table, cost: CellCosts) -> Chart | None:
    """Return the chart of entrants, so that repeats of a cell do not compete with each other; None where no cell has
    both the first column's figure and a cost."""
    rivals = contenders(table)
    best, competing = ({cell.id for cell in cells} for cells in (front(rivals, cost), rivals.cells))
    points = []
    for cell in table.cells:
        found = cell.of(table.quality)
        if cell.id not in cost.of or found is None or found[1].mean is None:
            continue
        column, figure = found
        said = f"{column_words(column)} {found[1].mean:z.2f} {interval(figure.low, figure.high)}"
        words = cut(cell.label), f"{said}, {plural(figure.n, 'question')}", cost.full(cost.of[cell.id])
        mark: Mark = "front" if cell.id in best else "" if cell.id in competing else "faded"
        points.append(Point(cell.label, cost.of[cell.id], found[1].mean, figure.low, figure.high, cell=cell.id,
                            words=words, mark=mark))
    if not points:
        return None
    one = len(table.judges) == 1
    quality = column_words(table.judges[0]) if one else metric_words(table.quality)
    y = f"mean {quality}" if one else f"mean {quality} (judges differ: see the table)"
    merged = any(len(cell.ids) > 1 for cell in table.cells)
    title = f"Mean {quality} with its interval against {cost.unit}, " + (
        "one point for all repeats of a cell." if merged else
        "one point a cell. The table of all figures has the same.")
    return Chart("scatter", title, cost.unit, y, tuple(points), _LEAST.get(table.quality, 0.0),
                 costs="dollars" if cost.priced else "tokens",
                 caption=_caption(merged, bool(best), len(competing) < len(table.cells), cost))


def _caption(merged: bool, drawn: bool, rivals: bool, cost: CellCosts) -> str:
    said = ["Upright bars are 95 % intervals of the mean; higher is better, further left is cheaper."]
    if merged:
        said.append("Repeats of a cell are one point, with their mean, under the number of the first.")
    if drawn:
        of = " of the cells that could be put to use" if rivals else ""
        said.append(f"The stepped line is the Pareto front{of}: of those on it, which are ringed, none has another "
                    "with a higher mean for as little. It goes by means; which differences are real, the tests say.")
    if rivals:
        said.append("Faded cells do not compete: they are asked under other conditions, such as over the gold alone "
                    "(gold) or without any document (closed-book), or their evidence is changed.")
    what = "the price" if cost.priced else "prompt and completion tokens"
    why = "" if cost.priced else ", as not every cell has a price above 0"
    said.append(f"Cost is {what} per question{why}. Points of nearly the same cost are moved sideways a little so that "
                "they do not hide each other.")
    return " ".join(said)
