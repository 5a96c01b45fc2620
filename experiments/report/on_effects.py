"""Which factors matter, in sentences."""
from __future__ import annotations

from collections.abc import Sequence

from experiments.report.effects import Contrast, Effect, Effects, Level
from experiments.report.words import interval, listed, metric_words

_TIMES = " × "  # between the names of two factors
_PLURAL = {"reasoning": "strategies", "model": "models", "condition": "conditions", "perturbation": "perturbations",
           "retriever": "retrievers", "format": "formats", "rules": "rules"}

def on_effects(found: Effects | None) -> list[str]:
    """Each factor that makes a difference over the mean of all others and which of its levels is ahead, the factors
    of which no difference is seen or none could be, interactions."""
    if found is None:
        return []
    joint = [one for one in found.interactions if one.real]
    over = [one.name for one in found.factors if found.crossed]
    said = [sentence for one in found.factors if one.real
            for sentence in (_matters(one, found.metric, _beside(one.name, joint)),
                             *_ahead(one, [name for name in over if name != one.name]))]
    unseen = [one.name for one in found.factors if one.real is False]
    if unseen:
        said.append(f"No effect of {listed(unseen)} is seen over the mean of the rest.")
    untested = [one.name for one in found.factors if one.real is None]
    if untested:
        said.append(f"There are too few questions to test {listed(untested)}.")
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


def _ahead(one: Effect, others: Sequence[str]) -> list[str]:
    """The level of the highest mean against the nearest that is really lower; where there is none, the two levels that
    are really apart by most.

    Args:
        others: the factors over all of whose levels that is; none where some combinations were not asked.
    """
    real = [contrast for contrast in one.contrasts if contrast.real]
    if not real:
        return []
    best = max(one.levels, key=lambda level: level.figure.mean or 0.0).name
    beaten = [contrast for contrast in real if contrast.higher == best]
    told = min(beaten, key=_difference) if beaten else max(real, key=_difference)
    level = [contrast.lower for contrast in one.contrasts if contrast.higher == best and not contrast.real]
    over = f"Over all {listed([_PLURAL.get(name, f'values of {name}') for name in others])} " if others else ""
    but = f"; from {listed(level)} it cannot be told" if beaten and level else ""
    between = interval(told.low, told.high)
    by = f"{told.difference:z.2f}{' ' if between else ''}{between}"
    return [f"{over}{told.higher} is higher than {told.lower} by {by} (p (Holm) {told.p_holm}){but}."]


def _difference(contrast: Contrast) -> float:
    return contrast.difference


def _beside(name: str, joint: Sequence[Effect]) -> list[str]:
    """The factors that interact with this one."""
    pairs = [one.name.split(_TIMES) for one in joint]
    return [other for pair in pairs if name in pair for other in pair if other != name]


def _mean(level: Level) -> str:
    between = interval(level.figure.low, level.figure.high)
    return f"{level.figure.mean or 0.0:z.2f}{' ' if between else ''}{between} for {level.name}"


def _joint(one: Effect) -> str:
    first, second = one.name.split(_TIMES)
    return f"How much {first} matters depends on {second} (p (Holm) {one.p_holm})."
