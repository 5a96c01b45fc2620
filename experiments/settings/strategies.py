"""The strategies that a run compares, under the names that its tables have."""
from __future__ import annotations

from experiments.settings.run import RunSettings
from strategies.choosing import Family, Strategy, named


def strategies_of(settings: RunSettings, family: Family) -> dict[str, Strategy]:
    """Every strategy of a family that any part of the matrix names, by its label. No plug-in is loaded."""
    said = [one for part in (settings, *settings.include) for one in getattr(part, family) or ()]
    return {found.label: found for found in (named(family, one) for one in said)}


def plugins_of(settings: RunSettings) -> dict[str, str]:
    """The hash of the source of every strategy that is none of ragbed's, by how the settings name it; loads them."""
    found = [*strategies_of(settings, "reasoning").values(), *strategies_of(settings, "retrieval").values()]
    return {kind: content for one in found for kind, content in one.plugins.items()}
