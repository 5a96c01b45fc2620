"""Cells: the combinations of a run's factors, each run once however often the product names it."""
from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from documents.types import Format, digest
from experiments.evidence.effects import shown_of, with_effect
from experiments.question import Benchmark
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
        retriever: the name of the retriever's settings; for what is placed out of an index, the first that has it.
        perturbation: without the parts that change nothing under the condition. Where the table stands in place of
            the documents, whichever they were, the condition is the first that shows any.
        format: of what comes out of an index; chunks that questions bring have their own.
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
    def searched(self) -> bool:
        """Whether the evidence is searched for, rather than placed."""
        return self.condition == "retrieved" and self.retriever is not None

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


def cells_of(settings: RunSettings, benchmark: Benchmark) -> list[Cell]:
    """The distinct cells, in the order of the settings; the reasoning strategy varies fastest."""
    return list(dict.fromkeys(_product(settings, benchmark)))


def combinations(settings: RunSettings) -> int:
    """How many combinations the settings name; those that are one cell by construction are counted each."""
    factors: tuple[Sequence[object], ...] = (
        settings.models, settings.conditions, settings.perturbations, settings.show, settings.formats,
        settings.retriever, settings.rules, settings.retrieval, settings.reasoning)
    return settings.repeats * math.prod(map(len, factors))


def varying(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The factors in which the rows of a summary differ; `reasoning` where they differ in none."""
    return [name for name in FACTORS if len({str(row.get(name)) for row in rows}) > 1] or ["reasoning"]


def labels(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the rows of a summary are called: the factors in which they differ, and the cell's id where those agree."""
    factors = varying(rows)
    if "condition" in factors:  # closed-book has rules of its own, which its condition says
        rules = {row.get("rules") for row in rows if row["condition"] != "closed-book"}
        factors = [name for name in factors if name != "rules" or len(rules) > 1]
    named = [called(row, factors) or f"no {factors[0]}" for row in rows]
    counts = Counter(named)
    return [name if counts[name] == 1 else f"{name} ({row['id']})" for name, row in zip(named, rows, strict=True)]


def called(row: Mapping[str, Any], factors: Sequence[str]) -> str:
    """The row's values of these factors, in words."""
    return " · ".join(f"repeat {row[name]}" if name == "repeat" else str(row[name])
                      for name in factors if row.get(name) is not None)


def _product(settings: RunSettings, benchmark: Benchmark) -> Iterator[Cell]:
    shown = [shown_of(show, settings.sub_answers, benchmark) for show in settings.show]
    product = itertools.product(
        range(settings.repeats), settings.models, settings.conditions, settings.perturbations, shown,
        settings.formats, settings.retriever, settings.rules, settings.retrieval, settings.reasoning)
    for repeat, model, condition, perturbation, show, format, retriever, rules, retrieval, reasoning in product:
        change = with_effect(Perturbation.parse(perturbation), condition, retrieval, benchmark)
        if change.table:
            condition = next(one for one in settings.conditions if one != "closed-book")
        found = None if change.table else _found(condition, retrieval, retriever, settings, benchmark)
        searched = condition == "retrieved" and not change.table
        yield Cell(
            model, retrieval if searched else None, found, reasoning,
            "closed-book" if condition == "closed-book" else rules, condition,
            None if change == Perturbation() else str(change), show,
            format if found and has_index(retriever, benchmark) else None, settings.benchmark.kind, repeat)


def has_index(retriever: Dense, benchmark: Benchmark) -> bool:
    """Whether the retriever searches an index, rather than the chunks that the questions bring."""
    return retriever.index is not None or benchmark.corpus is not None


def _found(condition: Condition, retrieval: str, retriever: Dense, settings: RunSettings,
           benchmark: Benchmark) -> str | None:
    """The retriever that the evidence comes from; None where the questions bring it, or there is none."""
    if condition == "retrieved":
        return retriever.name if retrieval != "none" else None
    brought = {"evidence": benchmark.gives_chunks, "full": benchmark.has_whole}.get(condition, True)
    return None if brought else _first_over(settings, retriever)


def _first_over(settings: RunSettings, retriever: Dense) -> str:
    """The first retriever over the same index."""
    return next(one.name for one in settings.retriever
                if (one.index, one.build) == (retriever.index, retriever.build))
