"""Siblings: the cells of a run that differ from a cell in what was shown alone, and that its causes are told by."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from experiments.cells import Cell
from retrieval.perturbations import Perturbation

# What a condition decides, or makes to have no effect; all else must agree, repeats among it. A seed is a cell's only
# where something is drawn: see `_agrees`.
_SHOWN = frozenset({"condition", "retrieval", "retriever", "chunker", "embedder", "format", "perturbation", "seed"})


@dataclass(frozen=True, slots=True)
class Siblings:
    """Ids of cells; None where the run has none.

    Attributes:
        closed_book: without documents; under rules of its own.
        evidence: over the gold alone; of a cell that is so itself, none.
        undisturbed: over the same evidence with fewer added negatives, the fewest that there are.
    """

    closed_book: str | None = None
    evidence: str | None = None
    undisturbed: str | None = None


def siblings_of(cells: Sequence[Cell]) -> dict[str, Siblings]:
    """The siblings of every cell, by its id."""
    closed: dict[object, list[Cell]] = defaultdict(list)
    alone: dict[object, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.condition == "closed-book":
            closed[_asked(cell, rules=False)].append(cell)
        elif gold_alone(cell):
            alone[_asked(cell)].append(cell)
    return {cell.id: Siblings(_nearest(cell, closed[_asked(cell, rules=False)]),
                              None if gold_alone(cell) else _nearest(cell, alone[_asked(cell)]),
                              _undisturbed(cell, cells))
            for cell in cells}


def gold_alone(cell: Cell) -> bool:
    """Whether the cell places the gold and nothing else, in whatever order and form."""
    change = cell.change
    return cell.condition == "evidence" and not (change.negatives or change.drop_gold or change.table)


def _asked(cell: Cell, rules: bool = True) -> tuple[object, ...]:
    """What is asked, whatever is shown. Closed-book has rules of its own, and no framing."""
    left = _SHOWN if rules else _SHOWN | {"rules", "framing"}
    return tuple((name, value) for name, value in asdict(cell).items() if name not in left)


def _nearest(cell: Cell, others: Sequence[Cell]) -> str | None:
    """Of several, the one that agrees in format and retriever, shows numbers as the cell does, and moves least."""
    def distance(other: Cell) -> tuple[bool, ...]:
        return (other.format != cell.format, other.finder != cell.finder, other.separators != cell.separators,
                other.change.moves)

    found = min((other for other in others if other != cell and _agrees(other, cell)), key=distance, default=None)
    return None if found is None else found.id


def _agrees(other: Cell, cell: Cell) -> bool:
    """Whether the seeds are one, or one of the cells draws nothing."""
    return other.seed is None or cell.seed in (None, other.seed)


def _undisturbed(cell: Cell, cells: Sequence[Cell]) -> str | None:
    fewer = (other for other in cells if _has_fewer(other, cell))
    found = min(fewer, key=lambda other: other.change.negatives, default=None)
    return None if found is None else found.id


def _has_fewer(other: Cell, cell: Cell) -> bool:
    """Whether the cells differ in nothing but that the other adds fewer negatives."""
    if other.change.negatives >= cell.change.negatives or not _agrees(other, cell):
        return False
    return replace(other, perturbation=_without(other.change), seed=cell.seed) == \
        replace(cell, perturbation=_without(cell.change))


def _without(change: Perturbation) -> str:
    return str(replace(change, negatives=0))
