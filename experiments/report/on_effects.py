"""Which factors matter, in sentences."""
from __future__ import annotations

from collections.abc import Sequence

from experiments.report.effects import Effect, Effects, Level
from experiments.report.words import interval, listed, metric_words

_TIMES = " × "  # between the names of two factors

def on_effects(found: Effects | None) -> list[str]:
    """Each factor that makes a difference over the mean of all others, those of which none is seen, interactions."""
    if found is None:
        return []
    joint = [one for one in found.interactions if one.real]
    said = [_matters(one, found.metric, _beside(one.name, joint))
            for one in found.factors if one.real]
    unseen = [one.name for one in found.factors if one.real is False]
    if unseen:
        said.append(f"No effect of {listed(unseen)} is seen over the mean of the rest.")
    return said + [_joint(one) for one in joint]


def _matters(one: Effect, metric: str, depends: Sequence[str]) -> str:
    """The test is of all levels together: which of them differ is left to their intervals.

    Args:
        depends: the factors on which it depends how much this one matters.
    """
    levels = sorted((level for level in one.levels if level.figure.mean is not None),
                    key=lambda level: -(level.figure.mean or 0.0))
    means = f": mean {metric_words(metric)} is {listed([_mean(level) for level in levels])}" if levels else ""
    but = f", but how much depends on {listed(depends)}" if depends else ""
    return f"The {one.name} matters (p (Holm) {one.p_holm}){but}{means}."


def _beside(name: str, joint: Sequence[Effect]) -> list[str]:
    """The factors that interact with this one."""
    pairs = [one.name.split(_TIMES) for one in joint]
    return [other for pair in pairs if name in pair for other in pair if other != name]


def _mean(level: Level) -> str:
    between = interval(level.figure.low, level.figure.high)
    return f"{level.figure.mean or 0.0:.2f}{' ' if between else ''}{between} for {level.name}"


def _joint(one: Effect) -> str:
    first, second = one.name.split(_TIMES)
    return f"How much {first} matters depends on {second} (p (Holm) {one.p_holm})."
