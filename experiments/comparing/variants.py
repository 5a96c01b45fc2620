"""Variants: the cells of a run that are one way of answering, asked once or several times, and in what two differ."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from agents.types import Outcome
from experiments.cells import FACTORS, REPLICATED, level
from experiments.metrics.sample import Row

VARIED = tuple(name for name in FACTORS if name not in REPLICATED)
_GO_WITH_CONDITION = ("rules", "perturbation")  # which mean nothing closed-book, though the cell names them


@dataclass(frozen=True, slots=True)
class Averaged:
    """A question with the means of its scores over the cells of a variant."""

    answerable: bool
    outcome: Outcome
    scores: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Variant:
    """Cells that differ in repeats and seeds alone.

    Attributes:
        row: of the first of them.
        answers: by question; where there are several cells, averaged over them.
        cells: how many.
    """

    row: Mapping[str, Any]
    answers: Mapping[str, Row]
    cells: int

    @property
    def levels(self) -> dict[str, str | None]:
        """The values of the factors; None of one that has no effect in it."""
        closed = self.row["condition"] == "closed-book"
        return {name: None if closed and name in _GO_WITH_CONDITION else _level(name, self.row) for name in VARIED}


def _level(name: str, row: Mapping[str, Any]) -> str | None:
    """No perturbation is a perturbation among others."""
    value = level(row, name)
    return "none" if value is None and name == "perturbation" else None if value is None else str(value)


def variants_of(rows: Sequence[Mapping[str, Any]], answers: Mapping[str, Mapping[str, Row]]) -> list[Variant]:
    """The variants, in the order of the cells.

    Args:
        rows: of a run's summary.
        answers: by cell's id, then by question.
    """
    return [Variant(cells[0], _averaged([answers.get(row["id"], {}) for row in cells]), len(cells))
            for cells in replicates(rows)]


def replicates(rows: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The cells of each variant, in their order."""
    alike: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        alike.setdefault(tuple(str(level(row, name)) for name in VARIED), []).append(row)
    return list(alike.values())


def _averaged(cells: Sequence[Mapping[str, Row]]) -> Mapping[str, Row]:
    """A score is averaged over the cells in which the question has one."""
    if len(cells) == 1:
        return cells[0]
    found: dict[str, Row] = {}
    for question, first in cells[0].items():
        rows = [cell[question] for cell in cells if question in cell]
        names = dict.fromkeys(name for row in rows for name in row.scores)
        found[question] = Averaged(first.answerable, first.outcome, {name: _mean(rows, name) for name in names})
    return found


def _mean(rows: Sequence[Row], name: str) -> float | None:
    scores = [score for row in rows if (score := row.scores.get(name)) is not None]
    return fmean(scores) if scores else None


def differing(first: Variant, second: Variant) -> list[str]:
    """The factors in which two variants differ.

    A factor that has no effect in one of them, as the retriever has none closed-book, is none in which they differ:
    it has none because of another one, in which they do. Rules and perturbations have none closed-book.
    """
    one, other = first.levels, second.levels
    return [name for name in VARIED if one[name] is not None and other[name] is not None and one[name] != other[name]]


def pairs_by_factor(variants: Sequence[Variant]) -> Iterator[tuple[str, Variant, Variant]]:
    """All pairs that differ in exactly one factor, by factor and then in the order of the variants."""
    found = [(factors[0], first, second) for place, first in enumerate(variants) for second in variants[place + 1:]
             if len(factors := differing(first, second)) == 1]
    yield from sorted(found, key=lambda pair: VARIED.index(pair[0]))
