"""Figures of parts of a run: of some questions of a cell, and of what changes from one answer to another."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.metrics.aggregate import Estimate, aggregate, estimate
from experiments.metrics.scored import may_refuse
from experiments.record import Result
from experiments.statistics import pairs_of
from experiments.statistics.intervals import interval_of
from experiments.views.types import Material, Value


def figures(material: Material, cell: Mapping[str, Any], results: Sequence[Result],
            metrics: Iterable[str]) -> list[Value]:
    """The metrics over these results of the cell; None where one has no figure."""
    found = figures_of_cell(material, cell, results) if results else {}
    return [found.get(name) for name in metrics]


def figures_of_cell(material: Material, cell: Mapping[str, Any], results: Sequence[Result]) -> dict[str, Estimate]:
    """Every metric over these results of the cell."""
    return aggregate(results, material.scoring, material.seed, refusing=may_refuse(cell["rules"]),
                     clusters=material.clusters_of(results))


def change(material: Material, pairs: Sequence[tuple[Result, Result]], metric: str) -> Estimate | None:
    """The metric of the second results less that of the first, over the pairs that have both, with the interval of a
    paired difference. Pairs whose first questions share a cluster do so too."""
    before, after = ({str(place): pair[side] for place, pair in enumerate(pairs)} for side in (0, 1))
    clusters = dict(zip(before, material.clusters_of(before.values()), strict=True))
    made = pairs_of(metric, before, after, clusters, material.scoring)
    if not made.n:
        return None
    first, second = made.observed()
    return estimate(second - first, interval_of(made, material.seed), made.n)
