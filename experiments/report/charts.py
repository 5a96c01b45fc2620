"""Lay out the charts of views for the template. Positions are percentages of the drawing's width and height.
An axis covers the data, with ticks at round numbers."""
from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ragbed.experiments.analysis.view import Chart, Point
from ragbed.experiments.formatting import count_or_percent, format_dollars, truncate, visible
from ragbed.experiments.metrics import better_sign
from ragbed.experiments.report.cell_table import ReportCell, Table, colour_and_shape, level_text
from ragbed.experiments.report.report_input import to_questions

_STEPS = (1.0, 2.0, 5.0, 10.0)
_WANTED = 6  # ticks
_ROOM = 0.06  # free space at each end, as a share of the range
_NEAR_ZERO = 0.45  # the axis begins at 0 if the lowest value is below this share of the highest
_NEAR = 7.0  # smallest distance between ticks with text, as a percentage of the width
_FAR_APART = 25.0  # ratio of costs above which their axis is logarithmic


@dataclass(frozen=True, slots=True)
class Tick:
    """A label along an axis, and its position from 0 to 100."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high`. Both are above 0 if it is logarithmic."""

    low: float
    high: float
    ticks: tuple[Tick, ...]
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Return the position of a value from 0 to 100, clipped at the ends."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(max(value, self.low))
        return round(min(max((value - low) / (high - low), 0.0), 1.0) * 100, 2)

    def down(self, value: float) -> float:
        """Return the position of a value on a vertical axis, where 0 is the top and 100 the bottom."""
        return round(100 - self.at(value), 2)


def quality_axis(values: Iterable[float | None], least: float = 0.0) -> Axis:
    """Return an axis that fits the values, within the metric's bounds `least` and 1.

    It begins at 0 unless all values are far from 0.
    """
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    least, most = min(least, low), max(1.0, high)
    if low >= 0 and low < _NEAR_ZERO * high:
        low = 0.0
    if low == high:
        low, high = (0.0, most) if low == 0 else (least, most)
    room = (high - low) * _ROOM
    low, high = (low if low == 0 else max(low - room, least)), min(high + room, most)
    return _linear(low, high, lambda value, digits: f"{value:z.{digits}f}")


def percent_axis(values: Iterable[float | None]) -> Axis:
    """Return an axis of percentages: the range of the values, or 0 to 100 if they cover most of it."""
    known = [value for value in values if value is not None]
    low, high = max(min(known, default=0.0) - 0.05, 0.0), min(max(known, default=1.0) + 0.05, 1.0)
    if high - low > 0.8:
        low, high = 0.0, 1.0
    step = 5 if high - low < 0.3 else 10 if high - low < 0.6 else 20
    axis = Axis(low, high, ())
    return Axis(low, high, tuple(Tick(axis.at(at / 100), f"{at} %") for at in range(0, 101, step)
                                 if low - 1e-9 <= at / 100 <= high + 1e-9))


def word_axis(ticks: Sequence[tuple[float, str]]) -> Axis:
    """Return an axis with text as ticks. A tick too close to the previous one is left out."""
    low, high = ticks[0][0], ticks[-1][0]
    room = (high - low) * 0.07 or 1.0
    axis = Axis(low - room, high + room, ())
    shown: list[Tick] = []
    for place, words in ticks:
        if not shown or axis.at(place) - shown[-1].at >= _NEAR:
            shown.append(Tick(axis.at(place), words))
    return Axis(axis.low, axis.high, tuple(shown))


def cost_axis(values: Iterable[float], words: Callable[[float], str]) -> Axis:
    """Return an axis that begins at 0, or a logarithmic one if the highest cost is many times the lowest."""
    known = sorted(values)
    if known[0] > 0 and known[-1] / known[0] > _FAR_APART:
        axis = Axis(known[0] / 1.5, known[-1] * 1.5, (), logarithmic=True)
        powers = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
        return replace(axis, ticks=tuple(Tick(axis.at(value), words(value)) for power in powers for part in (1, 2, 5)
                                         if axis.low <= (value := part * 10.0**power) <= axis.high))
    return _linear(0.0, known[-1] * 1.12 or 1.0, lambda value, _: words(value))


def _linear(low: float, high: float, words: Callable[[float, int], str]) -> Axis:
    rough = (high - low) / _WANTED
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(part * scale for part in _STEPS if part * scale >= rough * 0.999)
    digits = max(0, -math.floor(math.log10(step)), 2 if step < 1 else 0)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    axis = Axis(low, high, ())
    values = [round(count * step, 12) for count in range(first, last + 1)]
    return Axis(low, high, tuple(Tick(axis.at(value), words(value, digits)) for value in values))


COLOURS, SHAPES = 6, 5
HEIGHT = 7.0  # height of a point, as a percentage of the chart's height
GAP, WIDEST = 0.02, 0.08  # distance between spread points, and largest width of a group, as shares of the chart's width
_ASIDE = 1.6  # distance between the lines of a chart, as a percentage of the width
_ROOMY = 6.0  # smallest width, as a percentage, at which a part of a bar shows its number
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
    return Drawing(chart, x, y, spots, _front([one for one in spots if one.point.mark == "front"],
                                             100.0 if better_sign(table.quality) > 0 else 0.0),
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
    """Give cells a colour by one factor and a shape by another. If there are too few, cells are told apart by number.

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


def _front(spots: Sequence[Spot], worst: float) -> tuple[Segment, ...]:
    """Return the stepped line through the points, from the cheapest to the best. `worst`: where it begins, as `y`."""
    at = sorted((spot.x, spot.y) for spot in spots)
    if not at:
        return ()
    lines = [(at[0][0], worst, *at[0])]
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


def spread_points(places: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Return horizontal positions in which points of similar height do not hide each other."""
    groups: list[list[int]] = []
    for at in sorted(range(len(places)), key=lambda at: places[at]):
        near = [group for group in groups if any(abs(places[at] - places[other]) < 100 * GAP
                                                 and abs(heights[at] - heights[other]) < HEIGHT for other in group)]
        groups = [group for group in groups if group not in near] + [[*(one for group in near for one in group), at]]
    moved = {at: place for group in groups
             for at, place in zip(group, spread([places[at] for at in group]), strict=True)}
    return [moved[at] for at in range(len(places))]


def spread(places: Sequence[float]) -> list[float]:
    """Return the positions, in percent, moved as little as possible so that neighbours are at least `GAP` apart.

    Strategies over the same evidence cost nearly the same, so their intervals would overlap. Large groups are spread
    less, so that no point looks much cheaper or more expensive than it is.
    """
    least = min(GAP, WIDEST / max(len(places) - 1, 1)) * 100

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
