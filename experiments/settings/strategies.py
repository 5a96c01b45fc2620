"""The strategies that a run compares, under the names that its tables have.

Sweeps: strategies of a run that differ in their threshold alone.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from experiments.settings.run import RunSettings
from strategies.settings.choosing import Family, Strategy, known, named
from strategies.settings.parameters import default_of, hints_of
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


_NAME = "threshold"


@dataclass(frozen=True, slots=True)
class Swept:
    """A strategy of a sweep.

    Attributes:
        rest: its settings without the threshold, which the others share.
    """

    rest: str
    threshold: float


Sweeps = Mapping[str, Swept]  # by what tables call the strategy
NO_SWEEPS: Sweeps = MappingProxyType({})


def sweeps_of(settings: RunSettings) -> Sweeps:
    """The reasoning strategies of which others differ in their threshold alone."""
    found: dict[str, Swept] = {}
    for label, strategy in strategies_of(settings, "reasoning").items():
        threshold = _threshold(strategy)
        if threshold is not None:
            found[label] = Swept(_rest(strategy), threshold)
    several = [one.rest for one in found.values()]
    return {label: one for label, one in found.items() if several.count(one.rest) > 1}


def _threshold(strategy: Strategy) -> float | None:
    """As it is given, or the default of a strategy of the project, since others' are not known without loading them."""
    value = strategy.values.get(_NAME)
    if value is None and not strategy.is_plugin:
        function = known("reasoning")[strategy.kind]
        value = default_of(function, _NAME) if _NAME in hints_of(function) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _rest(strategy: Strategy) -> str:
    said = strategy.said if isinstance(strategy.said, Mapping) else {"kind": strategy.said}
    return json.dumps({name: value for name, value in said.items() if name not in (_NAME, "name")}, sort_keys=True)
