"""Axes of charts: a range that fits the data, with ticks at round numbers."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

_STEPS = (1.0, 2.0, 5.0, 10.0)
_WANTED = 6  # ticks
_ROOM = 0.06  # free space at each end, as a share of the range
_NEAR_ZERO = 0.45  # the axis begins at 0 if the lowest value is below this share of the highest
_NEAR = 7.0  # smallest distance between ticks with text, in percent of the width
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


def quality_axis(values: Iterable[float | None], least: float = 0.0, most: float = 1.0) -> Axis:
    """Return an axis that fits the values, within the metric's bounds `least` and `most`.

    It begins at 0 unless all values are far from 0.
    """
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    least, most = min(least, low), max(most, high)
    if low >= 0 and low < _NEAR_ZERO * high:
        low = 0.0
    if low == high:
        low, high = (0.0, most) if low == 0 else (least, most)
    room = (high - low) * _ROOM
    low, high = (low if low == 0 else max(low - room, least)), min(high + room, most)
    return _linear(low, high, lambda value, digits: f"{value:z.{digits}f}")


def percent_axis(values: Iterable[float | None]) -> Axis:
    """Return an axis of shares in percent: the range of the values, or 0 to 100 if they cover most of it."""
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
