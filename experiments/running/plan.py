"""The plan of a run: its resolved settings, and the tasks. A task is a question without gold, as strategies see it.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ragbed.agents.model_settings import ModelSettings
from ragbed.documents.shards import Shard
from ragbed.documents.types import digest
from ragbed.experiments.analysis.notes import note_skipped
from ragbed.experiments.cells import OWN, PIPELINE, Cell
from ragbed.experiments.question import Benchmark, Question, Scheme
from ragbed.experiments.running.cell_matrix import (
    Strategies,
    expand_matrix,
    list_finders,
    list_strategies,
    matrix_notes,
)
from ragbed.experiments.running.checks import check_conditions, check_exemplars, check_ids
from ragbed.experiments.running.hooks import FollowUp, Measuring, Schedule, find_follow_up, make_schedule
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.run_manifest import questions_hash
from ragbed.experiments.settings import RunSettings, SubAnswers
from ragbed.experiments.settings.file import read_settings
from ragbed.experiments.settings.matrix import list_combinations, list_retrievers
from ragbed.experiments.settings.pipelines import PipelineSettings
from ragbed.experiments.settings.retrievers import Finder
from ragbed.experiments.statistics import cluster_questions
from ragbed.strategies.catalogue import RETRIEVAL
from ragbed.strategies.history import with_history
from ragbed.strategies.prompting import with_prompts
from ragbed.strategies.settings.exemplars import read_exemplars
from ragbed.strategies.settings.parameters import parameter_default, parameter_hints
from ragbed.strategies.settings.prompt_texts import DEFAULT_PROMPTS, prompts_label, read_prompts
from ragbed.strategies.settings.strategy_config import Strategy, built_in, common_tools
from ragbed.strategies.types import FAMILIES, Evidence, Exemplar, Family, Reasoning, Retrieval, Task, Tools

_THRESHOLD = "threshold"


@dataclass(frozen=True)
class Plan:
    """The resolved settings of a run: questions, strategies, retrievers and cells.

    Attributes:
        benchmark: the benchmark, with the scheme that scores this run.
        cells: the distinct cells, in the order of the settings; the reasoning strategy varies fastest.
        strategies: every strategy in the settings, by family and label.
        finders: every combination of retriever, chunker and embedder in the settings, by name.
        exemplars: worked examples that every prompt shows.
        notes: notes on skipped records, merged combinations, and seeds.
        functions: the loaded recipes of strategies, by family and label.
        shard: the part of the run to carry out; None for the whole run. Values that depend on all questions are
            computed from all of them, even in a shard.
        prompts: texts that replace prompts, by the level of the factor `prompts` and the prompt's name.
        scheduler: makes the schedule instead of `race`; None for the settings' own.
    """

    settings: RunSettings
    benchmark: Benchmark
    cells: tuple[Cell, ...]
    strategies: Strategies
    finders: Mapping[str, Finder]
    exemplars: tuple[Exemplar, ...]
    notes: tuple[str, ...]
    functions: Mapping[tuple[Family, str], Callable[..., Any]]
    shard: Shard | None = None
    prompts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    scheduler: Callable[[Plan], Schedule] | None = None

    @classmethod
    def of(cls, settings: RunSettings, benchmark: Benchmark | None = None) -> Plan:
        """Make the plan of a run, load its strategies, and read its worked examples.

        Args:
            benchmark: used without checks. If None, the benchmark of the settings is loaded and checked.

        Raises:
            UserError: a file is missing or invalid, or the benchmark lacks something that the settings need.
        """
        loaded = benchmark or settings.benchmark.load()
        if benchmark is None:
            loaded = replace(loaded, scheme=settings.scheme_of(loaded.questions))
        plan = cls._assemble(settings, loaded, list_strategies(settings, Strategy.loaded)).with_prompt_files()
        if benchmark is None:
            check_conditions(settings, plan.cells, loaded)
            check_exemplars(plan.exemplars, loaded)
            for one in plan._every_strategy:
                for file in one.exemplars:
                    check_exemplars(file.examples, loaded, f"few-shot examples: {file.file}")
            check_ids(loaded)
            asked = {question.id: question.text for question in loaded.questions}
            notes = [one.check(asked, settings.repeats) for one in settings.pipelines]
            plan = replace(plan, notes=(*plan.notes, *filter(None, notes)))
            _ = plan.measuring  # fail before the first call
        return plan

    @classmethod
    def of_finished(cls, run: Finished) -> Plan:
        """Make the plan of a finished run; see `of_records`."""
        return cls.of_records(run.path, run.scheme, run.questions.values(), run.cells)

    @classmethod
    def of_records(cls, path: Path, scheme: Scheme, questions: Iterable[Question], cells: Iterable[Cell]) -> Plan:
        """Make the plan of an earlier run from its folder, with its stored questions and cells. Strategies are not
        loaded. Raises SettingsError if its settings cannot be read."""
        settings = read_settings(path / "config.yaml")
        benchmark = Benchmark(settings.name, tuple(questions), scheme=scheme)
        return cls._assemble(settings, benchmark, list_strategies(settings), tuple(cells))

    @classmethod
    def _assemble(cls, settings: RunSettings, benchmark: Benchmark, strategies: Strategies,
                  cells: tuple[Cell, ...] | None = None) -> Plan:
        combinations, retrievers = list_combinations(settings), list_retrievers(settings)
        if cells is None:
            named = {one.name: one for one in retrievers}
            cells = expand_matrix(settings, benchmark, combinations, named, strategies)
        return cls(settings, benchmark, cells, strategies, list_finders(settings, retrievers), (),
                   (*note_skipped(benchmark.skipped), *matrix_notes(combinations, cells, strategies)),
                   _functions(strategies))

    def with_prompt_files(self) -> Plan:
        """Return the plan with the worked examples and the replaced prompts of the settings. Raises SettingsError if a
        file cannot be read."""
        path, parts = self.settings.exemplars, (self.settings, *self.settings.include)
        folders = {one for part in parts for one in getattr(part, "prompts", None) or () if one != DEFAULT_PROMPTS}
        return replace(self, exemplars=self.exemplars if path is None else read_exemplars(path),
                       prompts={prompts_label(one): read_prompts(one) for one in folders})

    def loading(self, labels: Mapping[Family, Collection[str]]) -> Plan:
        """Return the plan with these strategies loaded. Raises SettingsError if one cannot be loaded."""
        strategies = {family: {label: one.loaded() if label in labels[family] else one for label, one in named.items()}
                      for family, named in self.strategies.items()}
        return replace(self, strategies=strategies, functions=_functions(strategies))

    @property
    def scheme(self) -> Scheme:
        """Return how the questions are scored."""
        return self.benchmark.scheme

    @cached_property
    def pipelines(self) -> Mapping[str, PipelineSettings]:
        """Return the pipelines by their name in the factor `model`."""
        return {one.cell_model: one for one in self.settings.pipelines}

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models that any cell asks."""
        return tuple(dict.fromkeys(cell.model for cell in self.cells))

    @cached_property
    def asked(self) -> dict[int, Question]:
        """Return the questions to ask, by their position in the whole run."""
        return {place: one for place, one in enumerate(self.benchmark.questions)
                if self.shard is None or one.id in self.shard}

    @property
    def share(self) -> float:
        """Return this shard's share of the run's questions and budget."""
        return len(self.asked) / max(len(self.benchmark.questions), 1)

    @property
    def folder(self) -> Path:
        """Return the folder of the run, or of the shard."""
        return self.settings.folder if self.shard is None else self.shard.folder(self.settings.folder)

    @property
    def asking(self) -> ModelSettings:
        """Return how models are called. A shard gets its share of the concurrency."""
        return self.settings.call_settings.shared(self.shard.of if self.shard else 1)

    @property
    def expected(self) -> int:
        """Return the number of records of the complete run."""
        return len(self.cells) * len(self.asked)

    @cached_property
    def sources(self) -> dict[str, str]:
        """Return hashes of plug-ins, of files with worked examples and of replaced prompts, by their name in the
        settings."""
        return {name: content for one in self._every_strategy for name, content in one.sources.items()} | {
            f"{label}/{name}.md": digest(text) for label, texts in self.prompts.items() for name, text in texts.items()
        } | {name: content for one in self.settings.own_judges for name, content in one.sources().items()}

    @cached_property
    def questions_hash(self) -> str:
        """Return one hash of the questions with their chunks and documents."""
        return questions_hash(self.benchmark)

    @cached_property
    def schedule(self) -> Schedule | None:
        """Return the early-stopping schedule for `race`, if set. Raises SettingsError if the cells cannot be raced."""
        if self.scheduler is not None or not self.settings.race:
            return self.scheduler(self) if self.scheduler else None
        questions = {question.id: question for question in self.benchmark.questions}
        rows = [{"id": cell.id, **cell.levels} for cell in self.cells]
        return make_schedule(rows, questions, cluster_questions(questions.values(), self.scheme.unit),
                             self.scheme.headline, self.settings.scoring, self.settings.seed)

    @cached_property
    def follow_up(self) -> FollowUp | None:
        """Return the kind of follow-up calls, if the settings have `probe`."""
        return None if self.settings.probe is None else find_follow_up(self.settings.probe)

    @cached_property
    def measuring(self) -> Measuring | None:
        """Return the loaded functions of the setting `metrics`. Raises SettingsError if one cannot be loaded."""
        own = getattr(self.settings, "metrics", None)
        return own and own.open()

    def asks_citations(self, cell: str, question: Question) -> bool:
        """Return whether the prompts of a question in a cell, given by its id, ask for citations."""
        return any(one.id == cell and self.tasks(one).whole(question).cites for one in self.cells)

    def tasks(self, cell: Cell) -> Tasks:
        """Return an object that makes the tasks of one cell."""
        return Tasks(self, cell)

    @cached_property
    def sweeps(self) -> dict[str, tuple[str, float]]:
        """Return the common settings and the threshold of strategies that differ only in the threshold, by label."""
        found = {label: (_without_threshold(one), threshold) for label, one in self.strategies["reasoning"].items()
                 if (threshold := _threshold(one)) is not None}
        shared = [rest for rest, _ in found.values()]
        return {label: one for label, one in found.items() if shared.count(one[0]) > 1}

    @property
    def _every_strategy(self) -> Iterator[Strategy]:
        return (one for family in FAMILIES for one in self.strategies[family].values())


def _functions(strategies: Strategies) -> dict[tuple[Family, str], Callable[..., Any]]:
    return {(family, label): one.function for family in FAMILIES for label, one in strategies[family].items()
        if one.is_loaded}


@dataclass(frozen=True, slots=True)
class Tasks:
    """Make the tasks that the strategies of one cell see instead of questions."""

    plan: Plan
    cell: Cell

    @property
    def settings(self) -> RunSettings:
        return self.plan.settings

    @property
    def strategies(self) -> list[Strategy]:
        """Return the cell's strategies, at most one of each family."""
        return [self.plan.strategies[family][label] for family in FAMILIES
                if (label := getattr(self.cell, family)) in self.plan.strategies[family]]

    @property
    def tools(self) -> Tools:
        """Return the tools of the cell's strategies. Raises SettingsError if two have different tools."""
        pipeline = self.plan.pipelines.get(self.cell.model)
        return pipeline.called_tools if pipeline else common_tools(self.strategies)

    @property
    def reasoning(self) -> Reasoning:
        """Return the cell's reasoning strategy, which gets the question that the history strategy has rewritten."""
        if self.cell.reasoning == PIPELINE:
            return self.plan.pipelines[self.cell.model].recipe
        function: Reasoning = self.plan.functions["reasoning", self.cell.reasoning]
        history = self.cell.history
        return with_prompts(function if history is None else with_history(self.plan.functions["history", history],
                                                                          function), self.prompts)

    @property
    def prompts(self) -> Mapping[str, str]:
        """Return the texts that replace prompts in this cell, by name."""
        return self.plan.prompts.get(self.cell.prompts or "", {})

    @property
    def retrieval(self) -> Retrieval:
        """Return the cell's retrieval strategy: one search if the condition places the evidence, none if closed-book.
        """
        if self.cell.retrieval in (None, OWN):
            return RETRIEVAL["none" if self.cell.condition == "closed-book" or self.cell.retrieval == OWN else "once"]
        function: Retrieval = self.plan.functions["retrieval", self.cell.retrieval]
        return function

    def sub_answers(self, question: Question) -> SubAnswers:
        """Return how the question's sub-questions are answered, or `none` if they have no gold to score."""
        scored = "chain" in self.plan.scheme.groups and question.sub_answers
        return self.settings.sub_answers if scored else "none"

    def whole(self, question: Question) -> Task:
        """Return the question itself as a task."""
        cell, settings = self.cell, self.settings
        seed = settings.seeds[0] if cell.seed is None else cell.seed
        return Task(id=question.id, question=question.text, retrieval=self.retrieval, rules=cell.rules,
                    options=question.options, turns=question.turns, layout=settings.layout, separators=cell.separators,
                    sub_questions=question.sub_questions if cell.show == "sub_questions" else (),
                    with_sub_answers=self.sub_answers(question) == "in_prompt", about=question.about,
                    brief=settings.brief, exemplars=self.plan.exemplars, answer_format=cell.answer_format or "tags",
                    framing=cell.framing or "none", prompt_variant=cell.prompt_variant or 1,
                    language=cell.language or "english", placed=not cell.searched,
                    seed=int(digest(str(seed), cell.id)[:12], 16))

    def part(self, question: Question, place: int, text: str, evidence: Evidence) -> Task:
        """Return a sub-question as a task over the question's evidence. `text` has its references filled in."""
        return replace(self.whole(question), id=f"{question.id}, sub-question {place + 1}", question=text,
                       retrieval=RETRIEVAL["once" if evidence else "none"], options=(), turns=(), sub_questions=(),
                       rules="open" if self.cell.rules == "choice" else self.cell.rules, placed=True)


def _threshold(strategy: Strategy) -> float | None:
    """Return the strategy's threshold, or its default. The default of a plug-in is unknown until it is loaded."""
    value = strategy.values.get(_THRESHOLD)
    if value is None and not strategy.is_plugin:
        function = built_in("reasoning")[strategy.kind]
        value = parameter_default(function, _THRESHOLD) if _THRESHOLD in parameter_hints(function) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _without_threshold(strategy: Strategy) -> str:
    said = strategy.spec if isinstance(strategy.spec, Mapping) else {"kind": strategy.spec}
    return json.dumps({name: value for name, value in said.items() if name not in (_THRESHOLD, "name")}, sort_keys=True)
