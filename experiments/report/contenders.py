"""Which cells compete for the first place: those that could be put to use."""
from __future__ import annotations

from dataclasses import replace

from experiments.cells import called
from experiments.report.cells import Cell, Table

# The gold alone is at no user's hand: it is the ceiling; closed-book is the floor.
_TIERS = (("retrieved",), ("given", "full"), ("evidence",), ("closed-book",))
_PLAIN = {"perturbation": None, "show": "question"}  # anything else is done to the evidence or told of the gold
_SETTINGS = {"retrieved": "With retrieval (retrieved)", "given": "With the benchmark's own passages (given)",
             "full": "With the whole document (full)", "evidence": "With the gold alone (evidence)",
             "closed-book": "Without any document (closed-book)"}


def contenders(table: Table) -> Table:
    """The cells of the first condition of `retrieved`, `given` and `full`, `evidence` and `closed-book` that there is,
    without perturbation where any has none; called by what tells these apart."""
    found = [[cell for cell in table.cells if cell.factors.get("condition") in tier] for tier in _TIERS]
    cells = next((tier for tier in found if tier), list(table.cells))
    for name, plain in _PLAIN.items():
        cells = [cell for cell in cells if cell.factors.get(name) in (None, plain)] or cells
    if len(cells) == len(table.cells):
        return table
    factors = [name for name in table.varying if len({cell.factors.get(name) for cell in cells}) > 1]
    return replace(table, cells=tuple(replace(cell, label=_label(cell, table, factors)) for cell in cells),
                   varying=tuple(factors))


def setting_of(table: Table) -> str:
    """The start of a sentence about its cells: the condition that all share, or how many they are."""
    shared = {cell.factors.get("condition") or "" for cell in table.cells}
    return in_words(shared.pop()) if len(shared) == 1 else f"Of {len(table.cells)} cells"


def in_words(condition: str) -> str:
    """What is shown under a condition, as the start of a sentence."""
    return _SETTINGS.get(condition, f"Under {condition}" if condition else "In this run")


def rank(condition: str) -> int:
    """Conditions in the order in which they compete."""
    return next((place for place, tier in enumerate(_TIERS) if condition in tier), -1)


def _label(cell: Cell, table: Table, factors: list[str]) -> str:
    """By the factors that are left, with what follows the factors in its name, such as its number of repeats."""
    whole = called(cell.factors, table.varying)
    rest = cell.label.removeprefix(whole) if cell.label.startswith(whole) else ""
    return (called(cell.factors, factors) or cell.factors.get("reasoning") or cell.label) + rest
