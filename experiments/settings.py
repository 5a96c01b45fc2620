"""Settings of a run: a YAML file, closed and typed. A scalar stands for a list of one."""
from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from agents.catalogue import DEFAULT
from agents.settings import Limits, ModelSettings
from documents.types import Format
from experiments.benchmarks import BENCHMARKS, BenchmarkSettings
from experiments.budget import Budget
from experiments.judges import JudgeSettings, Lexical
from experiments.metrics.scored import Scoring
from retrieval.conditions import Condition
from retrieval.perturbations import Perturbation
from retrieval.settings import IndexSettings
from strategies.catalogue import reasoning, retrieval
from strategies.types import Layout, Rules


def _listed(value: Any) -> Any:
    if value == []:
        raise ValueError("an empty list; name at least one, or leave the key out")
    return value if isinstance(value, list) else [value]


def _distinct(values: list[Any]) -> list[Any]:
    if len(values) != len({str(value) for value in values}):
        raise ValueError("names a value twice")
    return values


def _judge_by_name(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return {"kind": "lexical"} if value == "lexical" else {"kind": "model", "model": value}


def _known_reasoning(name: str) -> str:
    reasoning(name)
    return name


def _known_retrieval(name: str) -> str:
    retrieval(name)
    return name


def _no_condition(rules: list[Rules]) -> list[Rules]:
    if "closed-book" in rules:
        raise ValueError("closed-book rules come with the condition of that name; set conditions: closed-book")
    return rules


def _folder_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}", name):
        raise ValueError(f"{name!r} cannot name the run's folder; give a `name` of letters, digits and . _ - only")
    return name


def _known_perturbation(name: str) -> str:
    return str(Perturbation.parse(name))


ReasoningName = Annotated[str, AfterValidator(_known_reasoning)]
RetrievalName = Annotated[str, AfterValidator(_known_retrieval)]
PerturbationName = Annotated[str, AfterValidator(_known_perturbation)]
Show = Literal["question", "sub_questions"]
SubAnswers = Literal["asked", "in_prompt", "none"]


def _without_nul(path: Path) -> Path:
    if "\0" in str(path):
        raise ValueError("a path cannot hold the character NUL")
    return path


Place = Annotated[Path, AfterValidator(_without_nul)]


class Closed(BaseModel):
    """Unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Dense(Closed):
    """Dense retrieval.

    Attributes:
        name: what tables call it; by default `dense@k`.
        k: chunks per search.
        index: an index folder made by `ragbed index`; None searches the benchmark's corpus, for which an index is
            built, or else chunks that its questions bring.
        over: which chunks, where the benchmark has no corpus: `own`, those of the question that is asked (and those
            that all share, where it has none), or `all`, those of all its questions.
        build: how that index is built; of chunks that the questions bring, only its `embedder` counts.
    """

    kind: Literal["dense"] = "dense"
    name: str = ""
    k: int = Field(default=5, ge=1, le=1000)
    index: Place | None = None
    over: Literal["own", "all"] = "own"
    build: IndexSettings = IndexSettings()

    @model_validator(mode="before")
    @classmethod
    def _named(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and not fields.get("name"):
            return {**fields, "name": f"dense@{fields.get('k', 5)}"}
        return fields


Many = BeforeValidator(_listed)


class RunSettings(Closed):
    """One experiment. Lists are factors: their product is the set of cells.

    What is left out is as the benchmark's paper has it, else as below.

    Attributes:
        rules: what the prompts demand of an answer; `ragbed list rules` says what each does.
        show: what of the question a prompt shows: the question alone, or its sub-questions too.
        brief: whether the rules ask for an answer of a few words, as exact match needs it.
        sub_answers: of a benchmark that scores sub-questions: each asked as a question of its own over the same
            evidence, all asked for in the one reply, or none.
        filled: what takes the place of `#1` in a sub-question: the model's own answer to the first, or the gold one.
        exemplars: a JSON Lines file of worked examples that every prompt shows after the documents; none by default.
    """

    name: Annotated[str, AfterValidator(_folder_name)]
    out: Place = Path("runs")
    benchmark: BenchmarkSettings
    models: Annotated[list[str], Many, AfterValidator(_distinct)] = [DEFAULT]
    reasoning: Annotated[list[ReasoningName], Many, AfterValidator(_distinct)] = ["direct"]
    retrieval: Annotated[list[RetrievalName], Many, AfterValidator(_distinct)] = ["once"]
    retriever: Annotated[list[Dense], Many] = [Dense(name="dense@5")]
    rules: Annotated[list[Rules], Many, AfterValidator(_distinct), AfterValidator(_no_condition)] = ["grounded"]
    conditions: Annotated[list[Condition], Many, AfterValidator(_distinct)] = ["given"]
    perturbations: Annotated[list[PerturbationName], Many, AfterValidator(_distinct)] = ["none"]
    show: Annotated[list[Show], Many, AfterValidator(_distinct)] = ["question"]
    formats: Annotated[list[Format], Many, AfterValidator(_distinct)] = ["plain"]
    layout: Layout = "documents_first"
    brief: bool = False
    sub_answers: SubAnswers = "asked"
    filled: Literal["own", "gold"] = "own"
    exemplars: Place | None = None
    repeats: int = Field(default=1, ge=1, le=1000)
    judge: Annotated[JudgeSettings, BeforeValidator(_judge_by_name)] = Lexical()
    scoring: Scoring = "corrected"
    seed: int = 0
    limits: Limits = Limits()
    calls: ModelSettings = ModelSettings()
    budget: Budget = Budget()
    concurrency: int = Field(default=8, ge=1, le=1024)

    @model_validator(mode="before")
    @classmethod
    def _as_the_paper(cls, fields: Any) -> Any:
        kind = fields["benchmark"].get("kind") if isinstance(fields, dict) and isinstance(
            fields.get("benchmark"), dict) else None
        known = BENCHMARKS.get(kind) if isinstance(kind, str) else None
        if known is None:
            return fields
        fields = {**known.about.settings, **fields}
        implied = known.about.as_published if fields.get("scoring") == "as-published" else {}
        return {**fields, "benchmark": {**implied, **fields["benchmark"]}}

    @model_validator(mode="after")
    def _retrievers_differ(self) -> RunSettings:
        name, count = Counter(one.name for one in self.retriever).most_common(1)[0]
        if count > 1:
            raise ValueError(f"two retrievers are called {name}; give each a `name` of its own")
        return self

    @model_validator(mode="after")
    def _filled_where_asked(self) -> RunSettings:
        if self.filled == "gold" and self.sub_answers != "asked":
            raise ValueError("filled: gold is for sub-questions that are asked one by one; set sub_answers: asked")
        return self

    @property
    def folder(self) -> Path:
        return self.out / self.name

    def resolved(self) -> str:
        """Every setting, defaults included, as YAML."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
