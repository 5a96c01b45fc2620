"""Two factors of a run crossed: the mean of each combination with its interval, shaded.

Means over fewer questions than were asked: how many are left out, and why.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mode

from experiments.metrics import METRICS, family_of
from experiments.report.axes import Axis, quality_axis
from experiments.report.cells import Cell, Figure, Table
from experiments.settings.cells import REPLICATED
from experiments.words import listed, metric_words


def on_fewer(table: Table) -> list[str]:
    """A sentence for all cells of which the same is left out by the first column's metric."""
    alike: dict[tuple[int, int, str], list[Cell]] = {}
    for cell in table.cells:
        found = cell.of(table.quality)
        if found and found[1].mean is not None and found[1].n < cell.n:
            alike.setdefault((found[1].n, cell.n, _why(cell, found[1], table)), []).append(cell)
    return [f"{_who(cells, table)} over {n:,} of {of:,} questions: {why}."
            for (n, of, why), cells in alike.items()]


def _who(cells: list[Cell], table: Table) -> str:
    """By their conditions where these are all of them that have these."""
    if len(cells) == len(table.cells):
        return "Every mean is"
    conditions = dict.fromkeys(cell.factors.get("condition") or "" for cell in cells)
    if len(cells) == sum(cell.factors.get("condition") in conditions for cell in table.cells):
        return f"Under {listed(list(conditions))} each mean is"
    return f"Of {listed([cell.label for cell in cells])} the mean is"


def _why(cell: Cell, figure: Figure, table: Table) -> str:
    known = METRICS.get(family_of(table.quality))
    if table.drops_empty:
        return "as published, answers without text count in no mean"
    if table.quality == "unified" and cell.factors.get("rules") == "closed-book":
        return f"closed-book offers no refusal, so that the {cell.n - figure.n:,} unanswerable ones have no score"
    return f"{metric_words(table.quality)} is of {known.over}" if known else "the others have no score"


SHADES = 10
_FIRST = ("reasoning", "condition")
_MOST = 8  # grids of one run


@dataclass(frozen=True, slots=True)
class Square:
    """A combination; `shade` is from 0 for the lowest mean of the run to 10 for its highest.

    Attributes:
        marks: where mean, low and high stand on the axis.
        n: the number of questions, where it is another than most have.
    """

    cell: Cell
    figure: Figure
    shade: int | None
    marks: tuple[float, float, float] | None
    best: bool
    n: int | None


@dataclass(frozen=True, slots=True)
class Grid:
    """One value of everything else, and for each level of the first factor the squares of the second's levels."""

    rest: str
    rows: tuple[tuple[str, tuple[Square | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class Grids:
    """Attributes:
        factors: rows and columns.
        low, high: the lowest and highest mean.
        n: how many questions most means are over.
        fewer: of which cells the mean is over fewer questions than were asked, and why, in sentences.
        left_out: grids beyond those that are shown.
    """

    factors: tuple[str, str]
    levels: tuple[str, ...]
    grids: tuple[Grid, ...]
    low: float
    high: float
    axis: Axis
    n: int
    fewer: tuple[str, ...]
    left_out: int


def crossed(table: Table) -> tuple[str, str] | None:
    """Reasoning by condition, or the two factors with the most levels; None where fewer than two vary."""
    varying = table.varying
    if set(_FIRST) <= set(varying):
        return _FIRST
    most = sorted(varying, key=lambda name: (-len(_levels(table.cells, name)), varying.index(name)))
    apart = [name for name in most[1:] if not _follows(table.cells, name, most[0])]
    return (most[0], apart[0]) if apart else None


def grids(table: Table) -> Grids | None:
    """None where fewer than two factors vary, no square has a figure, or its judges differ."""
    factors = crossed(table)
    figures = {cell.id: found[1] for cell in table.cells if (found := cell.of(table.quality))}
    means = [figure.mean for figure in figures.values() if figure.mean is not None]
    if factors is None or not means or len(table.judges) > 1:
        return None
    low, high = min(means), max(means)
    axis = quality_axis([bound for one in figures.values() for bound in (one.mean, one.low, one.high)])
    levels = _levels(table.cells, factors[1])
    usual = mode(sorted((one.n for one in figures.values()), reverse=True))
    others = [name for name in table.varying if name not in factors
              and not any(_follows(table.cells, name, factor) for factor in factors)]
    parts: dict[str, list[Cell]] = {}
    for cell in table.cells:
        parts.setdefault(_rest(cell, others), []).append(cell)
    made = [Grid(rest, tuple((level, tuple(_square(cells, factors, (level, other), figures, (low, high), axis, usual)
                                           for other in levels)) for level in _levels(cells, factors[0])))
            for rest, cells in parts.items()]
    return Grids(factors, levels, tuple(made[:_MOST]), low, high, axis, usual, tuple(on_fewer(table)),
                 max(len(made) - _MOST, 0))


def _levels(cells: Sequence[Cell], factor: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(level_of(cell, factor) for cell in cells))


def level_of(cell: Cell, factor: str) -> str:
    """The cell's value of the factor in words."""
    return cell.factors.get(factor) or "none"


def _follows(cells: Sequence[Cell], name: str, of: str) -> bool:
    """Whether the value of one factor settles that of the other, as closed-book settles the rules."""
    return len({(level_of(cell, of), level_of(cell, name)) for cell in cells}) == len(_levels(cells, of))


def _rest(cell: Cell, factors: Sequence[str]) -> str:
    return " · ".join(f"{name} {level_of(cell, name)}" if name in REPLICATED else level_of(cell, name)
                      for name in factors)


def _square(cells: Sequence[Cell], factors: Sequence[str], levels: Sequence[str], figures: dict[str, Figure],
            ends: tuple[float, float], axis: Axis, usual: int) -> Square | None:
    found = [cell for cell in cells
             if cell.id in figures and [level_of(cell, name) for name in factors] == list(levels)]
    if not found:
        return None
    cell, figure = found[0], figures[found[0].id]
    n = figure.n if figure.n != usual else None
    if figure.mean is None:
        return Square(cell, figure, None, None, False, n)
    low, high = ends
    shade = round((figure.mean - low) / (high - low) * SHADES) if high > low else 0
    marks = None if figure.low is None or figure.high is None else (
        axis.at(figure.mean), axis.at(figure.low), axis.at(figure.high))
    return Square(cell, figure, shade, marks, high > low and figure.mean == high, n)
