"""A run's main table: one row per cell, with its difference from the first. Terminal and report show the same."""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragbed.experiments.formatting import fmt2
from ragbed.experiments.metrics import better_sign
from ragbed.experiments.report.cell_table import Figure, ReportCell, Table
from ragbed.experiments.report.charts import Axis, quality_axis
from ragbed.experiments.report.pareto import headline_figures, tested_pairs
from ragbed.experiments.statistics import Comparison


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One cell of the main table.

    Attributes:
        score: the headline metric, if it was computed.
        difference: the tested difference of this cell minus the first; None if they differ in several factors.
        shares: the parts of the score `right`, such as `18/26`, by title: `correct`, of the answerable questions, and
            `refusals`, of the unanswerable ones. A part without questions is missing.
        own: the means of the user's own metrics and judges, by name.
    """

    cell: ReportCell
    score: Figure | None
    difference: Comparison | None
    citation_f1: float | None
    shares: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)


def summary_rows(summary: Mapping[str, Any], table: Table) -> list[SummaryRow]:
    """Return a row per cell, in the order of the table."""
    if not table.cells:
        return []
    own = [one["name"] for one in summary.get("own_metrics", ()) if one["name"] in summary["columns"]]
    first, known = table.cells[0], headline_figures(table)
    tested = {pair.first.id if pair.second.id == first.id else pair.second.id: pair
              for pair in tested_pairs(summary.get("comparisons"), table)
              if first.id in (pair.first.id, pair.second.id)}
    return [SummaryRow(cell, known.get(cell.id),
                       tested[cell.id].seen_from(cell).tested if cell.id in tested else None,
                       found[1].mean if (found := cell.of("citation_f1")) else None,
                       {title: f"{part[1].mean * part[1].n:.4g}/{part[1].n}"
                        for title, name in (("correct", "correct"), ("refusals", "refusal_accuracy"))
                        if table.quality == "right" and (part := cell.of(name)) and part[1].mean is not None},
                       {name: "-" if found[1].mean is None else fmt2(found[1].mean)
                        for name in own if name != table.quality and (found := cell.of(name))})
            for cell in table.cells]


@dataclass(frozen=True, slots=True)
class RankedPlot:
    """The rows' scores on one axis, best first, as positions from 0 to 100."""

    rows: tuple[tuple[SummaryRow, float | None, tuple[float, float] | None], ...]  # with the mean, and its interval
    axis: Axis
    baseline: float | None  # position of the first cell's mean

    @property
    def shares(self) -> tuple[str, ...]:
        """Titles of the shares that any row has, in order."""
        return tuple(dict.fromkeys(title for row, _, _ in self.rows for title in row.shares))

    @property
    def cites(self) -> bool:
        """Whether any row has a citation F1."""
        return any(row.citation_f1 is not None for row, _, _ in self.rows)


def ranked_plot(rows: list[SummaryRow], table: Table, ranked: bool = True) -> RankedPlot:
    """Return the rows, by default ordered by score; rows without a score come last."""
    scores, sign = [row.score for row in rows if row.score], better_sign(table.quality)
    axis = quality_axis([bound for score in scores for bound in (score.mean, score.low, score.high)],
                        -0.5 if table.quality == "unified" else 0.0)
    ordered = rows if not ranked else sorted(rows, key=lambda row: math.inf if row.score is None or
                                             row.score.mean is None else -sign * row.score.mean)
    placed = tuple((row, None if row.score is None or row.score.mean is None else axis.at(row.score.mean),
                    None if row.score is None or row.score.low is None or row.score.high is None else
                    (axis.at(row.score.low), axis.at(row.score.high))) for row in ordered)
    first = rows[0].score if rows else None
    return RankedPlot(placed, axis, None if first is None or first.mean is None else axis.at(first.mean))
