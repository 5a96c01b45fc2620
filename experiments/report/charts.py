"""Lay out the charts of views for the template: positions in percent of the drawing's width and height."""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragbed.experiments.analysis.view import Chart, Point
from ragbed.experiments.formatting import count_or_percent, format_dollars, truncate, visible
from ragbed.experiments.report.axes import Axis, cost_axis, percent_axis, quality_axis, word_axis
from ragbed.experiments.report.cells import ReportCell, Table, colour_and_shape, level_text
from ragbed.experiments.report.text import to_questions

COLOURS, SHAPES = 6, 5
HEIGHT = 7.0  # height of a point, in percent of the chart's height
GAP, WIDEST = 0.02, 0.08  # distance between spread points, and largest width of a group, as shares of the chart's width
_ASIDE = 1.6  # distance between the lines of a chart, in percent of the width
_ROOMY = 6.0  # smallest width, in percent, at which a part of a bar shows its number
Segment = tuple[float, float, float, float]
# The colour shows the responsible part, the hatching the cause within it.
_LOOKS = {
    "right": ("blue", "solid"), "right, gold not cited": ("blue", "rising"), "parametric knowledge": ("blue", "dots"),
    "unsupported": ("blue", "lines"), "retrieval miss": ("orange", "solid"), "distracted": ("red", "rising"),
    "reasoning error": ("red", "solid"), "wrong with gold in view": ("red", "dots"),
    "wrong refusal": ("purple", "solid"), "missing refusal": ("purple", "rising"),
    "wrong closed-book": ("brown", "solid"), "wrong, gold unknown": ("brown", "rising"), "failed": ("grey", "solid"),
    "format": ("grey", "rising"), "unjudged": ("grey", "dots"), "not scored": ("grey", "lines")}
_ANY = [(colour, hatch) for hatch in ("solid", "rising", "lines", "dots")
        for colour in ("blue", "orange", "red", "purple", "brown", "grey")]


@dataclass(frozen=True, slots=True)
class Spot:
    """A drawn point. `number` is the number of its cell, if it has one. `across` and `up` are its intervals."""

    point: Point
    number: int | None
    colour: int
    shape: int
    x: float
    y: float
    across: tuple[float, float] | None
    up: tuple[float, float] | None

    @property
    def words(self) -> list[str]:
        return [visible(one) for one in self.point.words]

    @property
    def flip(self) -> bool:
        """Whether the tooltip is left of the point."""
        return self.x > 50


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar, with its number of questions if there is room."""

    series: str
    look: int
    at: float
    width: float
    text: str
    words: str
    href: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawn chart."""

    chart: Chart
    x: Axis
    y: Axis
    spots: tuple[Spot, ...] = ()
    steps: tuple[Segment, ...] = ()  # lines of the front, each from (x, y) to (x, y)
    joined: tuple[tuple[Segment, int], ...] = ()  # lines between points, each with a colour
    keys: tuple[tuple[str, tuple[tuple[int, int, str], ...]], ...] = ()  # title; colour, shape, text of entries
    bars: tuple[tuple[int | None, str, tuple[BarPart, ...]], ...] = ()  # number and label of the cell, and its parts
    looks: tuple[tuple[str, str, str], ...] = ()  # name, colour and hatching of each series
    goal: tuple[float, float] | None = None  # position of the ideal point


_EMPTY = Axis(0.0, 1.0, ())


def draw(chart: Chart, table: Table, numbers: Mapping[str, int]) -> Drawing:
    """Lay out a chart. `numbers` has the number of each cell by its id and by its label."""
    return _bars(chart, numbers) if chart.kind == "bars" else _points(chart, table, numbers)


def _points(chart: Chart, table: Table, numbers: Mapping[str, int]) -> Drawing:
    xs = [float(one.x) for one in chart.points]
    bounds = [bound for one in chart.points for bound in (one.y, one.low, one.high)]
    ideal = [chart.goal.x] if chart.goal else []
    x = word_axis(chart.ticks) if chart.ticks else percent_axis(
        [*ideal, *xs, *(bound for one in chart.points for bound in (one.x_low, one.x_high))]) if chart.percent else \
        cost_axis(xs, format_dollars if chart.costs == "dollars" else "{:,.0f}".format) if chart.costs else \
        quality_axis(xs)
    y = percent_axis([0.0, *bounds]) if chart.percent else quality_axis(bounds, chart.least)
    series = list(chart.series or dict.fromkeys(one.series for one in chart.points))
    looks, keys = _lines_looks(series) if chart.kind == "lines" else _cell_looks(table, chart, numbers)
    heights = [y.down(one.y) for one in chart.points]
    places = [x.at(value) for value in xs]
    if chart.kind == "lines":
        places = [round(place + (series.index(one.series) - (len(series) - 1) / 2) * _ASIDE, 2)
                  for place, one in zip(places, chart.points, strict=True)]
    elif chart.costs:
        places = spread_points(places, heights)
    spots = tuple(Spot(one, numbers.get(one.cell), *looks(one), place, height,
                       _interval(one.x_low, one.x_high, x.at), _interval(one.low, one.high, y.down))
                  for one, place, height in zip(chart.points, places, heights, strict=True))
    return Drawing(chart, x, y, spots, _front([one for one in spots if one.point.mark == "front"]),
                   tuple(((one.x, one.y, other.x, other.y), one.colour) for one, other in pairwise(spots)
                         if one.point.line and one.point.line == other.point.line), keys,
                   goal=(x.at(chart.goal.x), y.down(chart.goal.y)) if chart.goal else None)


def _interval(low: float | None, high: float | None, at: Callable[[float], float]) -> tuple[float, float] | None:
    return None if low is None or high is None else (at(low), at(high))


Looks = tuple[Callable[[Point], tuple[int, int]], tuple[tuple[str, tuple[tuple[int, int, str], ...]], ...]]


def _lines_looks(series: Sequence[str]) -> Looks:
    places = {name: (at % COLOURS + 1, at % SHAPES + 1) for at, name in enumerate(series)}
    return lambda point: places[point.series], (("", tuple((*places[name], visible(name)) for name in series)),)


def _cell_looks(table: Table, chart: Chart, numbers: Mapping[str, int]) -> Looks:
    """Give cells a colour by one factor and a shape by another. If there are too few colours or shapes, cells are told
    apart by number.

    A cell looks the same in every chart of a table.
    """
    by_number = {cell.number: cell for cell in table.cells}
    shown = [by_number[number] for one in chart.points if (number := numbers.get(one.cell)) in by_number]
    factors = colour_and_shape(table)
    if factors is not None:
        first, second = ([*dict.fromkeys(level_text(cell, name) for cell in table.cells)] for name in factors)
        if len(first) <= COLOURS and len(second) <= SHAPES:
            of = {cell.number: (first.index(level_text(cell, factors[0])) + 1,
                                second.index(level_text(cell, factors[1])) + 1) for cell in table.cells}
            keys = ((factors[0], tuple((at, 1, one) for one, at in _numbered(first, shown, factors[0]))),
                    (factors[1], tuple((0, at, one) for one, at in _numbered(second, shown, factors[1]))))
            return lambda point: of.get(numbers.get(point.cell, 0), (1, 1)), keys
    return lambda point: ((numbers.get(point.cell, 1) - 1) % COLOURS + 1,
                          (numbers.get(point.cell, 1) - 1) % SHAPES + 1), ()


def _numbered(levels: Sequence[str], shown: Collection[ReportCell], factor: str) -> list[tuple[str, int]]:
    """Return the levels that the chart shows, each with the number of its colour or shape."""
    seen = {level_text(cell, factor) for cell in shown}
    return [(level, number) for number, level in enumerate(levels, 1) if level in seen]


def _front(spots: Sequence[Spot]) -> tuple[Segment, ...]:
    """Return the stepped line through the points, from the cheapest to the best."""
    at = sorted((spot.x, spot.y) for spot in spots)
    if not at:
        return ()
    lines = [(at[0][0], 100.0, *at[0])]
    for (x, y), (further, higher) in pairwise(at):
        lines += [(x, y, further, y), (further, y, further, higher)]
    return (*lines, (*at[-1], 100.0, at[-1][1]))


def _bars(chart: Chart, numbers: Mapping[str, int]) -> Drawing:
    series = list(dict.fromkeys(one.series for one in chart.points))
    looks = tuple((visible(name), *_LOOKS.get(name, _ANY[at % len(_ANY)])) for at, name in enumerate(series))
    bars: dict[str, list[BarPart]] = {}
    for one in chart.points:
        parts = bars.setdefault(str(one.x), [])
        at, width = sum(other.width for other in parts), 100 * one.y
        words = visible("; ".join(one.words))
        filters = {name: numbers.get(value, value) for name, value in (one.questions or {}).items()}
        count = count_or_percent(round(one.y * one.n), one.n) if one.n and width >= _ROOMY else ""
        parts.append(BarPart(visible(one.series), series.index(one.series), round(at, 2), round(width, 2),
                             count, words, to_questions(**filters) if filters else ""))
    return Drawing(chart, _EMPTY, _EMPTY, looks=looks, bars=tuple(
        (numbers.get(label), visible(truncate(label, 100)), tuple(parts)) for label, parts in bars.items()))


def spread_points(places: Sequence[float], heights: Sequence[float], gap: float = GAP) -> list[float]:
    """Return horizontal positions in which points of similar height do not hide each other."""
    groups: list[list[int]] = []
    for at in sorted(range(len(places)), key=lambda at: places[at]):
        near = [group for group in groups if any(abs(places[at] - places[other]) < 100 * gap
                                                 and abs(heights[at] - heights[other]) < HEIGHT for other in group)]
        groups = [group for group in groups if group not in near] + [[*(one for group in near for one in group), at]]
    moved = {at: place for group in groups
             for at, place in zip(group, spread([places[at] for at in group], gap), strict=True)}
    return [moved[at] for at in range(len(places))]


def spread(places: Sequence[float], gap: float = GAP) -> list[float]:
    """Return the positions, in percent, moved as little as possible so that neighbours are at least `gap` of the width
    apart.

    Strategies over the same evidence cost nearly the same, so their intervals would overlap. Large groups are spread
    less, so that no point looks much cheaper or more expensive than it is.
    """
    least = min(gap, WIDEST / max(len(places) - 1, 1)) * 100

    def start(cluster: Sequence[tuple[float, int]]) -> float:
        return sum(value for value, _ in cluster) / len(cluster) - least * (len(cluster) - 1) / 2

    clusters: list[list[tuple[float, int]]] = []
    for value, index in sorted((value, index) for index, value in enumerate(places)):
        clusters.append([(value, index)])
        while len(clusters) > 1 and start(clusters[-1]) - start(clusters[-2]) < least * len(clusters[-2]):
            last = clusters.pop()
            clusters[-1] += last
    placed = {index: round(start(cluster) + step * least, 2)
              for cluster in clusters for step, (_, index) in enumerate(cluster)}
    return [placed[index] for index in range(len(places))]
