"""Cells: the combinations of a run's factors, as data, and what tables call them."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from ragbed.documents.types import Format, digest
from ragbed.experiments.conditions import Condition, Perturbation
from ragbed.strategies.types import AnswerFormat, Framing, Rules

Show = Literal["question", "sub_questions"]
# In the order in which tables show them.
FACTORS = ("benchmark", "model", "reasoning", "retrieval", "history", "retriever", "chunker", "embedder", "rules",
           "condition", "perturbation", "variation", "show", "format", "framing", "answer_format", "prompt_variant",
           "repeat", "seed")
PIPELINE, OWN = "pipeline", "own"  # the reasoning of a pipeline, and the retrieval of one that retrieves by itself
REPLICATED = ("repeat", "seed")  # which ask the same again

_SAID = (*REPLICATED, "framing", "prompt_variant")  # whose values alone say too little

PART = " · "  # between the values in what a cell is called
_OF_PROMPTS = ("framing", "answer_format", "prompt_variant")  # None in cells without such a prompt
_SEARCHED = ("retrieval", "retriever", "chunker", "embedder", "format")


@dataclass(frozen=True)
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
        history: how a question of a conversation is made to stand by itself; None where none has turns before it.
        variation: how the question is put (`experiments.query_variations`); None where it is as asked, whatever the
            settings say.
        prompt_variant: from 1; None if the run uses the first only, or the strategy has one.
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

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Cell:
        """Return the cell of a row of a summary."""
        return cls(**{name: row[name] for name in FACTORS if name in row})

    @cached_property
    def id(self) -> str:
        """Short hash of the factors, equal in every run."""
        return digest(*(f"{name}={value}" for name, value in self.levels.items()))[:12]

    @property
    def finder(self) -> str | None:
        """The name of what finds the evidence: of the retriever over chunks of one making."""
        return finder_name(self.retriever, self.chunker, self.embedder)

    @property
    def levels(self) -> dict[str, Any]:
        """Return the factors by name, as in a summary. History, variation and prompt variant are omitted if None."""
        return {name: value for name, value in asdict(self).items()
                if name not in ("history", "variation", "prompt_variant") or value is not None}

    @property
    def searched(self) -> bool:
        """Whether the evidence is searched for, rather than placed."""
        return self.condition == "retrieved" and self.retriever is not None

    @property
    def ranked(self) -> bool:
        """Whether its evidence comes in an order of rank: what is searched for, here or by a pipeline."""
        return self.searched or self.retrieval == OWN

    @property
    def change(self) -> Perturbation:
        """What is done to the evidence."""
        return Perturbation.parse(self.perturbation or "none")

    @property
    def separators(self) -> bool:
        """Whether documents are shown with numbers."""
        return not self.change.unnumbered


def finder_name(retriever: str | None, chunker: str | None, embedder: str | None) -> str | None:
    """Return what a retriever over chunks of one making is called; None where nothing is searched."""
    return None if retriever is None else PART.join(filter(None, (retriever, chunker, embedder)))


def varying(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the factors in which the rows of a summary differ; where they differ in none, `reasoning`, or the `model`
    that is a pipeline."""
    alone = "model" if any(row.get("reasoning") == PIPELINE for row in rows) else "reasoning"
    found = [name for name in FACTORS if len({str(row.get(name)) for row in rows}) > 1]
    return [name for name in found if name not in _OF_PROMPTS or len(_values(rows, name)) > 1] or [alone]


def telling(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the factors of `varying` that tell rows apart by themselves: not those that follow from the condition."""
    factors = varying(rows)
    if "condition" not in factors:
        return factors
    # closed-book has rules of its own, which its condition says; only what searches has what it searches with
    rules = {row.get("rules") for row in rows if row["condition"] != "closed-book"}
    return [name for name in factors if (name != "rules" or len(rules) > 1)
            and (name not in _SEARCHED or len(_values(rows, name)) > 1)]


def labels(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the rows of a summary are called: by the factors that tell them apart, with the id where these agree;
    by the id alone where nothing else is known."""
    factors, rows = telling(rows), shortened(rows)
    named = [called(row, factors) or (f"no {factors[0]}" if factors[0] in row else str(row["id"])) for row in rows]
    counts = Counter(named)
    return [name if counts[name] == 1 else f"{name} ({row['id']})" for name, row in zip(named, rows, strict=True)]


def shortened(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows with their models' short names."""
    names = short_names(row["model"] for row in rows if row.get("model"))
    return [{**row, "model": names[row["model"]]} if row.get("model") else row for row in rows]


def short_names(models: Iterable[str]) -> dict[str, str]:
    """Return the short name of each model; its own where another one's is the same."""
    names = {model: short_name(model) for model in models}
    counts = Counter(names.values())
    return {model: name if counts[name] == 1 else model for model, name in names.items()}


def short_name(model: str) -> str:
    """Return a model without where it is: `m` of `http://host/v1#m`, of `openai:m` and of `gguf:folder/m.gguf`."""
    if "#" in model:
        return model.rpartition("#")[2] or model
    if model.startswith("gguf:"):
        return re.split(r"[/\\]", model)[-1].removesuffix(".gguf") or model
    return model.removeprefix("openai:").removeprefix("pipeline:") or model


def _values(rows: Sequence[Mapping[str, Any]], name: str) -> set[str]:
    return {str(value) for row in rows if (value := row.get(name)) is not None}


def called(row: Mapping[str, Any], factors: Sequence[str]) -> str:
    """Return the row's values of these factors, in words."""
    return PART.join(f"{name.replace('_', ' ')} {value}" if name in _SAID else str(value)
                     for name in factors if (value := row.get(name)) is not None)
