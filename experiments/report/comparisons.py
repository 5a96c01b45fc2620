"""The paired tests of a run's cells: as tables, one for each factor, the real differences first."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from experiments.report.axes import Axis, around_zero
from experiments.report.cells import Cell, Table
from experiments.report.text import visible
from experiments.settings.cells import REPLICATED
from experiments.statistics import ALPHA, Comparison
from experiments.words import difference, effect, figure, probability, verdict

_FEW, _LEAST = 12, 3  # rows of a factor: so many are not folded, and so many are shown however little they show
_FIRST = ("reasoning", "condition")


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
    def alone(self) -> bool:
        """Whether they differ by their own test, though not after the correction for all."""
        return not self.tested.real and self.tested.p is not None and self.tested.p < ALPHA

    @property
    def p(self) -> str:
        return probability(self.tested.p)

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
    said: str
    could: str


@dataclass(frozen=True, slots=True)
class Group:
    """The pairs that differ in one factor."""

    factor: str
    rows: tuple[Row, ...]

    @property
    def real(self) -> int:
        return sum(row.pair.tested.real for row in self.rows)

    @property
    def alone(self) -> int:
        return sum(row.pair.alone for row in self.rows)

    @property
    def shown(self) -> int:
        """Rows that are not folded away: all real ones at least."""
        return len(self.rows) if len(self.rows) <= _FEW else max(self.real, _LEAST)


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Pairs that were tested together.

    Attributes:
        many: how many p is corrected for: those that are not here too.
    """

    metric: str
    rows: tuple[Row, ...]
    axis: Axis
    notes: tuple[str, ...]
    many: int

    @property
    def pairs(self) -> list[Pair]:
        return [row.pair for row in self.rows]

    @property
    def groups(self) -> list[Group]:
        """Reasoning first, then the condition; of each the real ones first and then by p."""
        return [Group(factor, tuple(rows)) for factor, rows in groupby(self.rows, key=lambda row: row.pair.factor)]

    @property
    def real(self) -> int:
        return sum(pair.tested.real for pair in self.pairs)

    @property
    def alone(self) -> int:
        return sum(pair.alone for pair in self.pairs)

    @property
    def n(self) -> int | None:
        """The number of questions that every pair has, and none of them more; None where they differ."""
        found = {(pair.tested.n, pair.tested.unpaired) for pair in self.pairs}
        n, unpaired = found.pop()
        return None if found or unpaired else n

    @property
    def test(self) -> str | None:
        """The test of every pair; None where they differ."""
        found = {pair.tested.test for pair in self.pairs}
        return found.pop() if len(found) == 1 else None

    @property
    def zero(self) -> float:
        """Where no difference stands on the axis."""
        return self.axis.at(0.0)

    def of(self, cell: Cell) -> list[Pair]:
        """The pairs that the cell is one of."""
        return [pair for pair in self.pairs if cell.id in (pair.first.id, pair.second.id)]

    def among(self, table: Table) -> Comparisons:
        """Those of the table's cells alone, called as they are there."""
        cells = {cell.id: cell for cell in table.cells}
        rows = [replace(row, pair=replace(row.pair, first=cells[row.pair.first.id], second=cells[row.pair.second.id]))
                for row in self.rows if row.pair.first.id in cells and row.pair.second.id in cells]
        return replace(self, rows=tuple(rows))


def comparisons(stored: Mapping[str, Any] | None, table: Table) -> Comparisons | None:
    """The summary's comparisons, by factor, real ones first and then by p; None where it has none."""
    cells = {cell.id: cell for cell in table.cells}
    pairs = [_pair(one, str(stored["metric"]), cells) for one in stored.get("pairs") or ()
             if one["first"] in cells and one["second"] in cells] if stored else []
    if not stored or not pairs:
        return None
    order = list(dict.fromkeys((*_FIRST, *(pair.factor for pair in pairs))))
    pairs.sort(key=lambda pair: (order.index(pair.factor), *_place(pair)))
    axis = around_zero([bound for pair in pairs
                        for bound in (pair.tested.low, pair.tested.high, pair.tested.difference)])
    return Comparisons(visible(stored["metric"]), tuple(_row(pair, table.varying, axis) for pair in pairs), axis,
                       tuple(visible(note) for note in stored.get("notes") or ()), len(pairs))


def _place(pair: Pair) -> tuple[bool, float, float]:
    tested = pair.tested
    return (not tested.real, 2.0 if tested.p is None else tested.p, -abs(tested.difference or 0.0))


def _pair(stored: Mapping[str, Any], metric: str, cells: Mapping[str, Cell]) -> Pair:
    return Pair(visible(stored["factor"]), cells[stored["first"]], cells[stored["second"]],
                Comparison.of(metric, stored))


def _row(pair: Pair, varying: Sequence[str], axis: Axis) -> Row:
    tested = pair.tested
    rest = [f"{name} {value}" if name in REPLICATED else value for name in varying if name != pair.factor
            and (value := pair.first.factors.get(name)) is not None and value == pair.second.factors.get(name)]
    marks = None
    if tested.difference is not None and tested.low is not None and tested.high is not None:
        marks = axis.at(tested.difference), axis.at(tested.low), axis.at(tested.high)
    said, could = _said(pair)
    before = figure(tested.before, tested.before_low, tested.before_high)
    after = figure(tested.after, tested.after_low, tested.after_high)
    return Row(pair, " · ".join(rest), difference(tested), marks, before, after, effect(tested), said, could)


def _said(pair: Pair) -> tuple[str, str]:
    tested = pair.tested
    way = "higher" if (tested.difference or 0.0) > 0 else "lower"
    if tested.real:
        return f"really {way}", ""
    if pair.alone:
        return f"{way} on its own", "not after the correction"
    if tested.difference is None or tested.gained == tested.lost == 0:
        return verdict(tested), ""
    if tested.smallest is None or tested.smallest > 1:
        return "no difference seen", "too few questions for any"
    return "no difference seen", f"it would take {tested.smallest:z.2f}"
