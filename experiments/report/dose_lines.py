"""The lines of dose and response, as numbers that a template draws: a few to a chart."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from experiments.analysis.dose_curves import Group, labels
from experiments.report.axes import Axis, Tick
from experiments.report.cells import Figure
from experiments.report.text import visible
from experiments.words import cut, interval, plural

COLOURS = 6  # lines of one chart
_ROOM, _NEAR, _APART = 0.07, 7.0, 1.6  # of the range; in percent of the width: between ticks, and between lines


@dataclass(frozen=True, slots=True)
class Point:
    """A dose of a curve; places are percentages from the left and from the top.

    Attributes:
        up: ends of its interval; None where there is none.
        number: of its cell; None where the table has it not.
        lines: what it says when it is pointed at.
    """

    x: float
    y: float
    up: tuple[float, float] | None
    number: int | None
    lines: tuple[str, ...]

    @property
    def flip(self) -> bool:
        """Whether its words stand to its left."""
        return self.x > 50


@dataclass(frozen=True, slots=True)
class Line:
    """A curve as it is drawn.

    Attributes:
        plain: what has no negatives, beside a curve over the hardness.
        steps: from (x, y) to (x, y).
    """

    look: int
    label: str
    points: tuple[Point, ...]
    plain: Point | None
    steps: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A curve of a chart."""

    look: int
    label: str
    curve: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Facet:
    """The curves of one chart, and what all of them share that others have not."""

    title: str
    lines: tuple[Drawn, ...]


def facets(curves: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Facet]:
    """All curves together where there are colours for them; else a chart for each combination of all factors but the
    one with the most levels that there are colours for; else so many to a chart, in order."""
    if len(curves) <= COLOURS:
        return [Facet("", tuple(Drawn(look, name, one) for look, (name, one) in enumerate(zip(
            names, curves, strict=True), 1)))]
    factors = [one["factors"] for one in curves]
    varying = {name: list(dict.fromkeys(row[name] for row in factors if row.get(name) is not None))
               for name in factors[0]}
    fitting = [name for name, levels in varying.items() if 1 < len(levels) <= COLOURS
               and all(row.get(name) is not None for row in factors)]
    if not fitting:
        return [Facet(f"{at + 1} to {min(at + COLOURS, len(curves))}", tuple(
            Drawn(look, names[at + look - 1], one) for look, one in enumerate(curves[at:at + COLOURS], 1)))
            for at in range(0, len(curves), COLOURS)]
    by = max(fitting, key=lambda name: len(varying[name]))
    rest = labels([{name: value for name, value in row.items() if name != by} for row in factors])
    level = labels([{by: row[by]} for row in factors])
    parts: dict[str, list[Drawn]] = {}
    for title, called, row, curve in zip(rest, level, factors, curves, strict=True):
        parts.setdefault(visible(title), []).append(Drawn(varying[by].index(row[by]) + 1, visible(called), curve))
    return [Facet(title, tuple(drawn)) for title, drawn in parts.items()]


def across(group: Group, plain: bool) -> Axis:
    """The doses where they are; hardnesses one step from each other, and what has no negatives one before them.

    Doses that stand too near to the one before them have no number.
    """
    places = [(-1, "without")] * plain + list(zip(group.doses, group.words, strict=True))
    low, high = places[0][0], places[-1][0]
    room = (high - low) * _ROOM
    axis = Axis(low - room, high + room, ())
    ticks: list[Tick] = []
    for dose, words in places:
        if not ticks or axis.at(dose) - ticks[-1].at >= _NEAR:
            ticks.append(Tick(axis.at(dose), words))
    return Axis(axis.low, axis.high, tuple(ticks))


@dataclass(frozen=True, slots=True)
class Frame:
    """What the points of a chart are placed by; `numbers` of the table's cells by id."""

    metric: str
    x: Axis
    y: Axis
    group: Group
    numbers: Mapping[str, int]

    def lines(self, part: Facet) -> tuple[Line, ...]:
        """Of the curves that have the metric; beside each other, so that no interval hides another."""
        made = [self._line(drawn, (place - (len(part.lines) - 1) / 2) * _APART)
                for place, drawn in enumerate(part.lines)]
        return tuple(line for line in made if line.points)

    def _line(self, drawn: Drawn, aside: float) -> Line:
        words = dict(zip(self.group.doses, self.group.words, strict=True))
        placed = [self._point(one, one["dose"], drawn.label, _dose(words[one["dose"]], self.group), aside)
                  for one in drawn.curve["points"]]
        points = [point for point in placed if point is not None]
        plain = drawn.curve["plain"]
        return Line(drawn.look, drawn.label, tuple(points),
                    None if plain is None else self._point(plain, -1, drawn.label, "no negatives", aside),
                    tuple((one.x, one.y, other.x, other.y) for one, other in pairwise(points)))

    def _point(self, stored: Mapping[str, Any], dose: int, label: str, called: str, aside: float) -> Point | None:
        value = Figure.of(stored["metrics"].get(self.metric))
        if value.mean is None:
            return None
        up = None if value.low is None or value.high is None else (self.y.down(value.low), self.y.down(value.high))
        few = f", {stored['fewer']} with fewer" if stored["fewer"] else ""
        near = () if stored.get("hardness") is None else (f"mean hardness {stored['hardness']:.2f}",)
        said = (cut(label), f"{called}: {value.mean:z.2f} {interval(value.low, value.high)}",
                plural(value.n, "question") + few, *near)
        return Point(round(self.x.at(dose) + aside, 2), self.y.down(value.mean), up,
                     self.numbers.get(stored["cell"]), said)


def _dose(words: str, group: Group) -> str:
    return f"{words} negative{'' if words == '1' else 's'}" if group.axis == "negatives" else words
