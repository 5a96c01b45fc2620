"""The plan of a run: its resolved settings, and the tasks that strategies see instead of questions, without gold.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ragbed.agents.settings import ModelSettings
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
from ragbed.experiments.running.hooks import FollowUp, Schedule, find_follow_up, make_schedule
from ragbed.experiments.running.preflight import check_conditions, check_exemplars, check_ids
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.manifest import questions_hash
from ragbed.experiments.settings import RunSettings, SubAnswers
from ragbed.experiments.settings.file import read_settings
from ragbed.experiments.settings.matrix import list_combinations, list_retrievers
from ragbed.experiments.settings.pipelines import PipelineSettings
from ragbed.experiments.settings.retrievers import Finder
from ragbed.experiments.statistics import cluster_questions
from ragbed.strategies.catalogue import RETRIEVAL
from ragbed.strategies.history import with_history
from ragbed.strategies.settings.exemplars import read_exemplars
from ragbed.strategies.settings.parameters import parameter_default, parameter_hints
from ragbed.strategies.settings.plugins import FAMILIES, Family
from ragbed.strategies.settings.strategy_config import Strategy, built_in
from ragbed.strategies.types import Evidence, Exemplar, Reasoning, Retrieval, Task

_THRESHOLD = "threshold"


@dataclass(frozen=True)
class Plan:
    """Everything that a run is made of.

    Attributes:
        benchmark: the benchmark, with the scheme that scores this run.
        cells: distinct, in the order of the settings; the reasoning strategy varies fastest.
        strategies: every strategy that any part of the matrix names, by family and label.
        finders: every retriever with its chunker and embedder that the settings describe, by name.
        exemplars: worked examples that every prompt shows.
        notes: notes on skipped records, on merged combinations, and on seeds.
        functions: the recipes of loaded strategies, by family and label.
        shard: the part of the run to carry out; None for the whole run. Everything that depends on all questions is
            computed from all of them even in a shard.
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

    @classmethod
    def of(cls, settings: RunSettings, benchmark: Benchmark | None = None) -> Plan:
        """Make the plan of a run to carry out, with its strategies loaded and its examples read.

        Args:
            benchmark: used without checks. None loads the benchmark of the settings and checks that it has everything
                that the settings need.

        Raises:
            UserError: a file is missing or invalid, or the benchmark lacks something that the settings need.
        """
        loaded = benchmark or settings.benchmark.load()
        if benchmark is None:
            loaded = replace(loaded, scheme=settings.scheme_of(loaded.questions))
        plan = cls._made(settings, loaded, list_strategies(settings, Strategy.loaded)).showing_exemplars()
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
        return cls._made(settings, benchmark, list_strategies(settings), tuple(cells))

    @classmethod
    def _made(cls, settings: RunSettings, benchmark: Benchmark, strategies: Strategies,
              cells: tuple[Cell, ...] | None = None) -> Plan:
        combinations, retrievers = list_combinations(settings), list_retrievers(settings)
        if cells is None:
            named = {one.name: one for one in retrievers}
            cells = expand_matrix(settings, benchmark, combinations, named, strategies)
        return cls(settings, benchmark, cells, strategies, list_finders(settings, retrievers), (),
                   (*note_skipped(benchmark.skipped), *matrix_notes(combinations, cells, strategies)),
                   _functions(strategies))

    def showing_exemplars(self) -> Plan:
        """Return the plan with the worked examples of the settings. Raises SettingsError if their file cannot be read.
        """
        path = self.settings.exemplars
        return self if path is None else replace(self, exemplars=read_exemplars(path))

    def loading(self, labels: Mapping[Family, Collection[str]]) -> Plan:
        """Return the plan with these strategies loaded. Raises SettingsError if one cannot be loaded."""
        strategies = {family: {label: one.loaded() if label in labels[family] else one for label, one in named.items()}
                      for family, named in self.strategies.items()}
        return replace(self, strategies=strategies, functions=_functions(strategies))

    @property
    def scheme(self) -> Scheme:
        """How the questions are scored."""
        return self.benchmark.scheme

    @cached_property
    def pipelines(self) -> Mapping[str, PipelineSettings]:
        """The pipelines, by their name in the factor of models."""
        return {one.cell_model: one for one in self.settings.pipelines}

    @property
    def models(self) -> tuple[str, ...]:
        """The models that any cell asks."""
        return tuple(dict.fromkeys(cell.model for cell in self.cells))

    @cached_property
    def asked(self) -> dict[int, Question]:
        """The questions to ask, by their position in the whole run."""
        return {place: one for place, one in enumerate(self.benchmark.questions)
                if self.shard is None or one.id in self.shard}

    @property
    def share(self) -> float:
        """This shard's share of the run's questions and budget."""
        return len(self.asked) / max(len(self.benchmark.questions), 1)

    @property
    def folder(self) -> Path:
        """The folder of the run, or of the shard."""
        return self.settings.folder if self.shard is None else self.shard.folder(self.settings.folder)

    @property
    def asking(self) -> ModelSettings:
        """How models are called. A shard gets its share of the concurrency."""
        return self.settings.call_settings.shared(self.shard.of if self.shard else 1)

    @property
    def expected(self) -> int:
        """The number of records of the complete run."""
        return len(self.cells) * len(self.asked)

    @cached_property
    def sources(self) -> dict[str, str]:
        """Hashes of plug-ins and files of worked examples, by their name in the settings."""
        return {name: content for one in self._every_strategy for name, content in one.sources.items()}

    @cached_property
    def questions_hash(self) -> str:
        """One hash of the questions with their chunks and documents."""
        return questions_hash(self.benchmark)

    @cached_property
    def schedule(self) -> Schedule | None:
        """The race of the cells, if the settings have `race`. Raises SettingsError if these cells cannot be raced."""
        if not self.settings.race:
            return None
        questions = {question.id: question for question in self.benchmark.questions}
        rows = [{"id": cell.id, **cell.levels} for cell in self.cells]
        return make_schedule(rows, questions, cluster_questions(questions.values()),
                             self.scheme.columns[0].split(" / ")[0],
                             self.settings.scoring, self.settings.seed)

    @cached_property
    def follow_up(self) -> FollowUp | None:
        """The follow-up on each answer, if the settings have `probe`."""
        return None if self.settings.probe is None else find_follow_up(self.settings.probe)

    def tasks(self, cell: Cell) -> Tasks:
        """Return the maker of one cell's tasks."""
        return Tasks(self, cell)

    @cached_property
    def sweeps(self) -> dict[str, tuple[str, float]]:
        """For reasoning strategies that differ from others only in their threshold, by label: the common settings, and
        the threshold."""
        found = {label: (_rest(one), threshold) for label, one in self.strategies["reasoning"].items()
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
        """The cell's strategies, at most one of each family."""
        return [self.plan.strategies[family][label] for family in FAMILIES
                if (label := getattr(self.cell, family)) not in (None, PIPELINE, OWN)]

    @property
    def reasoning(self) -> Reasoning:
        """The cell's reasoning strategy, applied to the question that the history strategy has rewritten."""
        if self.cell.reasoning == PIPELINE:
            return self.plan.pipelines[self.cell.model].recipe
        function: Reasoning = self.plan.functions["reasoning", self.cell.reasoning]
        history = self.cell.history
        return function if history is None else with_history(self.plan.functions["history", history], function)

    @property
    def retrieval(self) -> Retrieval:
        """The cell's retrieval strategy. Placed evidence is returned by a single search; closed-book has no search."""
        if self.cell.retrieval in (None, OWN):
            return RETRIEVAL["none" if self.cell.condition == "closed-book" or self.cell.retrieval == OWN else "once"]
        function: Retrieval = self.plan.functions["retrieval", self.cell.retrieval]
        return function

    def sub_answers(self, question: Question) -> SubAnswers:
        """Return how the question's sub-questions are answered: `none` if they have no gold to score."""
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
                    framing=cell.framing or "none", prompt_variant=cell.prompt_variant or 1, placed=not cell.searched,
                    seed=int(digest(str(seed), cell.id)[:12], 16))

    def part(self, question: Question, place: int, text: str, evidence: Evidence) -> Task:
        """Return a sub-question, with its references filled in, as a task over the question's evidence."""
        return replace(self.whole(question), id=f"{question.id}, sub-question {place + 1}", question=text,
                       retrieval=RETRIEVAL["once" if evidence else "none"], options=(), turns=(), sub_questions=(),
                       rules="open" if self.cell.rules == "choice" else self.cell.rules, placed=True)


def _threshold(strategy: Strategy) -> float | None:
    """Return the given threshold, or the default of a built-in strategy. A plug-in's default is unknown until it is
    loaded."""
    value = strategy.values.get(_THRESHOLD)
    if value is None and not strategy.is_plugin:
        function = built_in("reasoning")[strategy.kind]
        value = parameter_default(function, _THRESHOLD) if _THRESHOLD in parameter_hints(function) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _rest(strategy: Strategy) -> str:
    said = strategy.spec if isinstance(strategy.spec, Mapping) else {"kind": strategy.spec}
    return json.dumps({name: value for name, value in said.items() if name not in (_THRESHOLD, "name")}, sort_keys=True)
