"""Cost against quality: the comparable cells of a run, their Pareto front, its chart, and the ranking of a cell."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from ragbed.experiments.analysis.view import Chart, Mark, Point
from ragbed.experiments.cells import OWN, REPLICATED, describe_factors
from ragbed.experiments.formatting import column_title, format_dollars, format_interval, metric_title, plural, truncate
from ragbed.experiments.metrics import better_sign
from ragbed.experiments.report.cell_table import Figure, ReportCell, Table, column
from ragbed.experiments.statistics import Comparison

# Users have no gold passages, so `gold` is only an upper bound, and `closed-book` a lower bound.
_TIERS = (("retrieved",), ("provided", "full"), ("gold",), ("closed-book",))
_UNCHANGED = {"perturbation": None, "show": "question"}  # other values change the evidence, or reveal the gold


def comparable_cells(table: Table) -> Table:
    """Return the cells from which a user would choose, labelled by the factors in which they differ.

    These are the cells of one condition, the first that the run has of `retrieved`, `provided` and `full`, `gold`,
    `closed-book`. If some of them have no perturbation, only those are kept. A pipeline that retrieves by itself is
    always kept.
    """
    tiers = {cell.id: None if cell.factors.get("retrieval") == OWN else _tier(cell.factors.get("condition") or "")
             for cell in table.cells}
    first = min((tier for tier in tiers.values() if tier is not None), default=None)
    cells = [cell for cell in table.cells if tiers[cell.id] in (first, None)] or list(table.cells)
    for name, unchanged in _UNCHANGED.items():
        cells = [cell for cell in cells if cell.factors.get(name) in (None, unchanged)] or cells
    if len(cells) == len(table.cells):
        return table
    factors = [name for name in table.varying if len({cell.factors.get(name) for cell in cells}) > 1]
    return replace(table, cells=tuple(replace(cell, label=_label(cell, table, factors)) for cell in cells),
                   varying=tuple(factors))


def _tier(condition: str) -> int | None:
    return next((place for place, tier in enumerate(_TIERS) if condition in tier), None)


def _label(cell: ReportCell, table: Table, factors: list[str]) -> str:
    """Return the label for these factors. Suffixes of the cell's name, such as the number of repeats, are kept."""
    whole = describe_factors(cell.factors, table.varying)
    rest = cell.label.removeprefix(whole) if cell.label.startswith(whole) else ""
    return (describe_factors(cell.factors, factors) or cell.factors.get("reasoning") or cell.label) + rest


def merge_replicates(table: Table, repeated: Sequence[Mapping[str, Any]] = ()) -> Table:
    """Return the table with all repeats and seeds of a configuration merged into one cell with the id of the first.

    `repeated` has the summary's pooled figures. Without them, it has the mean of its cells' figures and no interval.
    """
    factors = [name for name in table.varying if name not in REPLICATED]
    if len(factors) == len(table.varying):
        return table
    known = {row["cell"]: row["metrics"] for row in repeated}
    alike: dict[tuple[str | None, ...], list[ReportCell]] = {}
    for cell in table.cells:
        key = tuple(value for name, value in cell.factors.items() if name not in REPLICATED)
        alike.setdefault(key, []).append(cell)
    cells = tuple(_merged(cells, factors, known.get(cells[0].id, {})) for cells in alike.values())
    return replace(table, cells=cells, varying=tuple(factors))


def _merged(cells: Sequence[ReportCell], factors: Sequence[str], known: Mapping[str, Any]) -> ReportCell:
    first = cells[0]
    label = describe_factors(first.factors, factors) or first.factors.get("reasoning") or first.label
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

    No other cell has a better mean at the same or a lower cost, or the same mean at a lower cost.
    """
    if len(table.judges) > 1:
        return ()
    known, sign = headline_figures(table), better_sign(table.quality)
    placed = [(cost.of[cell.id], sign * (known[cell.id].mean or 0.0), cell) for cell in table.cells
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

    @property
    def gain(self) -> float:
        """By how much the second cell is better."""
        return better_sign(self.tested.metric) * (self.tested.difference or 0.0)

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
        beaten: the cell scores significantly better.
        tied: there is no significant difference; the closest cell comes first.
        ahead: the other cell scores significantly better, over the questions that both have.
    """

    cell: ReportCell
    beaten: tuple[CellPair, ...]
    tied: tuple[CellPair, ...]
    ahead: tuple[CellPair, ...]

    @classmethod
    def of(cls, cell: ReportCell, pairs: Sequence[CellPair]) -> Ranking:
        own = sorted((pair.seen_from(cell) for pair in pairs if cell.id in (pair.first.id, pair.second.id)),
                     key=lambda pair: pair.gain)
        real = [pair for pair in own if pair.tested.real]
        return cls(cell, tuple(pair for pair in real if pair.gain > 0),
                   tuple(pair for pair in own if not pair.tested.real),
                   tuple(pair for pair in real if pair.gain <= 0))

    def cheapest_tie(self, cost: CellCosts) -> CellPair | None:
        """Return the pair with the cheapest tied cell, if that cell costs at most 90 % of this one."""
        pair = min(self.tied, key=lambda pair: cost.share(pair.first, self.cell), default=None)
        return pair if pair and cost.share(pair.first, self.cell) <= 0.9 else None


def best_cells(table: Table) -> list[ReportCell]:
    """Return the cells that tie for the best mean; none if they were graded by different judges."""
    known = headline_figures(table)
    if len(table.judges) > 1 or not known:
        return []
    best = max((figure.mean or 0.0 for figure in known.values()), key=lambda mean: better_sign(table.quality) * mean)
    return [cell for cell in table.cells if cell.id in known and known[cell.id].mean == best]


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
