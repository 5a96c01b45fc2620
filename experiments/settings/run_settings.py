"""The settings of a run, as in a YAML file. A single value is allowed wherever a list is expected."""
from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_origin

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

from ragbed.agents.model_settings import DEFAULT_MODEL, MAX_IN_FLIGHT, NO_MODEL, Limits, ModelSettings, define_models
from ragbed.experiments.benchmarks import BENCHMARKS, BenchmarkSettings
from ragbed.experiments.benchmarks.registry import complete_benchmark
from ragbed.experiments.judges import JudgeSettings, Lexical, model_of
from ragbed.experiments.judges.judge import add_judge_columns, split_judges
from ragbed.experiments.judges.passage_grades import Grader
from ragbed.experiments.metrics import Scoring
from ragbed.experiments.metrics.scoring import choose_headline
from ragbed.experiments.question import Question, Scheme
from ragbed.experiments.settings import matrix
from ragbed.experiments.settings.matrix import Many, Matrix
from ragbed.experiments.settings.pipelines import PipelineSettings, check_pipelines, pipeline_union
from ragbed.experiments.settings.retrievers import (
    OF_ANSWERS,
    AnyRetriever,
    Place,
    apply_defaults,
    check_searching,
    name_apart,
    search_scheme,
)
from ragbed.experiments.settings.spending import Budget
from ragbed.experiments.statistics.units import check_unit
from ragbed.guests import loaded
from ragbed.retrieval.rerankers.reranker import judges_of
from ragbed.strategies.catalogue import SEARCH_ONLY
from ragbed.strategies.settings.prompt_texts import DEFAULT_PROMPTS
from ragbed.strategies.settings.strategy_config import Strategy
from ragbed.strategies.types import Layout

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def _check_folder_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}", name):
        raise ValueError(f"{name!r} cannot be the name of a folder; give a `name` of letters, digits and . _ -")
    return name


class _Part(Matrix):
    """A part of the matrix: all combinations of the given values.

    Attributes:
        benchmark: kinds of benchmarks to which the entry applies, if the settings list several. By default all.
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
    headers: matrix.Headers | None = None
    prompt_variants: matrix.PromptVariants | None = None
    languages: matrix.Languages | None = None
    prompts: matrix.Prompts | None = None
    seed: matrix.Seeds | None = None


class Excluded(_Part):
    """Combinations to leave out: those that match every key. Each value must occur in the run.

    Attributes:
        reasoning, retrieval, history, chunkers, embedders: labels as shown in tables.
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
    """A matrix of further combinations. A missing key takes the run's values.

    Attributes:
        retriever: names of the run's retrievers, or settings of further ones.
        repeats: how often each question is asked in these combinations.
    """

    retriever: Annotated[list[NameOrSettings], Many, matrix.Distinct] | None = None
    repeats: matrix.Repeats | None = None


SubAnswers = Literal["asked", "in_prompt", "none"]


def _guest_fields() -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, kind in loaded("setting").items():
        is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
        about = (kind.__doc__ or "A setting that a guest adds.").partition("\n")[0]
        described = kind if get_origin(kind) is Annotated else Annotated[
            kind | None if is_model else Annotated[Any, AfterValidator(kind)], Field(description=about)]
        fields[name] = described, Field(default=None, exclude_if=operator.not_)
    return fields


if TYPE_CHECKING:
    Pipeline: TypeAlias = PipelineSettings
    _MatrixWithGuests = Matrix
else:
    Pipeline = pipeline_union()
    _MatrixWithGuests = create_model("_MatrixWithGuests", __base__=Matrix, **_guest_fields())


class RunSettings(_MatrixWithGuests):
    """One experiment. Every list is a factor, and every combination of their values is a cell. `exclude` removes cells,
    and `include` adds cells.

    A missing setting has the value from the benchmark's paper. If the paper states none, the default below applies.

    Attributes:
        name: name of the run and of its folder. By default the name of the settings file.
        out: folder in which the run's folder is made.
        benchmark: the questions. Each benchmark of a list is a separate run, `NAME-KIND`, with its own paper's
            defaults. Figures of different benchmarks are never averaged.
        models: models that answer, by name or as objects with their own settings (see `calls.models`). If the settings
            have `pipelines` but neither `models` nor `reasoning`, only the pipelines answer.
        pipelines: your own pipelines, which answer the same questions as the strategies.
        reasoning: strategies that answer, by name, as `FILE.py:FUNCTION`, or with settings such as `{kind:
            self_consistency, of: direct, samples: 5}`. If a parameter is a list, each of its values gives a separate
            strategy.
        retrieval: strategies that search, in the same notation as `reasoning`.
        history: strategies that rewrite a follow-up question so that it stands alone, in the same notation as
            `reasoning`.
        retriever: retrievers, which find chunks: kinds such as `bm25`, or settings of one.
        chunkers: chunkers to compare, for retrievers without their own `build.chunker`. They split the questions'
            documents again. An index folder that a retriever names does not change.
        embedders: embedders to compare, for retrievers without their own `build.embedder`.
        rules: what the prompts demand of an answer; see `ragbed list rules`.
        conditions: where the documents in the prompt come from; see `ragbed list conditions`.
        perturbations: changes to these documents; see `ragbed list perturbations`.
        questions: how questions are phrased: `as_asked`, `typos@N` (in N of 100 words), `keywords`, `paraphrase` or
            `lower_case`. Gold, options and sub-questions do not change.
        paraphraser: model that writes paraphrases. By default the judge.
        grader: model that grades retrieved passages without human judgements, such as `{model: M, depth: 10}`.
        show: what a prompt shows of a question: the question alone, or also its sub-questions.
        formats: format of indexed documents: plain text or HTML.
        answer_formats: format in which final answers are requested: in tags, or as a JSON object with a schema.
        framings: how prompts separate documents from instructions: `delimited`, `datamarked`, or `none`, the default of
            the layout `as_published`.
        headers: whether prompts name the document, section and page of each passage.
        prompt_variants: number of variants of the instruction, up to 5, or a list of variants; 1 is the original. Only
            the strategies of the CReSt paper have several.
        languages: language of the sentence with which prompts ask a model to refuse: `english`, or `auto` for the
            question's.
        prompts: folders of texts that replace ragbed's prompts of the same names, such as `direct.md`; `default` keeps
            ragbed's. `ragbed show-prompt --texts` prints the names.
        layout: order of the prompt's parts: `documents_first`, or `as_published` as in the papers.
        brief: whether prompts ask for an answer of a few words, which exact match needs.
        sub_answers: how sub-questions are answered: each asked with the same evidence, all in one reply, or not at all.
        filled: what replaces `#1` in a sub-question: the model's own answer to the first sub-question, or the gold
            answer.
        exemplars: JSON Lines file of worked examples, which every prompt shows after the documents.
        repeats: how often each question is asked. Repeats measure randomness at temperatures above 0.
        judge: who grades answers: `lexical`, a model, or your own rubric or function. The first judge of a list decides
            which answers are right.
        judges: further judges. Each has a column of its own.
        scoring: `corrected`, or `as-published` for the paper's own rules.
        unit: unit of inference for intervals and tests: `question`, `document` for conclusions on new documents, or a
            tag. By default `question`. Questions that belong together, such as turns of a conversation, are one unit.
        headline: metric that ranks and compares cells, such as `f1`. It becomes the first column.
        seed: seeds of perturbations and strategies. Several seeds are a factor. The first one also seeds the intervals.
        probe: `citations` asks each question again without each of its passages, to find unnecessary citations.
        exclude: combinations to leave out.
        include: further matrices of combinations to add.
        race: whether to stop asking a cell once it is significantly worse, or a difference is unlikely.
        limits: limits per question.
        calls: how models are called.
        budget: what the run may spend.
        concurrency: largest number of questions, and so of calls, in progress per model. It overrides
            `calls.calls.concurrency`. A local model gets one at a time.
    """

    name: Annotated[str, AfterValidator(_check_folder_name)]
    out: Place = Path("runs")
    benchmark: Annotated[BenchmarkSettings, Field(json_schema_extra=matrix.allow_list)]
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
    headers: matrix.Headers = Field(default=[False], exclude_if=lambda which: which == [False])
    prompt_variants: matrix.PromptVariants = Field(default=[1], exclude_if=lambda which: which == [1])
    languages: matrix.Languages = Field(default=["english"], exclude_if=lambda which: which == ["english"])
    prompts: matrix.Prompts = Field(default=[DEFAULT_PROMPTS], exclude_if=lambda which: which == [DEFAULT_PROMPTS])
    layout: Layout = "documents_first"
    brief: bool = False
    sub_answers: SubAnswers = "asked"
    filled: Literal["own", "gold"] = "own"
    exemplars: Place | None = None
    repeats: matrix.Repeats = 1
    judge: Annotated[JudgeSettings, Field(json_schema_extra=matrix.allow_list)] = Lexical()
    judges: list[JudgeSettings] = Field(default_factory=list, exclude_if=operator.not_)
    grader: Grader | None = Field(default=None, exclude_if=operator.not_)
    scoring: Scoring = "corrected"
    unit: str | None = Field(default=None, min_length=1, exclude_if=operator.not_)
    headline: str | None = Field(default=None, min_length=1, exclude_if=operator.not_)
    seeds: Annotated[matrix.Seeds, PlainSerializer(matrix.scalar_of_one)] = Field(default=[0], alias="seed")
    probe: Literal["citations"] | None = Field(default=None, exclude_if=operator.not_)
    exclude: Annotated[list[Excluded], matrix.ListOf(0), matrix.WithoutNone] = Field(default_factory=list)
    include: Annotated[list[Included], matrix.ListOf(0), matrix.WithoutNone] = Field(default_factory=list)
    race: bool = False
    limits: Limits = Limits()
    calls: ModelSettings = ModelSettings()
    budget: Budget = Budget()
    concurrency: int | None = Field(default=None, ge=1, le=MAX_IN_FLIGHT)

    @model_validator(mode="before")
    @classmethod
    def _add_defaults(cls, fields: Any) -> Any:
        fields = define_models(matrix.rename_columns(fields), "models")
        if isinstance(fields, dict) and "benchmark" in fields:
            fields = {**fields, "benchmark": complete_benchmark(fields["benchmark"])}
        benchmark = fields.get("benchmark") if isinstance(fields, dict) else None
        fields = split_judges(fields)
        kind = BENCHMARKS.get(str(benchmark.get("kind"))) if isinstance(benchmark, dict) else None
        if kind is None:
            return fields
        if fields.get("pipelines") and not fields.keys() & {"models", "reasoning", "include"}:
            fields = {**fields, "models": []}
        fields = apply_defaults(kind.run_as(fields["benchmark"], fields), fields)
        if fields.get("layout") == "as_published":  # the papers do not separate documents from instructions
            fields = {"framings": ["none"], **fields}
        implied = kind.about.as_published if fields.get("scoring") == "as-published" else {}
        return {**fields, "benchmark": {**implied, **fields["benchmark"]}}

    @model_validator(mode="after")
    def _check_together(self) -> RunSettings:
        name, count = Counter(one.name for one in self.retriever).most_common(1)[0]
        if count > 1:
            raise ValueError(f"retriever: two have the name {name}; give each a different `name`")
        if self.sub_answers == "in_prompt" and "json" in self._values("answer_formats"):
            raise ValueError("sub_answers: in_prompt needs an answer in lines, not JSON; set "
                             "sub_answers: asked or answer_formats: tags")
        if self.filled == "gold" and self.sub_answers != "asked":
            raise ValueError("filled: gold needs sub-questions that are asked one by one; set sub_answers: asked")
        if "paraphrase" in self._values("questions") and self.paraphrasing_model is None:
            raise ValueError("questions: paraphrase needs a model, but the judge is not a model; set paraphraser: "
                             "MODEL, ideally one that answers no questions")
        for one in self.retriever:
            twice = next((key for key in ("chunker", "embedder") if getattr(self, f"{key}s")
                          and key in one.build.given), None)
            if twice is not None:
                raise ValueError(f"{twice}s: they replace the build.{twice} of the retriever {one.name}; give one of "
                                 "the two")
        key = "refusals" if self.judging_models[2] else "languages" * ("auto" in self._values("languages"))
        if key and (self.scoring == "as-published" or not (self.pipelines or "grounded" in self._values("rules"))):
            raise ValueError(f"{key}: it acts only in corrected scoring and with the rules grounded, which offer a "
                             "refusal; remove it, or set scoring: corrected and rules: grounded")
        if self.paraphraser is not None and self.paraphrasing_model is None:
            raise ValueError("paraphraser: no question is paraphrased; remove it, or set questions: paraphrase")
        if self.only_searches and self._values("models") == {NO_MODEL}:
            given = [key for key in OF_ANSWERS if getattr(self, key) != RunSettings.model_fields[key].get_default(
                call_default_factory=True)]
            if given:
                raise ValueError(f"{given[0]}: a run that only searches asks for no answers; remove it, or name a "
                                 "strategy that answers in reasoning")
        check_pipelines(self.pipelines, self.models, self.only_searches, self.sub_answers)
        asked = dict.fromkeys([*(one.cell_model for one in self.pipelines), *self.all_models])
        for place, unknown in ((key, name) for key in ("prices", "models") for name in getattr(self.calls, key)):
            if unknown not in asked:
                raise ValueError(f"calls.{place}: unknown model {unknown}; this run uses {', '.join(asked)}")
        check_searching(self._values("reasoning"), self._values("retrieval") | self._values("history"),
                        self._values("models"), self._values("conditions"))
        return self

    def _values(self, key: str) -> set[str]:
        values = (value for part in (self, *self.include) for value in getattr(part, key) or ())
        return {value.kind if isinstance(value, Strategy) else str(value) for value in values}

    @property
    def only_searches(self) -> bool:
        """Return whether the run only searches and asks for no answers."""
        return [one.kind for one in self.reasoning] == [SEARCH_ONLY]

    def scheme_of(self, questions: Collection[Question]) -> Scheme:
        """Return how this run scores these questions of its benchmark."""
        scheme = self.benchmark.scheme_of(questions)
        if self.only_searches:
            scheme = search_scheme(questions, scheme)
        elif support := getattr(self, "support", None):
            scheme = support.scheme_of(scheme, questions)
        if own := getattr(self, "metrics", None):
            scheme = own.add_columns(scheme)
        if not self.only_searches:
            scheme = add_judge_columns(scheme, self.own_judges, self.scoring)
        if self.unit:
            check_unit(questions, self.unit)
            scheme = replace(scheme, unit=self.unit)
        return choose_headline(scheme, self.headline) if self.headline else scheme

    @property
    def own_judges(self) -> list[JudgeSettings]:
        """Return the judges with a column of their own: further ones, and the first if its grades are the user's."""
        return [*[self.judge] * self.judge.is_own, *self.judges]

    @property
    def all_models(self) -> list[str]:
        """Return every model that the run calls."""
        return list(dict.fromkeys([*self.models, *sorted(self._values("models")), *self.other_models]))

    @property
    def other_models(self) -> list[str]:
        """Return the models that judge, grade, check support, tell refusals or paraphrase, as opposed to answering."""
        retrievers = [*self.retriever, *(one for more in self.include for one in more.retriever or ())]
        grading = (one.model for one in judges_of([*retrievers, self.grader]))
        return list(dict.fromkeys(filter(None, [*self.judging_models, *map(model_of, self.judges), *grading])))

    @property
    def judging_models(self) -> tuple[str | None, ...]:
        """Return the models that judge, check support, tell refusals and paraphrase; None for each without a model."""
        checking = (getattr(self, name, None) for name in ("support", "refusals"))
        return *map(model_of, (self.judge, *checking)), self.paraphrasing_model

    @property
    def paraphrasing_model(self) -> str | None:
        """Return the model that writes paraphrases; None if there is none."""
        if "paraphrase" not in self._values("questions"):
            return None
        return self.paraphraser or model_of(self.judge)

    @property
    def seed(self) -> int:
        """Return the first seed. It controls all randomness outside the factor `seed`."""
        return self.seeds[0]

    @property
    def call_settings(self) -> ModelSettings:
        """Return the settings `calls`, with the run's `concurrency` if it is given."""
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
        content = self.model_dump(mode="json", by_alias=True)
        try:
            return yaml.dump(content, Dumper=_DUMPER, sort_keys=False, allow_unicode=True)
        except UnicodeEncodeError:  # libyaml rejects file names that are not UTF-8
            return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
