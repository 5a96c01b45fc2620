"""Cells, the combinations of a run's factors, and their labels in tables."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from ragbed.documents.types import Format, digest
from ragbed.experiments.conditions import Condition, Perturbation
from ragbed.strategies.reading import Language
from ragbed.strategies.types import AnswerFormat, Framing, Rules

Show = Literal["question", "sub_questions"]
# In the order of table columns.
FACTORS = ("benchmark", "model", "reasoning", "retrieval", "history", "retriever", "chunker", "embedder", "rules",
           "condition", "perturbation", "variation", "show", "format", "framing", "headers", "answer_format",
           "prompt_variant", "language", "prompts", "repeat", "seed")
PIPELINE, OWN = "pipeline", "own"  # level of `reasoning` for pipelines, and of `retrieval` if they retrieve themselves
REPLICATED = ("repeat", "seed")  # factors that repeat a question without changing it
SEPARATOR = " · "  # separates the values in a cell's label

# Labels name these, as their values alone are unclear.
_NAMED = (*REPLICATED, "framing", "headers", "prompt_variant", "language", "prompts")
# None if they do not affect the prompt.
_OF_PROMPTS = ("framing", "headers", "answer_format", "prompt_variant", "language", "prompts")
_SEARCHED = ("retrieval", "retriever", "chunker", "embedder", "format")


@dataclass(frozen=True)
class Cell:
    """One combination of the factors. A factor without effect under the cell's condition is None.

    Attributes:
        retrieval: None if the condition places the evidence without a search.
        retriever: the retriever's name in the settings. If the condition places evidence from an index, this is the
            first retriever that searches the index.
        perturbation: the change to the evidence, without parts that have no effect under the condition. If a table
            replaces the documents, the cell has the first condition that shows documents.
        format: format of indexed chunks. The questions' own chunks keep their format.
        repeat: from 0.
        seed: None if the run has only one seed, or nothing is random.
        chunker, embedder: None if the run compares none, or they have no effect.
        framing: None if no document is shown.
        headers: whether prompts name each document, section and page; None if no prompt of the run does.
        answer_format: None if no answer is requested.
        history: None if no question has earlier turns.
        variation: None if questions are unchanged.
        language: of the sentence that refuses; None if the run states it only in English, or prompts offer no refusal.
        prompts: name of the folder whose texts replace ragbed's prompts; None if the run replaces none.
        prompt_variant: from 1; None if the run uses only the first, or the strategy has only one.
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
    history: str | None = None
    variation: str | None = None
    prompt_variant: int | None = None
    language: Language | None = None
    prompts: str | None = None
    headers: bool | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Cell:
        """Return the cell that a row of a summary describes."""
        return cls(**{name: row[name] for name in FACTORS if name in row})

    @cached_property
    def id(self) -> str:
        """Return a short hash of the factors. The same cell has the same id in every run."""
        return digest(*(f"{name}={value}" for name, value in self.levels.items()))[:12]

    @property
    def finder(self) -> str | None:
        """Return the name of the retriever with its chunker and embedder; None if nothing is searched."""
        return finder_name(self.retriever, self.chunker, self.embedder)

    @property
    def levels(self) -> dict[str, Any]:
        """Return each factor's level by name, as in a summary: without history, variation, prompt variant, language,
        prompts and headers if None."""
        return {name: value for name, value in asdict(self).items()
                if name not in ("history", "variation", "prompt_variant", "language", "prompts", "headers")
                or value is not None}

    @property
    def searched(self) -> bool:
        """Return whether the evidence comes from a search rather than being placed."""
        return self.condition == "retrieved" and self.retriever is not None

    @property
    def ranked(self) -> bool:
        """Return whether the evidence is ranked, because ragbed or a pipeline searched for it."""
        return self.searched or self.retrieval == OWN

    @property
    def change(self) -> Perturbation:
        """Return the perturbation of the evidence."""
        return Perturbation.parse(self.perturbation or "none")

    @property
    def separators(self) -> bool:
        """Return whether prompts number the documents."""
        return not self.change.unnumbered


def finder_name(retriever: str | None, chunker: str | None, embedder: str | None) -> str | None:
    """Return the name of a retriever with its chunker and embedder; None without a retriever."""
    return None if retriever is None else SEPARATOR.join(filter(None, (retriever, chunker, embedder)))


def varying_factors(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the factors in which rows of a summary differ. The default is `reasoning` (`model` for pipelines)."""
    alone = "model" if any(row.get("reasoning") == PIPELINE for row in rows) else "reasoning"
    found = [name for name in FACTORS if len({str(row.get(name)) for row in rows}) > 1]
    return [name for name in found if name not in _OF_PROMPTS or len(_values(rows, name)) > 1] or [alone]


def distinguishing_factors(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the factors that differ, except those that follow from the condition."""
    factors = varying_factors(rows)
    if "condition" not in factors:
        return factors
    # The condition closed-book determines the rules, and only cells that search have a retriever.
    rules = {row.get("rules") for row in rows if row["condition"] != "closed-book"}
    return [name for name in factors if (name != "rules" or len(rules) > 1)
            and (name not in _SEARCHED or len(_values(rows, name)) > 1)]


def label_rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a label for each row of a summary, made of the factors that differ, with the id if labels are equal."""
    factors, rows = distinguishing_factors(rows), shorten_models(rows)
    unnamed = {"variation": "as_asked", "history": "no history"}  # of levels that rows leave out
    named = [describe_factors(row, factors) or (
        f"no {factors[0]}" if factors[0] in row else unnamed.get(factors[0], str(row["id"]))) for row in rows]
    counts = Counter(named)
    return [name if counts[name] == 1 else f"{name} ({row['id']})" for name, row in zip(named, rows, strict=True)]


def shorten_models(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows with short model names."""
    names = short_names(row["model"] for row in rows if row.get("model"))
    return [{**row, "model": names[row["model"]]} if row.get("model") else row for row in rows]


def short_names(models: Iterable[str]) -> dict[str, str]:
    """Return a short name for each model, or the full name if two short ones would be equal."""
    names = {model: short_name(model) for model in models}
    counts = Counter(names.values())
    return {model: name if counts[name] == 1 else model for model, name in names.items()}


def short_name(model: str) -> str:
    """Return a model's name without provider, address or folder: `m` for `http://host/v1#m`, `openai:m` and
    `gguf:folder/m.gguf`."""
    if "#" in model:
        return model.rpartition("#")[2] or model
    if model.startswith("gguf:"):
        return re.split(r"[/\\]", model)[-1].removesuffix(".gguf") or model
    return model.removeprefix("openai:").removeprefix("pipeline:") or model


def _values(rows: Sequence[Mapping[str, Any]], name: str) -> set[str]:
    return {str(value) for row in rows if (value := row.get(name)) is not None}


def describe_factors(row: Mapping[str, Any], factors: Sequence[str]) -> str:
    """Return the row's values of these factors as text."""
    return SEPARATOR.join(f"{name.replace('_', ' ')} {value}" if name in _NAMED else str(value)
                     for name in factors if (value := row.get(name)) is not None)
