"""The intervals of a comparison's two cells: those that they have by themselves, where it is of all their questions."""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from experiments.comparing.variants import Variant
from experiments.statistics import Comparison

Figures = Mapping[str, Mapping[str, Any]]  # Estimates by metric


def together_of(repeated: Iterable[Mapping[str, Any]]) -> dict[str, Figures]:
    """The figures of what was asked several times, by the id of its first cell, out of a summary's `repeated`."""
    return {row["cell"]: row["metrics"] for row in repeated}


def own_figures(variant: Variant, together: Mapping[str, Figures]) -> Figures:
    """Those of its row, or over all its repeats and seeds; empty where neither is known."""
    found: Figures = variant.row.get("metrics", {}) if variant.cells == 1 else together.get(variant.row["id"], {})
    return found


def with_own_intervals(found: Comparison, first: Figures, second: Figures) -> Comparison:
    """The comparison with one interval for one figure, wherever it stands: a cell whose questions all have a pair has
    the interval of the run's table, and another one keeps that over its pairs."""
    before, after = first.get(found.metric, {}), second.get(found.metric, {})
    if _same(before, found.before, found.n):
        found = replace(found, before_low=before["low"], before_high=before["high"])
    if _same(after, found.after, found.n):
        found = replace(found, after_low=after["low"], after_high=after["high"])
    return found


def _same(own: Mapping[str, Any], mean: float | None, n: int) -> bool:
    return mean is not None and own.get("n") == n and own["mean"] is not None and math.isclose(
        own["mean"], mean, abs_tol=1e-9)
