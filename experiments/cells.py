"""Cells: the combinations of a run's factors, each run once however often the product names it."""
from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from documents.types import Format, digest
from experiments.settings import Dense, RunSettings, Show
from retrieval.conditions import Condition
from retrieval.perturbations import Perturbation
from strategies.types import Rules

# In the order in which tables show them.
FACTORS = ("benchmark", "model", "reasoning", "retrieval", "retriever", "rules", "condition", "perturbation", "show",
           "format", "repeat")


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination. A factor that has no effect under the cell's condition is None.

    Attributes:
        retrieval: None too where the evidence is placed beforehand: whatever is searched, it is what is there.
        retriever: the name of the retriever's settings; for gold that comes from an index, the first that has it.
        repeat: from 0.
    """

    model: str
    retrieval: str | None
    retriever: str | None
    reasoning: str
    rules: Rules
    condition: Condition
    perturbation: str | None
    show: Show
    format: Format | None
    benchmark: str
    repeat: int

    @property
    def id(self) -> str:
        """Short hash of the factors, equal in every run."""
        return _id(self)


    @property
    def change(self) -> Perturbation:
        """What is done to the evidence."""
        return Perturbation.parse(self.perturbation or "none")

    @property
    def separators(self) -> bool:
        """Whether documents are shown with numbers."""
        return not self.change.separators_off


@lru_cache(maxsize=4096)
def _id(cell: Cell) -> str:
    return digest(*(f"{name}={value}" for name, value in asdict(cell).items()))[:12]


def cells_of(settings: RunSettings, gives_chunks: bool) -> list[Cell]:
    """The distinct cells, in the order of the settings; the reasoning strategy varies fastest.

    Args:
        gives_chunks: whether the benchmark brings the chunks of its questions; else gold comes from an index.
    """
    return list(dict.fromkeys(_product(settings, gives_chunks)))


def combinations(settings: RunSettings) -> int:
    """How many combinations the settings name; those that are one cell by construction are counted each."""
    return sum(1 for _ in _product(settings, gives_chunks=True))


def varying(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The factors in which the rows of a summary differ; `reasoning` where they differ in none."""
    return [name for name in FACTORS if len({str(row.get(name)) for row in rows}) > 1] or ["reasoning"]


def labels(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the rows of a summary are called: the factors in which they differ, and the cell's id where those agree."""
    factors = varying(rows)
    named = [called(row, factors) or str(row["id"]) for row in rows]
    counts = Counter(named)
    return [name if counts[name] == 1 else f"{name} ({row['id']})" for name, row in zip(named, rows, strict=True)]


def called(row: Mapping[str, Any], factors: Sequence[str]) -> str:
    """The row's values of these factors, in words."""
    return " · ".join(f"repeat {row[name]}" if name == "repeat" else str(row[name])
                      for name in factors if row.get(name) is not None)


def _product(settings: RunSettings, gives_chunks: bool) -> Iterator[Cell]:
    product = itertools.product(
        range(settings.repeats), settings.models, settings.conditions, settings.perturbations, settings.show,
        settings.formats, settings.retriever, settings.rules, settings.retrieval, settings.reasoning)
    for repeat, model, condition, perturbation, show, format, retriever, rules, retrieval, reasoning in product:
        found: str | None = None
        if condition == "retrieved" and retrieval != "none":
            found = retriever.name
        elif condition == "evidence" and not gives_chunks:
            found = _first_over(settings, retriever)
        placed = condition != "retrieved"
        yield Cell(
            model, None if placed else retrieval, found, reasoning,
            "closed-book" if condition == "closed-book" else rules, condition,
            None if condition == "closed-book" or perturbation == "none" else perturbation, show,
            format if found else None, settings.benchmark.kind, repeat)


def _first_over(settings: RunSettings, retriever: Dense) -> str:
    """The first retriever over the same index."""
    return next(one.name for one in settings.retriever
                if (one.index, one.build) == (retriever.index, retriever.build))
