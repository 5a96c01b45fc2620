"""Settings of a run: a YAML file, closed and typed. A scalar stands for a list of one."""
from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    create_model,
    model_validator,
)

from ragbed.agents.catalogue import DEFAULT
from ragbed.agents.settings import Limits, ModelSettings
from ragbed.experiments.benchmarks import BENCHMARKS, BenchmarkSettings
from ragbed.experiments.judges import JudgeSettings, Lexical, ModelJudge, ModelSupport, SupportSettings
from ragbed.experiments.judges.relevance import Grader
from ragbed.experiments.metrics import Scoring
from ragbed.experiments.question import Question, Scheme
from ragbed.experiments.settings import matrix
from ragbed.experiments.settings.matrix import Many, Matrix
from ragbed.experiments.settings.pipelines import PipelineSettings, check_pipelines, pipeline_union
from ragbed.experiments.settings.retrievers import (
    AnyRetriever,
    Place,
    check_searching,
    searching_scheme,
    told_apart,
    with_defaults,
)
from ragbed.experiments.settings.spending import Budget
from ragbed.guests import loaded
from ragbed.retrieval.rerankers.reranker import judges_of
from ragbed.strategies.catalogue import SEARCH_ONLY
from ragbed.strategies.settings.choosing import Strategy
from ragbed.strategies.types import Layout


def _folder_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}", name):
        raise ValueError(f"{name!r} cannot name the run's folder; give a `name` of letters, digits and . _ - only")
    return name


def _scalar_of_one(values: list[int]) -> list[int] | int:
    return values[0] if len(values) == 1 else values


def _given_keys(entries: list[Matrix]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.model_dump(mode="json").items() if value is not None}
            for entry in entries]


def _or_several(schema: dict[str, Any]) -> None:
    """A file may name several benchmarks, each a run of its own."""
    one = dict(schema)
    schema.clear()
    schema.update({"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]})


class _Part(Matrix):
    """A part of the matrix: the combinations that have one of the values under every key that is given.

    Attributes:
        benchmark: kinds of benchmark that the entry is for, in a file with several; by default all.
        retriever: names.
    """

    benchmark: matrix.Names | None = None
    models: matrix.Models | None = None
    reasoning: matrix.Reasonings | None = None
    retrieval: matrix.Retrievals | None = None
    history: matrix.Histories | None = None
    rules: matrix.RulesNames | None = None
    conditions: matrix.Conditions | None = None
    perturbations: matrix.Perturbations | None = None
    questions: matrix.Variations | None = None
    show: matrix.Shows | None = None
    formats: matrix.Formats | None = None
    answer_formats: matrix.AnswerFormats | None = None
    framings: matrix.Framings | None = None
    prompt_variants: matrix.PromptVariants | None = None
    seed: matrix.Seeds | None = None


class Excluded(_Part):
    """Combinations that are left out: those that agree with every key. Each value is one of the run's.

    Attributes:
        reasoning, retrieval, history, chunkers, embedders: as tables call them.
    """

    reasoning: matrix.Names | None = None  # type: ignore[assignment]
    retrieval: matrix.Names | None = None  # type: ignore[assignment]
    history: matrix.Names | None = None  # type: ignore[assignment]
    retriever: matrix.Names | None = None
    chunkers: matrix.Names | None = None
    embedders: matrix.Names | None = None


NameOrSettings = Annotated[Annotated[str, Tag("name")] | Annotated[AnyRetriever, Tag("settings")], Discriminator(
    lambda value: "name" if isinstance(value, str) else "settings")]


class Included(_Part):
    """A matrix that is added to what exclusion leaves. What is left out is as the run has it.

    Attributes:
        retriever: names of the run's, or settings of others.
        repeats: how often each of these is asked.
    """

    retriever: Annotated[list[NameOrSettings], Many, matrix.Distinct] | None = None
    repeats: matrix.Repeats | None = None


SubAnswers = Literal["asked", "in_prompt", "none"]


def _guest_fields() -> dict[str, Any]:
    """Return the settings that guests add, as fields that are None unless they are given."""
    fields: dict[str, Any] = {}
    for name, kind in loaded("setting").items():
        is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
        value = kind if is_model else Annotated[Any, AfterValidator(kind)]
        fields[name] = value | None if is_model else value, Field(default=None, exclude_if=operator.not_)
    return fields


if TYPE_CHECKING:
    Pipeline: TypeAlias = PipelineSettings
    _MatrixWithGuests = Matrix
else:
    Pipeline = pipeline_union()
    _MatrixWithGuests = create_model("_MatrixWithGuests", __base__=Matrix, **_guest_fields())


class RunSettings(_MatrixWithGuests):
    """One experiment. Lists are factors: their product, less what is excluded and with what is included, is the set
    of cells.

    What is left out is as the benchmark's paper has it, else as below.

    Attributes:
        benchmark: a file of settings may name a list of them: each is a run of its own, `NAME-KIND`, with what its own
            paper has for what is left out. Figures of different benchmarks are never averaged.
        models: none, where only pipelines are asked, as it is where these are given and neither models nor reasoning.
        pipelines: of others, each with the questions of the run beside its strategies; see `docs/pipelines.md`.
        chunkers: how what is searched is cut, in the place of the retrievers' own `build.chunker` and of chunks that
            questions bring. An index folder that a retriever names stays as it is.
        embedders: what it is embedded with, likewise.
        rules: what the prompts demand of an answer; `ragbed list rules` says what each does.
        questions: how they are put: `as_asked`, `typos@N` in N of a hundred words, `keywords`, `paraphrase`,
            `lower_case`. Gold, options, sub-questions, judges and scores stay those of the question as it is asked.
        paraphraser: the model that writes paraphrases, one of a question for all cells; by default the judge's.
        grader: a model that grades passages that a search found and people did not judge: `{model: M, depth: 10}`.
        show: what of the question a prompt shows: the question alone, or its sub-questions too.
        reasoning, retrieval: strategies by name, or settings of one such as `{kind: self_consistency, of: direct,
            samples: 5}`; a list in the place of one value of these stands for a strategy with each. `FILE.py:FUNCTION`
            is a strategy of one's own.
        history: strategies that make a question of a conversation one that can be understood by itself, likewise.
        answer_formats: how final answers are asked for: in tags, or as JSON objects under a schema.
        framings: how documents are set apart from instructions: `delimited`, `datamarked`, or `none`, which the layout
            `as_published` implies where none is given.
        prompt_variants: how many variants of their instruction the strategies of the CReSt paper use, up to 5, or a
            list of them; 1 is the original. Other strategies have one.
        brief: whether the rules ask for an answer of a few words, as exact match needs it.
        sub_answers: sub-questions that are scored: each asked over the same evidence, all in the one reply, or none.
        filled: what takes the place of `#1` in a sub-question: the model's own answer to the first, or the gold one.
        support: the check of every sentence against what it cites, and of the answer for the question's nuggets:
            `lexical`, `nli:MODEL`, a model, or settings of one; none by default.
        exemplars: a JSON Lines file of worked examples that every prompt shows after the documents; none by default.
        repeats: how often each is asked: the model's own chance, which a temperature above 0 has.
        seed: of what perturbations draw, and strategies; several are a factor. Intervals are drawn by the first.
        probe: `citations` asks each answer again without each passage, which tells the citations that carry weight.
        exclude: parts of the product that are left out.
        include: matrices that are added to what is left.
        race: whether a cell is asked only until it is worse than another or no difference is to be expected.
        concurrency: questions under way at once with one model, and so its calls, at most: short for
            `calls.calls.concurrency`, whose place it takes where it is given. A local model is asked one by one.
    """

    name: Annotated[str, AfterValidator(_folder_name)]
    out: Place = Path("runs")
    benchmark: Annotated[BenchmarkSettings, Field(json_schema_extra=_or_several)]
    models: Annotated[list[str], matrix.ListOf(0), matrix.Distinct] = Field(default=[DEFAULT])
    pipelines: Annotated[list[Pipeline], matrix.ListOf(0)] = Field(default_factory=list)
    reasoning: matrix.Reasonings = Field(default=["direct"], validate_default=True)
    retrieval: matrix.Retrievals = Field(default=["once"], validate_default=True)
    history: matrix.Histories = Field(default=["rewrite"], validate_default=True)
    retriever: Annotated[list[AnyRetriever], Many, AfterValidator(told_apart)] = Field(
        default=["dense"], validate_default=True)
    chunkers: matrix.Cuts = Field(default_factory=list)
    embedders: matrix.Embeddings = Field(default_factory=list)
    rules: matrix.RulesNames = Field(default=["grounded"])
    conditions: matrix.Conditions = Field(default=["provided"])
    perturbations: matrix.Perturbations = Field(default=["none"])
    questions: matrix.Variations = Field(default=["as_asked"])
    paraphraser: str | None = None
    show: matrix.Shows = Field(default=["question"])
    formats: matrix.Formats = Field(default=["plain"])
    answer_formats: matrix.AnswerFormats = Field(default=["tags"])
    framings: matrix.Framings = Field(default=["delimited"])
    prompt_variants: matrix.PromptVariants = Field(default=[1], exclude_if=lambda which: which == [1])
    layout: Layout = "documents_first"
    brief: bool = False
    sub_answers: SubAnswers = "asked"
    filled: Literal["own", "gold"] = "own"
    exemplars: Place | None = None
    repeats: matrix.Repeats = 1
    judge: JudgeSettings = Lexical()
    support: SupportSettings | None = Field(default=None, exclude_if=operator.not_)
    grader: Grader | None = Field(default=None, exclude_if=operator.not_)
    scoring: Scoring = "corrected"
    seeds: Annotated[matrix.Seeds, PlainSerializer(_scalar_of_one)] = Field(default=[0], alias="seed")
    probe: Literal["citations"] | None = Field(default=None, exclude_if=operator.not_)
    exclude: Annotated[list[Excluded], matrix.ListOf(0), PlainSerializer(_given_keys)] = Field(default_factory=list)
    include: Annotated[list[Included], matrix.ListOf(0), PlainSerializer(_given_keys)] = Field(default_factory=list)
    race: bool = False
    limits: Limits = Limits()
    calls: ModelSettings = ModelSettings()
    budget: Budget = Budget()
    concurrency: int | None = Field(default=None, ge=1, le=1024)

    @model_validator(mode="before")
    @classmethod
    def _as_the_paper(cls, fields: Any) -> Any:
        fields = matrix.by_key(fields)
        benchmark = fields.get("benchmark") if isinstance(fields, dict) else None
        known = BENCHMARKS.get(str(benchmark.get("kind"))) if isinstance(benchmark, dict) else None
        if known is None:
            return fields
        if fields.get("pipelines") and not fields.keys() & {"models", "reasoning", "include"}:
            fields = {**fields, "models": []}
        fields = with_defaults(known.run_as(fields["benchmark"]), fields)
        if fields.get("layout") == "as_published":  # nothing published sets documents apart from instructions
            fields = {"framings": ["none"], **fields}
        implied = known.about.as_published if fields.get("scoring") == "as-published" else {}
        return {**fields, "benchmark": {**implied, **fields["benchmark"]}}

    @model_validator(mode="after")
    def _fits_together(self) -> RunSettings:
        name, count = Counter(one.name for one in self.retriever).most_common(1)[0]
        if count > 1:
            raise ValueError(f"two retrievers are called {name}; give each a `name` of its own")
        if self.sub_answers == "in_prompt" and "json" in self._any("answer_formats"):
            raise ValueError("sub_answers: in_prompt asks for lines of text beside the answer, which a JSON object "
                             "has no place for; set sub_answers: asked, or answer_formats: tags")
        if self.filled == "gold" and self.sub_answers != "asked":
            raise ValueError("filled: gold is for sub-questions that are asked one by one; set sub_answers: asked")
        if "paraphrase" in self._any("questions") and self.paraphrasing_model is None:
            raise ValueError("questions: paraphrase asks a model for them, and the judge is none; name one, as in "
                             "paraphraser: MODEL, best one that does not answer itself")
        check_pipelines(self.pipelines, self.models, self.only_searches, self.sub_answers)
        asked = dict.fromkeys([*(one.cell_model for one in self.pipelines), *self.every_model])
        if unknown := [name for name in self.calls.prices if name not in asked]:
            raise ValueError(f"calls.prices: no model is called {unknown[0]}; this run asks {', '.join(asked)}")
        check_searching(self._any("reasoning"), self._any("retrieval") | self._any("history"), self._any("models"),
                        self._any("conditions"))
        return self

    def _any(self, key: str) -> set[str]:
        values = (value for part in (self, *self.include) for value in getattr(part, key) or ())
        return {value.kind if isinstance(value, Strategy) else str(value) for value in values}

    @property
    def only_searches(self) -> bool:
        """Whether it asks for no answers."""
        return [one.kind for one in self.reasoning] == [SEARCH_ONLY]

    def scheme_of(self, questions: Collection[Question]) -> Scheme:
        """Return how these of the benchmark's questions are scored, as this run asks them."""
        scheme = self.benchmark.scheme_of(questions)
        if self.only_searches:
            return searching_scheme(questions, scheme)
        return scheme if self.support is None else self.support.scheme_of(scheme, questions)

    @property
    def every_model(self) -> list[str]:
        """The models that are asked, those of `include` and `other_models` among them."""
        return list(dict.fromkeys([*self.models, *sorted(self._any("models")), *self.other_models]))

    @property
    def other_models(self) -> list[str]:
        """The models beside those that answer: who grades answers, passages and support, and writes paraphrases."""
        judge = [one.model for one in (self.judge, self.support) if isinstance(one, ModelJudge | ModelSupport)]
        retrievers = [*self.retriever, *(one for more in self.include for one in more.retriever or ())]
        grading = (one.model for one in judges_of([*retrievers, self.grader]))
        return list(dict.fromkeys([*judge, *grading, *filter(None, [self.paraphrasing_model])]))

    @property
    def paraphrasing_model(self) -> str | None:
        """The model that writes paraphrases; None where none is wanted, or none is named and no model judges."""
        if "paraphrase" not in self._any("questions"):
            return None
        return self.paraphraser or (self.judge.model if isinstance(self.judge, ModelJudge) else None)

    @property
    def seed(self) -> int:
        """The first seed, which decides what is no factor of cells."""
        return self.seeds[0]

    @property
    def asking(self) -> ModelSettings:
        """How models are called: `calls`, with the run's own `concurrency` where it has one."""
        if self.concurrency is None:
            return self.calls
        limits = self.calls.calls.model_copy(update={"concurrency": self.concurrency})
        return self.calls.model_copy(update={"calls": limits})

    @property
    def folder(self) -> Path:
        return self.out / self.name

    def resolved(self) -> str:
        """Return every setting, defaults included, as YAML."""
        return yaml.safe_dump(self.model_dump(mode="json", by_alias=True), sort_keys=False, allow_unicode=True)
