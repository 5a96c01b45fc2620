"""Select the cells of a run that can be compared with each other, and merge repeats of the same configuration into one.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from ragbed.experiments.cells import OWN, REPLICATED, describe_factors
from ragbed.experiments.formatting import plural
from ragbed.experiments.report.cells import Figure, ReportCell, Table, column

# Users have no gold passages, so `gold` is only an upper bound, and `closed-book` a lower bound.
_TIERS = (("retrieved",), ("provided", "full"), ("gold",), ("closed-book",))
_UNCHANGED = {"perturbation": None, "show": "question"}  # other values change the evidence, or reveal the gold


def comparable_cells(table: Table) -> Table:
    """Return the cells from which a user would choose, labelled by the factors in which they differ.

    These are the cells of one condition, the first that the run has of `retrieved`, `provided` and `full`, `gold`,
    `closed-book`. If some of them have no perturbation, only those are kept. A pipeline that retrieves by itself is
    always kept.
    """
    tiers = {cell.id: None if cell.factors.get("retrieval") == OWN else _tier(cell.factors.get("condition") or "")
             for cell in table.cells}
    first = min((tier for tier in tiers.values() if tier is not None), default=None)
    cells = [cell for cell in table.cells if tiers[cell.id] in (first, None)] or list(table.cells)
    for name, unchanged in _UNCHANGED.items():
        cells = [cell for cell in cells if cell.factors.get(name) in (None, unchanged)] or cells
    if len(cells) == len(table.cells):
        return table
    factors = [name for name in table.varying if len({cell.factors.get(name) for cell in cells}) > 1]
    return replace(table, cells=tuple(replace(cell, label=_label(cell, table, factors)) for cell in cells),
                   varying=tuple(factors))


def _tier(condition: str) -> int | None:
    return next((place for place, tier in enumerate(_TIERS) if condition in tier), None)


def _label(cell: ReportCell, table: Table, factors: list[str]) -> str:
    """Return the label for these factors. Suffixes of the cell's name, such as the number of repeats, are kept."""
    whole = describe_factors(cell.factors, table.varying)
    rest = cell.label.removeprefix(whole) if cell.label.startswith(whole) else ""
    return (describe_factors(cell.factors, factors) or cell.factors.get("reasoning") or cell.label) + rest


def merge_replicates(table: Table, repeated: Sequence[Mapping[str, Any]] = ()) -> Table:
    """Return the table with all repeats and seeds of a configuration merged into one cell, which has the id of the
    first.

    `repeated` has the summary's pooled figures. Without them, a merged cell has the mean of its cells' figures and no
    interval.
    """
    factors = [name for name in table.varying if name not in REPLICATED]
    if len(factors) == len(table.varying):
        return table
    known = {row["cell"]: row["metrics"] for row in repeated}
    alike: dict[tuple[str | None, ...], list[ReportCell]] = {}
    for cell in table.cells:
        key = tuple(value for name, value in cell.factors.items() if name not in REPLICATED)
        alike.setdefault(key, []).append(cell)
    cells = tuple(_merged(cells, factors, known.get(cells[0].id, {})) for cells in alike.values())
    return replace(table, cells=cells, varying=tuple(factors))


def _merged(cells: Sequence[ReportCell], factors: Sequence[str], known: Mapping[str, Any]) -> ReportCell:
    first = cells[0]
    label = describe_factors(first.factors, factors) or first.factors.get("reasoning") or first.label
    if len(cells) == 1:
        return replace(first, label=label)
    shown = [cell.passages for cell in cells if cell.passages is not None]
    prices = [cell.price for cell in cells if cell.price is not None]
    return replace(
        first, ids=tuple(cell.id for cell in cells), label=f"{label} ({plural(len(cells), 'repeat')})",
        n=sum(cell.n for cell in cells),
        figures={name: _mean([cell.figures[name] for cell in cells if name in cell.figures]) for name in first.figures}
        | {column(name, first.judge): Figure.of(value) for name, value in known.items()},
        outcomes=tuple((name, sum(dict(cell.outcomes).get(name, 0) for cell in cells))
                       for name in dict.fromkeys(name for cell in cells for name, _ in cell.outcomes)),
        prompt_tokens=sum(cell.prompt_tokens for cell in cells), calls=sum(cell.calls for cell in cells),
        completion_tokens=sum(cell.completion_tokens for cell in cells),
        passages=fmean(shown) if shown else None, price=sum(prices) if len(prices) == len(cells) else None)


def _mean(figures: Sequence[Figure]) -> Figure:
    known = [figure.mean for figure in figures if figure.mean is not None]
    return Figure(fmean(known) if known else None, None, None, max(figure.n for figure in figures))
