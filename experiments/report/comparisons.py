"""The paired tests of a run's cells: as a table, the real differences first."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.comparing.words import difference, effect, figure, probability, verdict
from experiments.report.axes import Axis, around_zero
from experiments.report.cells import Cell, Table
from experiments.report.text import visible
from experiments.statistics import Comparison

SHOWN = 12  # rows, beyond which those without a real difference are folded away


@dataclass(frozen=True, slots=True)
class Pair:
    """Two cells that differ in one factor, compared over the same questions.

    Attributes:
        tested: `before` is of the first cell, `after` of the second.
    """

    factor: str
    first: Cell
    second: Cell
    tested: Comparison

    @property
    def levels(self) -> tuple[str, str]:
        """The two values of the factor, a missing one `none`."""
        before, after = (cell.factors.get(self.factor) for cell in (self.first, self.second))
        return before or "none", after or "none"

    @property
    def p_holm(self) -> str:
        return probability(self.tested.p_holm)

    def other(self, cell: Cell) -> Cell:
        return self.second if self.first.id == cell.id else self.first

    def beyond(self, cell: Cell) -> float | None:
        """By how much the cell is above the other one; None where there is no figure."""
        found = self.tested.difference
        return found if found is None or self.second.id == cell.id else 0.0 - found

    def bounds(self, cell: Cell) -> tuple[float, float] | None:
        """The interval of `beyond`."""
        low, high = self.tested.low, self.tested.high
        if low is None or high is None:
            return None
        return (low, high) if self.second.id == cell.id else (0.0 - high, 0.0 - low)


@dataclass(frozen=True, slots=True)
class Row:
    """A pair as the table shows it.

    Attributes:
        rest: what the two cells share besides the factor.
        before, after: the metric of the two cells over the pairs, each with its interval.
        marks: where the difference and its interval stand on the table's axis; None without an interval.
        said: in words whether there is a difference; `could`: which one there would have had to be.
    """

    pair: Pair
    rest: str
    difference: str
    marks: tuple[float, float, float] | None
    before: str
    after: str
    effect: str
    p: str
    said: str
    could: str


@dataclass(frozen=True, slots=True)
class Comparisons:
    """All pairs that were tested together.

    Attributes:
        zero: where no difference stands on the axis.
        lonely: whether any pair leaves questions out that only one of its cells has a score of.
    """

    metric: str
    rows: tuple[Row, ...]
    axis: Axis
    notes: tuple[str, ...]

    @property
    def pairs(self) -> list[Pair]:
        return [row.pair for row in self.rows]

    @property
    def real(self) -> int:
        return sum(row.pair.tested.real for row in self.rows)

    @property
    def shown(self) -> int:
        """Rows that are not folded away."""
        return len(self.rows) if len(self.rows) <= SHOWN + 3 else max(SHOWN, min(self.real, 2 * SHOWN))

    @property
    def zero(self) -> float:
        return self.axis.at(0.0)

    @property
    def lonely(self) -> bool:
        return any(row.pair.tested.unpaired for row in self.rows)

    def of(self, cell: Cell) -> list[Pair]:
        """The pairs that the cell is one of."""
        return [pair for pair in self.pairs if cell.id in (pair.first.id, pair.second.id)]


def comparisons(stored: Mapping[str, Any] | None, table: Table) -> Comparisons | None:
    """The summary's comparisons, real ones first and then by p; None where it has none."""
    cells = {cell.id: cell for cell in table.cells}
    if not stored or not stored.get("pairs"):
        return None
    pairs = [_pair(one, stored["metric"], cells) for one in stored["pairs"]
             if one["first"] in cells and one["second"] in cells]
    pairs.sort(key=_place)
    bounds = [bound for pair in pairs for bound in (pair.tested.low, pair.tested.high, pair.tested.difference)]
    axis = around_zero(bounds)
    return Comparisons(visible(stored["metric"]), tuple(_row(pair, table.varying, axis) for pair in pairs), axis,
                       tuple(visible(note) for note in stored.get("notes") or ()))


def _place(pair: Pair) -> tuple[bool, float, float]:
    tested = pair.tested
    return (not tested.real, 2.0 if tested.p is None else tested.p, -abs(tested.difference or 0.0))


def _pair(stored: Mapping[str, Any], metric: str, cells: Mapping[str, Cell]) -> Pair:
    return Pair(visible(stored["factor"]), cells[stored["first"]], cells[stored["second"]],
                Comparison.of(metric, stored))


def _row(pair: Pair, varying: Sequence[str], axis: Axis) -> Row:
    tested = pair.tested
    rest = [f"{name} {value}" if name in ("repeat", "seed") else value for name in varying if name != pair.factor
            and (value := pair.first.factors.get(name)) is not None and value == pair.second.factors.get(name)]
    marks = None
    if tested.difference is not None and tested.low is not None and tested.high is not None:
        marks = axis.at(tested.difference), axis.at(tested.low), axis.at(tested.high)
    said, could = _said(tested)
    before = figure(tested.before, tested.before_low, tested.before_high)
    after = figure(tested.after, tested.after_low, tested.after_high)
    return Row(pair, " · ".join(rest), difference(tested), marks, before, after, effect(tested), probability(tested.p),
               said, could)


def _said(tested: Comparison) -> tuple[str, str]:
    if tested.real:
        return f"real: {'higher' if (tested.difference or 0.0) > 0 else 'lower'}", ""
    if tested.difference is None or tested.gained == tested.lost == 0:
        return verdict(tested), ""
    if tested.smallest is None or tested.smallest > 1:
        return "cannot be told apart", "too few questions for any difference"
    return "cannot be told apart", f"it would take {tested.smallest:.2f}"
