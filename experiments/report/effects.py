"""Main effects and interactions of a run's factors, as rows with their intervals."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.analysis.effects import with_short_names
from experiments.report.axes import Axis, around_zero
from experiments.report.cells import Figure
from experiments.report.text import visible
from experiments.statistics import ALPHA
from experiments.words import probability


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a factor, or one combination of two: its mean, and how far that is from what the rest predicts.

    Attributes:
        marks: where the effect and its interval stand on the axis; None without an interval.
    """

    name: str
    figure: Figure
    effect: float | None
    low: float | None
    high: float | None
    marks: tuple[float, float, float] | None

    @property
    def apart(self) -> bool:
        """Whether the interval of the effect leaves out 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two levels of a factor, averaged as their means are: by how much the one is higher.

    Attributes:
        low, high: of the difference; None without an interval.
        real: whether p, corrected for all contrasts of the factor, is below 0.05.
    """

    higher: str
    lower: str
    difference: float
    low: float | None
    high: float | None
    p_holm: str
    real: bool


@dataclass(frozen=True, slots=True)
class Effect:
    """A factor, or two that interact.

    Attributes:
        real: whether p (Holm) is below 0.05; None where there is no test.
        contrasts: of a factor's levels, two by two.
    """

    name: str
    p: str
    p_holm: str
    real: bool | None
    levels: tuple[Level, ...]
    contrasts: tuple[Contrast, ...]


@dataclass(frozen=True, slots=True)
class Effects:
    """All effects on one metric, on one axis.

    Attributes:
        crossed: whether every combination of the levels was asked; not known of what an older ragbed kept.
    """

    metric: str
    crossed: bool
    factors: tuple[Effect, ...]
    interactions: tuple[Effect, ...]
    axis: Axis
    notes: tuple[str, ...]

    @property
    def zero(self) -> float:
        return self.axis.at(0.0)


def effects(stored: Mapping[str, Any] | None) -> Effects | None:
    """The summary's effects; None where it has none."""
    if not stored or not stored.get("factors"):
        return None
    stored = with_short_names(stored)
    interactions = stored["interactions"]
    every = [*(level for one in stored["factors"] for level in one["levels"]),
             *(cell for one in interactions for cell in one["cells"])]
    axis = around_zero([level[bound] for level in every for bound in ("effect", "effect_low", "effect_high")])
    return Effects(visible(stored["metric"]), bool(stored.get("crossed")),
                   tuple(_effect(one, str(one["factor"]), one["levels"], axis) for one in stored["factors"]),
                   tuple(_effect(one, " × ".join(one["factors"]), one["cells"], axis) for one in interactions), axis,
                   tuple(visible(note) for note in stored.get("notes") or ()))


def _effect(stored: Mapping[str, Any], name: str, levels: Sequence[Mapping[str, Any]], axis: Axis) -> Effect:
    p = stored["p_holm"]
    return Effect(visible(name), probability(stored["p"]), probability(p), None if p is None else p < ALPHA,
                  tuple(_level(level, axis) for level in levels),
                  tuple(_contrast(one) for one in stored.get("contrasts") or ()))


def _contrast(stored: Mapping[str, Any]) -> Contrast:
    higher, lower = visible(str(stored["second"])), visible(str(stored["first"]))
    difference, low, high, p = stored["difference"], stored["low"], stored["high"], stored["p_holm"]
    if difference < 0:
        higher, lower, difference = lower, higher, -difference
        low, high = (None if bound is None else -bound for bound in (high, low))
    return Contrast(higher, lower, difference, low, high, probability(p), p is not None and p < ALPHA)


def _level(stored: Mapping[str, Any], axis: Axis) -> Level:
    names = stored["levels"] if "levels" in stored else [stored["level"]]
    effect, low, high = stored["effect"], stored["effect_low"], stored["effect_high"]
    marks = None if None in (effect, low, high) else (axis.at(effect), axis.at(low), axis.at(high))
    return Level(visible(" · ".join("none" if name is None else str(name) for name in names)), Figure.of(stored),
                 effect, low, high, marks)
