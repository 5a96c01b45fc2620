"""Cells: the combinations of a run's factors, each run once however often the product names it."""
from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache

from documents.types import Format, digest
from experiments.settings import RunSettings
from retrieval.conditions import Condition
from strategies.types import Rules


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination. A factor that has no effect under the cell's condition is None.

    Attributes:
        retriever: the name of the retriever's settings.
        repeat: from 0.
    """

    model: str
    retrieval: str | None
    retriever: str | None
    reasoning: str
    rules: Rules
    condition: Condition
    perturbation: str | None
    format: Format | None
    benchmark: str
    repeat: int

    @property
    def id(self) -> str:
        """Short hash of the factors, equal in every run."""
        return _id(self)


@lru_cache(maxsize=4096)
def _id(cell: Cell) -> str:
    return digest(*(f"{name}={value}" for name, value in asdict(cell).items()))[:12]


def cells_of(settings: RunSettings) -> list[Cell]:
    """The distinct cells, in the order of the settings; the reasoning strategy varies fastest."""
    return list(dict.fromkeys(_product(settings)))


def combinations(settings: RunSettings) -> int:
    """How many combinations the settings name; those that are one cell by construction are counted each."""
    return sum(1 for _ in _product(settings))


def _product(settings: RunSettings) -> Iterator[Cell]:
    for repeat, model, condition, format, retriever, rules, retrieval, reasoning in itertools.product(
            range(settings.repeats), settings.models, settings.conditions, settings.formats,
            settings.retriever, settings.rules, settings.retrieval, settings.reasoning):
        closed = condition == "closed-book"
        searched = condition == "retrieved" and retrieval != "none"
        yield Cell(model, None if closed else retrieval, retriever.name if searched else None, reasoning,
                   "closed-book" if closed else rules, condition, None, format if searched else None,
                   settings.benchmark.kind, repeat)


def varying(cells: list[Cell]) -> list[str]:
    """The factors in which the cells differ; `reasoning` where they do not differ at all."""
    names = [name for name in Cell.__dataclass_fields__ if len({getattr(cell, name) for cell in cells}) > 1]
    return names or ["reasoning"]


def label(cell: Cell, names: list[str]) -> str:
    """The cell's values of those factors, for a table."""
    return ", ".join(str(getattr(cell, name)) for name in names if getattr(cell, name) is not None)
