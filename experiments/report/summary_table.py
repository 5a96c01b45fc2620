"""A run's main table: one row per cell, with its difference from the first cell. The terminal and the report show the
same."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragbed.experiments.report.axes import Axis, quality_axis
from ragbed.experiments.report.cells import Figure, ReportCell, Table
from ragbed.experiments.report.pareto import headline_figures, tested_pairs
from ragbed.experiments.statistics import Comparison


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One cell of the main table.

    Attributes:
        score: the headline metric, if it was computed.
        difference: the tested difference of this cell minus the first; None if they differ in several factors.
    """

    cell: ReportCell
    score: Figure | None
    difference: Comparison | None
    citation_f1: float | None


def summary_rows(summary: Mapping[str, Any], table: Table) -> list[SummaryRow]:
    """Return a row per cell, in the order of the table."""
    if not table.cells:
        return []
    first, known = table.cells[0], headline_figures(table)
    tested = {pair.first.id if pair.second.id == first.id else pair.second.id: pair
              for pair in tested_pairs(summary.get("comparisons"), table)
              if first.id in (pair.first.id, pair.second.id)}
    return [SummaryRow(cell, known.get(cell.id),
                       tested[cell.id].seen_from(cell).tested if cell.id in tested else None,
                       found[1].mean if (found := cell.of("citation_f1")) else None)
            for cell in table.cells]


@dataclass(frozen=True, slots=True)
class RankedPlot:
    """The rows' scores on one axis, highest first, as positions from 0 to 100."""

    rows: tuple[tuple[SummaryRow, float | None, tuple[float, float] | None], ...]  # with the mean, and its interval
    axis: Axis
    baseline: float | None  # position of the first cell's mean


def ranked_plot(rows: list[SummaryRow], table: Table) -> RankedPlot:
    """Return the rows ordered by score; rows without a score come last."""
    scores = [row.score for row in rows if row.score]
    axis = quality_axis([bound for score in scores for bound in (score.mean, score.low, score.high)],
                        -0.5 if table.quality == "unified" else 0.0)
    ordered = sorted(rows, key=lambda row: -(row.score.mean if row.score and row.score.mean is not None else -9.0))
    placed = tuple((row, None if row.score is None or row.score.mean is None else axis.at(row.score.mean),
                    None if row.score is None or row.score.low is None or row.score.high is None else
                    (axis.at(row.score.low), axis.at(row.score.high))) for row in ordered)
    first = rows[0].score if rows else None
    return RankedPlot(placed, axis, None if first is None or first.mean is None else axis.at(first.mean))
