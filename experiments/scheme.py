"""Scheme: how a benchmark's answers are scored, what a judge is asked of them, and which figures a table shows."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# grades: Correct, Partially Correct, Wrong. points: 0 to 10. steps: which reference steps the reasoning holds.
Rubric = Literal["grades", "points", "steps"]


@dataclass(frozen=True, slots=True)
class Scheme:
    """What a benchmark measures.

    Attributes:
        groups: the metric groups that are computed, by name (`experiments.metrics.catalogue.GROUPS`).
        rubric: what a judge is asked; None where none is.
        columns: the metrics of a run's table, in order; ` / ` joins those that share a column.
        views: the breakdowns of a finished run, by name (`experiments.views.VIEWS`).
        published: the tables of the paper that stand beside a run's own, by name (`experiments.published`).
    """

    groups: tuple[str, ...]
    rubric: Rubric | None
    columns: tuple[str, ...]
    views: tuple[str, ...] = ()
    published: tuple[str, ...] = ()


ANSWERS = Scheme(groups=("answers", "overlap", "form"), rubric="grades",
                 columns=("unified", "correct / partial / wrong", "refusal_accuracy", "citation_f1"))
