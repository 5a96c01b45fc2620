"""The settings of a run, as in a YAML file. A scalar is allowed wherever a list is expected."""
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

from ragbed.agents.settings import DEFAULT_MODEL, Limits, ModelSettings
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
    apply_defaults,
    check_searching,
    name_apart,
    search_scheme,
)
from ragbed.experiments.settings.spending import Budget
from ragbed.guests import loaded
from ragbed.retrieval.rerankers.reranker import judges_of
from ragbed.strategies.catalogue import SEARCH_ONLY
from ragbed.strategies.settings.strategy_config import Strategy
from ragbed.strategies.types import Layout


def _check_folder_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}", name):
        raise ValueError(f"{name!r} cannot be the name of a folder; give a `name` of letters, digits and . _ -")
    return name


def _scalar_of_one(values: list[int]) -> list[int] | int:
    return values[0] if len(values) == 1 else values


def _drop_none(entries: list[Matrix]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.model_dump(mode="json").items() if value is not None}
            for entry in entries]


def _allow_list(schema: dict[str, Any]) -> None:
    one = dict(schema)
    schema.clear()
    schema.update({"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]})


class _Part(Matrix):
    """A part of the matrix: the combinations that have, for every given key, one of its values.

    Attributes:
        benchmark: kinds of benchmark that the entry applies to, if the settings list several. By default all.
        retriever: names of retrievers.
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
    """Combinations to leave out: those that match every key. Each value must be one of the run's.

    Attributes:
        reasoning, retrieval, history, chunkers, embedders: labels, as in tables.
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
    """A matrix that is added to the combinations. A missing key takes the run's values.

    Attributes:
        retriever: names of the run's retrievers, or settings of others.
        repeats: how often each of these combinations is asked.
    """

    retriever: Annotated[list[NameOrSettings], Many, matrix.Distinct] | None = None
    repeats: matrix.Repeats | None = None


SubAnswers = Literal["asked", "in_prompt", "none"]


def _guest_fields() -> dict[str, Any]:
    """Return the settings that guests add, as fields whose default is None."""
    fields: dict[str, Any] = {}
    for name, kind in loaded("setting").items():
        is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
        value = kind if is_model else Annotated[Any, AfterValidator(kind)]
        fields[name] = value | None if is_model else value, Field(
            default=None, exclude_if=operator.not_, description="A setting that a guest adds.")
    return fields


if TYPE_CHECKING:
    Pipeline: TypeAlias = PipelineSettings
    _MatrixWithGuests = Matrix
else:
    Pipeline = pipeline_union()
    _MatrixWithGuests = create_model("_MatrixWithGuests", __base__=Matrix, **_guest_fields())


class RunSettings(_MatrixWithGuests):
    """One experiment. Every list is a factor, and every combination of their values is a cell. `exclude` removes cells
    and `include` adds some.

    A missing setting has the value of the benchmark's paper. If the paper does not state it, the default below applies.

    Attributes:
        name: name of the run and of its folder. By default the name of the settings file.
        out: folder in which the run's folder is made.
        benchmark: the questions. With a list of benchmarks, each is a separate run, `NAME-KIND`, with its own paper's
            defaults. Figures of different benchmarks are never averaged.
        models: models that answer. With `pipelines` but neither `models` nor `reasoning`, no model answers.
        pipelines: your own pipelines, which get the same questions as the strategies.
        reasoning: strategies that answer, by name, as `FILE.py:FUNCTION`, or with settings such as `{kind:
            self_consistency, of: direct, samples: 5}`. If a parameter has a list, each of its values makes a separate
            strategy.
        retrieval: strategies that search, in the same forms.
        history: strategies that rewrite a question of a conversation so that it stands alone, in the same forms.
        retriever: how chunks are found: kinds such as `bm25`, or settings of one.
        chunkers: chunkers to compare. They replace the `build.chunker` of retrievers and the chunks of questions. An
            index folder that a retriever names stays as it is.
        embedders: embedders to compare; they replace the `build.embedder` of retrievers.
        rules: what the prompts demand of an answer; see `ragbed list rules`.
        conditions: where the documents in the prompt come from; see `ragbed list conditions`.
        perturbations: changes to these documents; see `ragbed list perturbations`.
        questions: how questions are phrased: `as_asked`, `typos@N` (in N of 100 words), `keywords`, `paraphrase` or
            `lower_case`. Gold, options, sub-questions, judging and scoring do not change.
        paraphraser: model that writes paraphrases. By default the judge's.
        grader: model that grades retrieved passages without human judgements, such as `{model: M, depth: 10}`.
        show: which part of the question a prompt shows: the question, or also its sub-questions.
        formats: format of indexed documents: plain text or HTML.
        answer_formats: format in which final answers are requested: in tags, or as a JSON object with a schema.
        framings: how documents are separated from instructions: `delimited`, `datamarked`, or `none`, the default of
            the layout `as_published`.
        prompt_variants: number of variants of the instruction, up to 5, or a list of variants; 1 is the original. Only
            the strategies of the CReSt paper have several.
        layout: order of the prompt's parts: `documents_first`, or `as_published` as in the papers.
        brief: whether the rules ask for an answer of a few words, as exact match needs.
        sub_answers: how sub-questions are scored: each asked over the same evidence, all in one reply, or not at all.
        filled: what replaces `#1` in a sub-question: the model's own answer to the first, or the gold answer.
        exemplars: JSON Lines file of worked examples, which every prompt shows after the documents.
        repeats: how often each question is asked, to measure the randomness of a temperature above 0.
        judge: who grades answers: `lexical`, or a model.
        support: who checks each sentence against what it cites, and the answer for the question's nuggets: `lexical`,
            `nli:MODEL`, a model, or settings of one.
        scoring: `corrected`, or `as-published` by the paper's own rules.
        seed: seeds of perturbations and strategies; several are a factor. The first one also seeds the intervals.
        probe: `citations` asks each answer again without each of its passages, to find unnecessary citations.
        exclude: combinations to leave out.
        include: further matrices of combinations to add.
        race: whether to stop asking a cell once it is significantly worse, or a difference is unlikely.
        limits: limits per question.
        calls: how models are called.
        budget: what the run may spend.
        concurrency: largest number of questions, and so of calls, in progress per model. Short for
            `calls.calls.concurrency`, which it overrides. A local model gets one at a time.
    """

    name: Annotated[str, AfterValidator(_check_folder_name)]
    out: Place = Path("runs")
    benchmark: Annotated[BenchmarkSettings, Field(json_schema_extra=_allow_list)]
    models: Annotated[list[str], matrix.ListOf(0), matrix.Distinct] = Field(default=[DEFAULT_MODEL])
    pipelines: Annotated[list[Pipeline], matrix.ListOf(0)] = Field(default_factory=list)
    reasoning: matrix.Reasonings = Field(default=["direct"], validate_default=True)
    retrieval: matrix.Retrievals = Field(default=["once"], validate_default=True)
    history: matrix.Histories = Field(default=["rewrite"], validate_default=True)
    retriever: Annotated[list[AnyRetriever], Many, AfterValidator(name_apart)] = Field(
        default=["dense"], validate_default=True)
    chunkers: matrix.Chunkers = Field(default_factory=list)
    embedders: matrix.Embedders = Field(default_factory=list)
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
    exclude: Annotated[list[Excluded], matrix.ListOf(0), PlainSerializer(_drop_none)] = Field(default_factory=list)
    include: Annotated[list[Included], matrix.ListOf(0), PlainSerializer(_drop_none)] = Field(default_factory=list)
    race: bool = False
    limits: Limits = Limits()
    calls: ModelSettings = ModelSettings()
    budget: Budget = Budget()
    concurrency: int | None = Field(default=None, ge=1, le=1024)

    @model_validator(mode="before")
    @classmethod
    def _add_defaults(cls, fields: Any) -> Any:
        fields = matrix.rename_columns(fields)
        benchmark = fields.get("benchmark") if isinstance(fields, dict) else None
        kind = BENCHMARKS.get(str(benchmark.get("kind"))) if isinstance(benchmark, dict) else None
        if kind is None:
            return fields
        if fields.get("pipelines") and not fields.keys() & {"models", "reasoning", "include"}:
            fields = {**fields, "models": []}
        fields = apply_defaults(kind.run_as(fields["benchmark"]), fields)
        if fields.get("layout") == "as_published":  # no paper separates documents from instructions
            fields = {"framings": ["none"], **fields}
        implied = kind.about.as_published if fields.get("scoring") == "as-published" else {}
        return {**fields, "benchmark": {**implied, **fields["benchmark"]}}

    @model_validator(mode="after")
    def _check_together(self) -> RunSettings:
        name, count = Counter(one.name for one in self.retriever).most_common(1)[0]
        if count > 1:
            raise ValueError(f"retriever: two are called {name}; give each a different `name`")
        if self.sub_answers == "in_prompt" and "json" in self._values("answer_formats"):
            raise ValueError("sub_answers: in_prompt needs lines of text, which a JSON answer cannot hold; set "
                             "sub_answers: asked or answer_formats: tags")
        if self.filled == "gold" and self.sub_answers != "asked":
            raise ValueError("filled: gold needs sub-questions that are asked one by one; set sub_answers: asked")
        if "paraphrase" in self._values("questions") and self.paraphrasing_model is None:
            raise ValueError("questions: paraphrase needs a model, but the judge is not a model; set paraphraser: "
                             "MODEL, ideally one that does not answer")
        check_pipelines(self.pipelines, self.models, self.only_searches, self.sub_answers)
        asked = dict.fromkeys([*(one.cell_model for one in self.pipelines), *self.all_models])
        if unknown := [name for name in self.calls.prices if name not in asked]:
            raise ValueError(f"calls.prices: unknown model {unknown[0]}; this run uses {', '.join(asked)}")
        check_searching(self._values("reasoning"), self._values("retrieval") | self._values("history"),
                        self._values("models"), self._values("conditions"))
        return self

    def _values(self, key: str) -> set[str]:
        """Return the values of a list in the run and in every entry of `include`."""
        values = (value for part in (self, *self.include) for value in getattr(part, key) or ())
        return {value.kind if isinstance(value, Strategy) else str(value) for value in values}

    @property
    def only_searches(self) -> bool:
        """Return whether the run asks for no answers."""
        return [one.kind for one in self.reasoning] == [SEARCH_ONLY]

    def scheme_of(self, questions: Collection[Question]) -> Scheme:
        """Return how this run scores these questions of its benchmark."""
        scheme = self.benchmark.scheme_of(questions)
        if self.only_searches:
            return search_scheme(questions, scheme)
        return scheme if self.support is None else self.support.scheme_of(scheme, questions)

    @property
    def all_models(self) -> list[str]:
        """Return every model that is asked."""
        return list(dict.fromkeys([*self.models, *sorted(self._values("models")), *self.other_models]))

    @property
    def other_models(self) -> list[str]:
        """Return the models that judge, grade, check support or paraphrase, rather than answer."""
        judge = [one.model for one in (self.judge, self.support) if isinstance(one, ModelJudge | ModelSupport)]
        retrievers = [*self.retriever, *(one for more in self.include for one in more.retriever or ())]
        grading = (one.model for one in judges_of([*retrievers, self.grader]))
        return list(dict.fromkeys([*judge, *grading, *filter(None, [self.paraphrasing_model])]))

    @property
    def paraphrasing_model(self) -> str | None:
        """Return the model that writes paraphrases, or None if none is needed or known."""
        if "paraphrase" not in self._values("questions"):
            return None
        return self.paraphraser or (self.judge.model if isinstance(self.judge, ModelJudge) else None)

    @property
    def seed(self) -> int:
        """Return the first seed. It controls all randomness outside the factor `seed`."""
        return self.seeds[0]

    @property
    def call_settings(self) -> ModelSettings:
        """Return how models are called: `calls`, with the run's `concurrency` if it is given."""
        if self.concurrency is None:
            return self.calls
        limits = self.calls.calls.model_copy(update={"concurrency": self.concurrency})
        return self.calls.model_copy(update={"calls": limits})

    @property
    def folder(self) -> Path:
        """Return the run's folder."""
        return self.out / self.name

    def to_yaml(self) -> str:
        """Return every setting, including defaults, as YAML."""
        return yaml.safe_dump(self.model_dump(mode="json", by_alias=True), sort_keys=False, allow_unicode=True)
