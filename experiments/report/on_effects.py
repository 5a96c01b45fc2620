"""Which factors matter, in sentences."""
from __future__ import annotations

from experiments.report.effects import Effect, Effects
from experiments.report.words import listed, metric_words


def on_effects(found: Effects | None) -> list[str]:
    """Each factor that makes a difference over the mean of all others, those of which none is seen, interactions."""
    if found is None:
        return []
    said = [_matters(one, found.metric) for one in found.factors if one.real]
    unseen = [one.name for one in found.factors if one.real is False]
    if unseen:
        said.append(f"No effect of {listed(unseen)} is seen over the mean of the rest.")
    joint = [one for one in found.interactions if one.real]
    return said + [_joint(one) for one in joint]


def _matters(one: Effect, metric: str) -> str:
    means = [level for level in one.levels if level.figure.mean is not None]
    known = sorted(means, key=lambda level: level.figure.mean or 0.0)
    ends = ""
    if len(known) > 1:
        low, high = known[0], known[-1]
        ends = (f": mean {metric_words(metric)} is {high.figure.mean or 0.0:.2f} for {high.name} and "
                f"{low.figure.mean or 0.0:.2f} for {low.name}")
    return f"The {one.name} matters (p (Holm) {one.p_holm}){ends}."


def _joint(one: Effect) -> str:
    first, second = one.name.split(" × ")
    return f"How much {first} matters depends on {second} (p (Holm) {one.p_holm})."
