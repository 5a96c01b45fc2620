"""A chart of points with intervals, one a cell, as numbers that a template draws."""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from experiments.report.axes import Axis
from experiments.report.cells import Cell, Table
from experiments.report.grid import crossed, level_of

COLOURS, SHAPES = 6, 5
HEIGHT = 7.0  # of a point, in percent of the chart's
GAP, WIDEST = 0.02, 0.08  # shares of the width: between neighbours, and over all that are moved


@dataclass(frozen=True, slots=True)
class Look:
    """Colour and shape, from 1. Neither is alone: a point carries its cell's number."""

    colour: int
    shape: int


@dataclass(frozen=True, slots=True)
class Spot:
    """A point; places are percentages from the left and from the top.

    Attributes:
        across, up: ends of the intervals along each axis; None where there is none.
        lines: what the point says when it is pointed at.
        faded: whether it is drawn behind those that compete.
    """

    cell: Cell
    look: Look
    x: float
    y: float
    across: tuple[float, float] | None
    up: tuple[float, float] | None
    lines: tuple[str, ...]
    front: bool = False
    faded: bool = False

    @property
    def flip(self) -> bool:
        """Whether its words stand to its left."""
        return self.x > 50


@dataclass(frozen=True, slots=True)
class Keys:
    """What colours and shapes stand for: `shown` by a swatch, None where each cell has its own."""

    colours: tuple[str, tuple[tuple[str, int], ...]] | None
    shapes: tuple[str, tuple[tuple[str, int], ...]] | None


@dataclass(frozen=True, slots=True)
class Goal:
    """The best place there is, on an upright line, and what the line and the place are called."""

    x: float
    y: float
    line: str
    title: str


@dataclass(frozen=True, slots=True)
class Scatter:
    """The whole chart.

    Attributes:
        steps: lines of the front, each from (x, y) to (x, y).
    """

    spots: tuple[Spot, ...]
    x: Axis
    y: Axis
    x_title: str
    y_title: str
    keys: Keys
    steps: tuple[tuple[float, float, float, float], ...] = ()
    goal: Goal | None = None


def looks(table: Table, shown: Sequence[Cell]) -> tuple[Mapping[str, Look], Keys]:
    """A colour for each level of one factor and a shape for each of another, where two suffice to tell cells apart.

    Else every cell has a pair of its own, as far as they go. A cell looks the same in every chart of one table.

    Args:
        shown: the cells of the chart, whose looks alone are explained.
    """
    factors = crossed(table)
    if factors is not None:
        first, second = ([*dict.fromkeys(level_of(cell, name) for cell in table.cells)] for name in factors)
        if len(first) <= COLOURS and len(second) <= SHAPES:
            places = {cell.id: [level_of(cell, name) for name in factors] for cell in table.cells}
            of = {name: Look(first.index(one) + 1, second.index(other) + 1) for name, (one, other) in places.items()}
            seen = [{level_of(cell, name) for cell in shown} for name in factors]
            return of, Keys((factors[0], _numbered(first, seen[0])), (factors[1], _numbered(second, seen[1])))
    return {cell.id: Look((cell.number - 1) % COLOURS + 1, (cell.number - 1) % SHAPES + 1) for cell in table.cells}, \
        Keys(None, None)


def _numbered(levels: Sequence[str], seen: Collection[str]) -> tuple[tuple[str, int], ...]:
    return tuple((level, number) for number, level in enumerate(levels, 1) if level in seen)


def beside(places: Sequence[float], heights: Sequence[float], gap: float = GAP) -> list[float]:
    """The places from the left, moved `apart` where points would hide each other.

    Args:
        heights: where they stand from the top.
    """
    groups: list[list[int]] = []
    for at in sorted(range(len(places)), key=lambda at: places[at]):
        near = [group for group in groups if any(_hides(places, heights, at, other, gap) for other in group)]
        groups = [group for group in groups if group not in near] + [[*(one for group in near for one in group), at]]
    moved = {at: place for group in groups
             for at, place in zip(group, apart([places[at] for at in group], gap), strict=True)}
    return [moved[at] for at in range(len(places))]


def _hides(places: Sequence[float], heights: Sequence[float], one: int, other: int, gap: float) -> bool:
    return abs(places[one] - places[other]) < 100 * gap and abs(heights[one] - heights[other]) < HEIGHT


def apart(places: Sequence[float], gap: float = GAP, whole: float = 100.0) -> list[float]:
    """The places, moved as little as keeps neighbours `gap` of the whole apart, and many by less.

    Strategies over the same evidence cost nearly the same, and their intervals would hide each other; but what is
    moved far looks cheaper or dearer than it is.
    """
    least = min(gap, WIDEST / max(len(places) - 1, 1)) * whole
    clusters: list[list[tuple[float, int]]] = []
    for value, index in sorted((value, index) for index, value in enumerate(places)):
        clusters.append([(value, index)])
        while len(clusters) > 1 and _start(clusters[-1], least) - _end(clusters[-2], least) < least:
            last = clusters.pop()
            clusters[-1] += last
    placed = {index: round(_start(cluster, least) + step * least, 2)
              for cluster in clusters for step, (_, index) in enumerate(cluster)}
    return [placed[index] for index in range(len(places))]


def _start(cluster: Sequence[tuple[float, int]], least: float) -> float:
    middle = sum(value for value, _ in cluster) / len(cluster)
    return middle - least * (len(cluster) - 1) / 2


def _end(cluster: Sequence[tuple[float, int]], least: float) -> float:
    return _start(cluster, least) + least * (len(cluster) - 1)
