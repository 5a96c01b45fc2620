"""Figures of parts of a run: of some questions of a cell, and of what changes from one answer to another."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.types import Outcome
from experiments.metrics.aggregate import Estimate, aggregate
from experiments.metrics.scored import may_refuse
from experiments.record import Result
from experiments.views.types import Material, Value


@dataclass(frozen=True, slots=True)
class _Change:
    answerable: bool
    scores: Mapping[str, float | None]
    outcome: Outcome = "answered"


def figures(material: Material, cell: Mapping[str, Any], results: Sequence[Result],
            metrics: Iterable[str]) -> list[Value]:
    """The metrics over these results of the cell; None where one has no figure."""
    found = aggregate(results, material.scoring, material.seed, refusing=may_refuse(cell["rules"])) if results else {}
    return [found.get(name) for name in metrics]


def change(material: Material, pairs: Sequence[tuple[Result, Result]], metric: str) -> Estimate | None:
    """The mean of the second's score less the first's, over the pairs that have both, with a bootstrap interval."""
    # Not under the metric's own name: a share's interval is none for differences.
    rows = [_Change(first.answerable, {"change": after - before}) for first, second in pairs
            if (before := first.scores.get(metric)) is not None and (after := second.scores.get(metric)) is not None]
    return aggregate(rows, material.scoring, material.seed)["change"] if rows else None
