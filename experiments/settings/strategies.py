"""The strategies that a run compares, under the names that its tables have."""
from __future__ import annotations

from experiments.settings.run import RunSettings
from strategies.settings.choosing import Family, Strategy, named
from strategies.types import Exemplar


def strategies_of(settings: RunSettings, family: Family) -> dict[str, Strategy]:
    """Every strategy of a family that any part of the matrix names, by its label. No plug-in is loaded."""
    said = [one for part in (settings, *settings.include) for one in getattr(part, family) or ()]
    return {found.label: found for found in (named(family, one) for one in said)}


def sources_of(settings: RunSettings) -> dict[str, str]:
    """Hashes of what the strategies are made of and settings only name, by how they name it: plug-ins, and files of
    worked examples. Loads them."""
    return {name: content for one in _all(settings) for name, content in one.sources.items()}


def exemplars_of(settings: RunSettings) -> dict[str, tuple[Exemplar, ...]]:
    """The worked examples of files that strategies name, by the file; reads them."""
    return {file.file: file.examples for one in _all(settings) for file in one.exemplars}


def _all(settings: RunSettings) -> list[Strategy]:
    return [*strategies_of(settings, "reasoning").values(), *strategies_of(settings, "retrieval").values()]
