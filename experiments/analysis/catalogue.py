"""The views by name."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import MappingProxyType

from documents.errors import SettingsError
from experiments.analysis.benchmark_views import attacks, depth, wins
from experiments.analysis.breakdowns import by_tag, chain, gap, order
from experiments.analysis.view import Maker, Material, View

VIEWS: MappingProxyType[str, Maker] = MappingProxyType(
    {"order": order, "wins": wins, "depth": depth, "chain": chain, "gap": gap, "attacks": attacks})
_BY = "by:"


def view_named(name: str) -> Maker:
    """What makes the view of that name: one of `VIEWS`, or `by:TAG` for a tag of the questions.

    Raises:
        SettingsError: there is none.
    """
    if name.startswith(_BY) and name != _BY:
        return partial(by_tag, tag=name.removeprefix(_BY))
    if name not in VIEWS:
        raise SettingsError(f"unknown view {name!r}; there are {', '.join(VIEWS)} and {_BY}TAG")
    return VIEWS[name]


def views_of(names: Sequence[str], material: Material) -> list[View]:
    """The views for which the run has the material, in order."""
    made = [view_named(name)(material) for name in names] if material.cells else []
    return [view for view in made if view is not None]
