"""Cells: the combinations of a run's factors, each run once however often the product names it."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from documents.types import Format, digest
from experiments.question import Benchmark
from experiments.settings import RunSettings
from experiments.settings.equal_cells import drawn, may_draw, shown_of, with_effect
from experiments.settings.factors import Show
from experiments.settings.finders import finder_name
from experiments.settings.matrix import Combination, combinations_of, retrievers_of
from experiments.settings.retrievers import RetrieverFactor
from experiments.settings.strategies import strategies_of
from retrieval.conditions import Condition, Perturbation
from strategies.catalogue import SEARCH_ONLY
from strategies.settings.choosing import Strategy
from strategies.settings.plugins import FAMILIES
from strategies.types import AnswerFormat, Framing, Rules

# In the order in which tables show them.
FACTORS = ("benchmark", "model", "reasoning", "retrieval", "retriever", "chunker", "embedder", "rules", "condition",
           "perturbation", "show", "format", "framing", "answer_format", "repeat", "seed")
REPLICATED = ("repeat", "seed")  # which ask the same again

_SAID = (*REPLICATED, "framing")  # whose values alone say too little

PART = " · "  # between the values in what a cell is called
_OF_PROMPTS = ("framing", "answer_format")  # which some cells have none of: not what tells them from others
_SEARCHED = ("retrieval", "retriever", "chunker", "embedder", "format")
# Factors that runs from before had none of, and what their cells have.
_LATER: Mapping[str, Any] = {"seed": None, "chunker": None, "embedder": None, "framing": "none",
                             "answer_format": "tags"}


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
        seed: of what is drawn; None where the run has one seed, and where nothing is drawn.
        framing: None where no document is shown; `answer_format` where no answer is asked for.
        chunker: how what is searched is cut; None where the run compares none, or it has no effect.
        embedder: what embeds it, likewise.
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
    seed: int | None = None
    chunker: str | None = None
    embedder: str | None = None
    framing: Framing | None = "none"
    answer_format: AnswerFormat | None = "tags"

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Cell:
        """The cell of a row of a summary, which may be of a run from before some factors were there."""
        known: dict[str, Any] = {name: level(row, name) if name in _LATER else row[name] for name in FACTORS}
        return cls(**known)

    @property
    def id(self) -> str:
        """Short hash of the factors, equal in every run."""
        return _id(self)

    @property
    def finder(self) -> str | None:
        """The name of what finds the evidence: of the retriever over chunks of one making."""
        return finder_name(self.retriever, self.chunker, self.embedder)

    @property
    def levels(self) -> dict[str, Any]:
        """The factors by name, as a summary has them; without those that summaries from before had none of, where
        they are as they were then."""
        return {name: value for name, value in asdict(self).items()
                if name == "seed" or name not in _LATER or value not in (None, _LATER[name])}

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
    said = cell.levels
    if cell.seed is None:  # as it was before seeds were a factor, so that records keep their cell
        del said["seed"]
    return digest(*(f"{name}={value}" for name, value in said.items()))[:12]


def cells_of(settings: RunSettings, benchmark: Benchmark) -> list[Cell]:
    """The distinct cells, in the order of the settings; the reasoning strategy varies fastest."""
    return list(dict.fromkeys(_Maker(settings, benchmark).cells()))


def on_cells(settings: RunSettings, cells: Sequence[Cell]) -> list[str]:
    """That some combinations are one cell, and what the seeds are of."""
    combinations = combinations_of(settings)
    notes = [] if len(combinations) == len(cells) else [
        f"{len(combinations)} combinations of the settings are {len(cells)} cells: those that differ only in what has "
        "no effect under their condition are one cell, run once."]
    if len({one.seed for one in combinations}) > 1 and all(cell.seed is None for cell in cells):
        notes.append("The seeds change nothing: neither a perturbation nor a strategy draws anything. It is repeats "
                     "that ask again.")
    known = strategies_of(settings, "reasoning") | strategies_of(settings, "retrieval")
    unknown = dict.fromkeys(name for cell in cells if cell.seed is not None
                            for name in (cell.reasoning, cell.retrieval) if name and may_draw(known[name]))
    return notes + ([f"Each seed is a cell of its own under {' and '.join(unknown)}: whether a strategy that is none "
                     "of ragbed's draws anything is not known."] if unknown else [])


def level(row: Mapping[str, Any], factor: str) -> Any:
    """The value of a factor in a row of a summary; None where it has no effect. A row that does not name one that runs
    from before had none of is as theirs were."""
    if factor in row:
        return row[factor]
    asked = row.get("reasoning") != SEARCH_ONLY
    effect = {"framing": asked and row.get("condition") != "closed-book", "answer_format": asked}
    return _LATER.get(factor) if effect.get(factor, True) else None


def varying(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The factors in which the rows of a summary differ; `reasoning` where they differ in none."""
    found = [name for name in FACTORS if len({str(level(row, name)) for row in rows}) > 1]
    return [name for name in found if name not in _OF_PROMPTS or len(_values(rows, name)) > 1] or ["reasoning"]


def telling(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The factors of `varying` that tell rows apart by themselves: not those that follow from the condition."""
    factors = varying(rows)
    if "condition" not in factors:
        return factors
    # closed-book has rules of its own, which its condition says; only what searches has what it searches with
    rules = {row.get("rules") for row in rows if row["condition"] != "closed-book"}
    return [name for name in factors if (name != "rules" or len(rules) > 1)
            and (name not in _SEARCHED or len(_values(rows, name)) > 1)]


def labels(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the rows of a summary are called: by the factors that tell them apart, with the id where these agree;
    by the id alone where nothing else is known."""
    factors, rows = telling(rows), shortened(rows)
    named = [called(row, factors) or (f"no {factors[0]}" if factors[0] in row else str(row["id"])) for row in rows]
    counts = Counter(named)
    return [name if counts[name] == 1 else f"{name} ({row['id']})" for name, row in zip(named, rows, strict=True)]


def shortened(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows with their models' short names."""
    names = short_names(row["model"] for row in rows if row.get("model"))
    return [{**row, "model": names[row["model"]]} if row.get("model") else row for row in rows]


def short_names(models: Iterable[str]) -> dict[str, str]:
    """The short name of each model; its own where another one's is the same."""
    names = {model: short_name(model) for model in models}
    counts = Counter(names.values())
    return {model: name if counts[name] == 1 else model for model, name in names.items()}


def short_name(model: str) -> str:
    """A model without where it is: `m` of `http://host/v1#m`, of `openai:m` and of `gguf:folder/m.gguf`."""
    if "#" in model:
        return model.rpartition("#")[2] or model
    if model.startswith("gguf:"):
        return re.split(r"[/\\]", model)[-1].removesuffix(".gguf") or model
    return model.removeprefix("openai:") or model


def _values(rows: Sequence[Mapping[str, Any]], name: str) -> set[str]:
    return {str(value) for row in rows if (value := level(row, name)) is not None}


def called(row: Mapping[str, Any], factors: Sequence[str]) -> str:
    """The row's values of these factors, in words."""
    return PART.join(f"{name} {value}" if name in _SAID else str(value)
                     for name in factors if (value := level(row, name)) is not None)


def has_index(retriever: RetrieverFactor, benchmark: Benchmark) -> bool:
    """Whether the retriever searches an index, rather than the chunks that the questions bring."""
    return retriever.index is not None or benchmark.corpus is not None


class _Maker:
    """Makes the cells of combinations."""

    def __init__(self, settings: RunSettings, benchmark: Benchmark) -> None:
        self._settings, self._benchmark = settings, benchmark
        self._combinations = combinations_of(settings)
        named = {one.name: one for one in retrievers_of(settings)}
        self._retrievers = {name: named[name] for name in dict.fromkeys(one.retriever for one in self._combinations)}
        self._shows = next((one.condition for one in self._combinations if one.condition != "closed-book"), None)
        self._shown = {show: shown_of(show, settings.sub_answers, benchmark)
                       for show in dict.fromkeys(one.show for one in self._combinations)}
        self._seeded = len({one.seed for one in self._combinations}) > 1
        self._reasoning, self._retrieval = (strategies_of(settings, family) for family in FAMILIES)

    def cells(self) -> Iterator[Cell]:
        """The cell of each combination."""
        return map(self._cell, self._combinations)

    def _cell(self, one: Combination) -> Cell:
        benchmark, condition = self._benchmark, one.condition
        change = with_effect(Perturbation.parse(one.perturbation), condition, one.retrieval, benchmark)
        if change.table and self._shows is not None:
            condition = self._shows
        found = None if change.table else self._found(one)
        searched = condition == "retrieved" and not change.table
        seeded = self._seeded and drawn(change, *self._strategies(one, searched))
        asked = one.reasoning != SEARCH_ONLY
        return Cell(
            one.model, one.retrieval if searched else None, found, one.reasoning,
            "closed-book" if condition == "closed-book" else one.rules, condition,
            None if change == Perturbation() else str(change),
            self._shown[one.show],
            one.format if found and has_index(self._retrievers[one.retriever], benchmark) else None,
            self._settings.benchmark.kind, one.repeat, one.seed if seeded else None, *self._made(one, found),
            one.framing if asked and condition != "closed-book" else None, one.answer_format if asked else None)

    def _strategies(self, one: Combination, searched: bool) -> list[Strategy]:
        return [self._reasoning[one.reasoning], *([self._retrieval[one.retrieval]] if searched else [])]

    def _made(self, one: Combination, found: str | None) -> tuple[str | None, str | None]:
        """How what is found is cut and embedded, as far as the run decides it."""
        retriever = self._retrievers[one.retriever]
        if found is None or retriever.index is not None:
            return None, None
        return one.chunker, one.embedder if retriever.embeds else None

    def _found(self, one: Combination) -> str | None:
        """The retriever that the evidence comes from; None where the questions bring it, or there is none."""
        if one.condition == "retrieved":
            return one.retriever if one.retrieval != "none" else None
        benchmark = self._benchmark
        brought = {"gold": benchmark.gives_chunks, "full": benchmark.has_whole}.get(one.condition, True)
        return None if brought else self._first_over(self._retrievers[one.retriever])

    def _first_over(self, retriever: RetrieverFactor) -> str:
        """The first retriever over the same index."""
        return next(name for name, one in self._retrievers.items()
                    if (one.index, one.build) == (retriever.index, retriever.build))
