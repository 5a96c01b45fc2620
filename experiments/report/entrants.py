"""The cells as ways of answering, repeats and seeds together, and which of them compete for the first place."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from ragbed.experiments.cells import REPLICATED, called
from ragbed.experiments.report.cells import Figure, ReportCell, Table, column
from ragbed.experiments.words import plural
from ragbed.strategies.reasoning.pipeline import OWN

# The gold alone is at no user's hand: it is the ceiling; closed-book is the floor.
_TIERS = (("retrieved",), ("given", "full"), ("gold",), ("closed-book",))
_PLAIN = {"perturbation": None, "show": "question"}  # anything else is done to the evidence or told of the gold
_SETTINGS = {"retrieved": "With retrieval (retrieved)", "given": "With the benchmark's own passages (given)",
             "full": "With the whole document (full)", "gold": "With the gold alone (gold)",
             "closed-book": "Without any document (closed-book)"}


def contenders(table: Table) -> Table:
    """Return the cells of the first condition of `retrieved`, `given` and `full`, `gold` and `closed-book` that there
    is, without perturbation where any has none; called by what tells these apart. A pipeline that searches by itself
    competes with any."""
    ranked = {cell.id: None if cell.factors.get("retrieval") == OWN else rank(cell.factors.get("condition") or "")
              for cell in table.cells}
    first = min((place for place in ranked.values() if place is not None and place >= 0), default=None)
    cells = [cell for cell in table.cells if ranked[cell.id] in (first, None)] or list(table.cells)
    for name, plain in _PLAIN.items():
        cells = [cell for cell in cells if cell.factors.get(name) in (None, plain)] or cells
    if len(cells) == len(table.cells):
        return table
    factors = [name for name in table.varying if len({cell.factors.get(name) for cell in cells}) > 1]
    return replace(table, cells=tuple(replace(cell, label=_label(cell, table, factors)) for cell in cells),
                   varying=tuple(factors))


def setting_of(table: Table) -> str:
    """Return the start of a sentence about its cells: the condition that all share, or how many they are."""
    shared = {cell.factors.get("condition") or "" for cell in table.cells}
    return in_words(shared.pop()) if len(shared) == 1 else f"Of {len(table.cells)} cells"


def in_words(condition: str) -> str:
    """Return what is shown under a condition, as the start of a sentence."""
    return _SETTINGS.get(condition, f"Under {condition}" if condition else "In this run")


def rank(condition: str) -> int:
    """Conditions in the order in which they compete."""
    return next((place for place, tier in enumerate(_TIERS) if condition in tier), -1)


def _label(cell: ReportCell, table: Table, factors: list[str]) -> str:
    """By the factors that are left, with what follows the factors in its name, such as its number of repeats."""
    whole = called(cell.factors, table.varying)
    rest = cell.label.removeprefix(whole) if cell.label.startswith(whole) else ""
    return (called(cell.factors, factors) or cell.factors.get("reasoning") or cell.label) + rest


def entrants(table: Table, repeated: Sequence[Mapping[str, Any]] = ()) -> Table:
    """Return the table with one cell for all that ask the same again, under the first one's id: comparisons name them
    so. Without the summary's figures of them, `repeated`, they have their means and no intervals."""
    factors = [name for name in table.varying if name not in REPLICATED]
    if len(factors) == len(table.varying):
        return table
    known = {row["cell"]: row["metrics"] for row in repeated}
    alike: dict[tuple[str | None, ...], list[ReportCell]] = {}
    for cell in table.cells:
        key = tuple(value for name, value in cell.factors.items() if name not in REPLICATED)
        alike.setdefault(key, []).append(cell)
    cells = tuple(_together(cells, factors, known.get(cells[0].id, {})) for cells in alike.values())
    return replace(table, cells=cells, varying=tuple(factors))


def _together(cells: Sequence[ReportCell], factors: Sequence[str], known: Mapping[str, Any]) -> ReportCell:
    first = cells[0]
    label = called(first.factors, factors) or first.factors.get("reasoning") or first.label
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
