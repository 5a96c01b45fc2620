"""The plan of a run: its settings resolved once, and handed down; nothing is looked up again while it goes on. From the
questions of one cell to the tasks that its strategies see: never gold."""
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
from ragbed.experiments.running.cell_matrix import Strategies, expand_matrix, finders_of, matrix_notes, strategies_of
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
from ragbed.strategies.history import in_conversation
from ragbed.strategies.settings.choosing import Strategy, known
from ragbed.strategies.settings.exemplars import read_exemplars
from ragbed.strategies.settings.parameters import default_of, hints_of
from ragbed.strategies.settings.plugins import FAMILIES, Family
from ragbed.strategies.types import Evidence, Exemplar, Reasoning, Retrieval, Task

_THRESHOLD = "threshold"


@dataclass(frozen=True)
class Plan:
    """What a run is made of.

    Attributes:
        benchmark: with the scheme by which this run scores it.
        cells: the distinct ones, in the order of the settings; the reasoning strategy varies fastest.
        strategies: every strategy that any part of the matrix names, by family and by what tables call it.
        finders: every retriever over chunks of one making that the settings describe, by name.
        exemplars: the worked examples that every prompt shows.
        notes: what was left out of the benchmark's files, that some combinations are one cell, what seeds are of.
        functions: the recipes of those strategies that were loaded, by family and by what tables call them.
        shard: the part of the run that is carried out; None for all of it. Whatever depends on all questions is that of
            the whole run.
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
        """Make the plan of a run that is to be played: its strategies are loaded, its examples read.

        Args:
            benchmark: taken as it is; None loads the settings' own, and checks that it has what they want of it.

        Raises:
            UserError: a file is missing or does not fit, or the benchmark has not what the settings want of it.
        """
        loaded = benchmark or settings.benchmark.load()
        if benchmark is None:
            loaded = replace(loaded, scheme=settings.scheme_of(loaded.questions))
        plan = cls._made(settings, loaded, strategies_of(settings, Strategy.loaded)).showing_exemplars()
        if benchmark is None:
            check_conditions(settings, plan.cells, loaded)
            check_exemplars(plan.exemplars, loaded)
            for one in plan._every_strategy:
                for file in one.exemplars:
                    check_exemplars(file.examples, loaded, f"few-shot examples: {file.file}")
            check_ids(loaded)
            asked = {question.id: question.text for question in loaded.questions}
            told = [one.check(asked, settings.repeats) for one in settings.pipelines]
            plan = replace(plan, notes=(*plan.notes, *filter(None, told)))
        return plan

    @classmethod
    def of_finished(cls, run: Finished) -> Plan:
        """Make the plan of a finished run, as `of_records` does."""
        return cls.of_records(run.path, run.scheme, run.questions.values(), run.cells)

    @classmethod
    def of_records(cls, path: Path, scheme: Scheme, questions: Iterable[Question], cells: Iterable[Cell]) -> Plan:
        """Make the plan of a run that was made, to read its folder: with its own questions and cells, its strategies as
        data; SettingsError where its settings cannot be read."""
        settings = read_settings(path / "config.yaml")
        benchmark = Benchmark(settings.name, tuple(questions), scheme=scheme)
        return cls._made(settings, benchmark, strategies_of(settings), tuple(cells))

    @classmethod
    def _made(cls, settings: RunSettings, benchmark: Benchmark, strategies: Strategies,
              cells: tuple[Cell, ...] | None = None) -> Plan:
        combinations, retrievers = list_combinations(settings), list_retrievers(settings)
        if cells is None:
            named = {one.name: one for one in retrievers}
            cells = expand_matrix(settings, benchmark, combinations, named, strategies)
        return cls(settings, benchmark, cells, strategies, finders_of(settings, retrievers), (),
                   (*note_skipped(benchmark.skipped), *matrix_notes(combinations, cells, strategies)),
                   _functions(strategies))

    def showing_exemplars(self) -> Plan:
        """Return the plan with the examples of the settings' own file; SettingsError where it cannot be read."""
        path = self.settings.exemplars
        return self if path is None else replace(self, exemplars=read_exemplars(path))

    def loading(self, labels: Mapping[Family, Collection[str]]) -> Plan:
        """Return the plan with these of its strategies loaded; SettingsError where one cannot be."""
        strategies = {family: {label: one.loaded() if label in labels[family] else one for label, one in known.items()}
                      for family, known in self.strategies.items()}
        return replace(self, strategies=strategies, functions=_functions(strategies))

    @property
    def scheme(self) -> Scheme:
        """How the questions are scored."""
        return self.benchmark.scheme

    @cached_property
    def pipelines(self) -> Mapping[str, PipelineSettings]:
        """The pipelines, by what stands in the place of a model."""
        return {one.cell_model: one for one in self.settings.pipelines}

    @property
    def models(self) -> tuple[str, ...]:
        """The models that any cell asks."""
        return tuple(dict.fromkeys(cell.model for cell in self.cells))

    @cached_property
    def asked(self) -> dict[int, Question]:
        """The questions that are carried out, by their places in the whole run."""
        return {place: one for place, one in enumerate(self.benchmark.questions)
                if self.shard is None or one.id in self.shard}

    @property
    def share(self) -> float:
        """The share of the run's questions that are carried out, which is also that of its budget."""
        return len(self.asked) / max(len(self.benchmark.questions), 1)

    @property
    def folder(self) -> Path:
        """The folder of what is carried out."""
        return self.settings.folder if self.shard is None else self.shard.folder(self.settings.folder)

    @property
    def asking(self) -> ModelSettings:
        """How models are called, by the shard where it is one."""
        return self.settings.call_settings.shared(self.shard.of if self.shard else 1)

    @property
    def expected(self) -> int:
        """How many records there are in the end."""
        return len(self.cells) * len(self.asked)

    @cached_property
    def sources(self) -> dict[str, str]:
        """Hashes of what the strategies are made of and settings only name, by how they name it: plug-ins, and files
        of worked examples."""
        return {name: content for one in self._every_strategy for name, content in one.sources.items()}

    @cached_property
    def questions_hash(self) -> str:
        """One hash over the questions and all that they bring."""
        return questions_hash(self.benchmark)

    @cached_property
    def schedule(self) -> Schedule | None:
        """The race of the cells, if the settings want one. Raises SettingsError if these cells cannot have it."""
        if not self.settings.race:
            return None
        questions = {question.id: question for question in self.benchmark.questions}
        rows = [{"id": cell.id, **cell.levels} for cell in self.cells]
        return make_schedule(rows, questions, cluster_questions(questions.values()),
                             self.scheme.columns[0].split(" / ")[0],
                             self.settings.scoring, self.settings.seed)

    @cached_property
    def follow_up(self) -> FollowUp | None:
        """What is asked about each answer, if the settings want anything."""
        return None if self.settings.probe is None else find_follow_up(self.settings.probe)

    def tasks(self, cell: Cell) -> Tasks:
        """Return what makes the tasks of one cell."""
        return Tasks(self, cell)

    @cached_property
    def sweeps(self) -> dict[str, tuple[str, float]]:
        """The reasoning strategies of which others differ in their threshold alone, by what tables call them: what
        they share, and the threshold."""
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
    """Makes what the strategies of one cell see of its questions."""

    plan: Plan
    cell: Cell

    @property
    def settings(self) -> RunSettings:
        return self.plan.settings

    @property
    def strategies(self) -> list[Strategy]:
        """The cell's strategies, of each family that it has one of."""
        return [self.plan.strategies[family][label] for family in FAMILIES
                if (label := getattr(self.cell, family)) not in (None, PIPELINE, OWN)]

    @property
    def reasoning(self) -> Reasoning:
        """The cell's reasoning strategy, over the question as its history strategy words it."""
        if self.cell.reasoning == PIPELINE:
            return self.plan.pipelines[self.cell.model].recipe
        function: Reasoning = self.plan.functions["reasoning", self.cell.reasoning]
        history = self.cell.history
        return function if history is None else in_conversation(self.plan.functions["history", history], function)

    @property
    def retrieval(self) -> Retrieval:
        """The cell's retrieval strategy; where the evidence is placed, one search for it, and none without any."""
        if self.cell.retrieval in (None, OWN):
            return RETRIEVAL["none" if self.cell.condition == "closed-book" or self.cell.retrieval == OWN else "once"]
        function: Retrieval = self.plan.functions["retrieval", self.cell.retrieval]
        return function

    def sub_answers(self, question: Question) -> SubAnswers:
        """Return how the question's sub-questions are answered: `none` where they are not scored, for want of gold."""
        scored = "chain" in self.plan.scheme.groups and question.sub_answers
        return self.settings.sub_answers if scored else "none"

    def whole(self, question: Question) -> Task:
        """Return the question itself."""
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
        """Return a sub-question, references to earlier answers filled in, over the evidence that its question had."""
        return replace(self.whole(question), id=f"{question.id}, sub-question {place + 1}", question=text,
                       retrieval=RETRIEVAL["once" if evidence else "none"], options=(), turns=(), sub_questions=(),
                       rules="open" if self.cell.rules == "choice" else self.cell.rules, placed=True)


def _threshold(strategy: Strategy) -> float | None:
    """As it is given, or the default of a strategy of the project, since others' are not known without loading them."""
    value = strategy.values.get(_THRESHOLD)
    if value is None and not strategy.is_plugin:
        function = known("reasoning")[strategy.kind]
        value = default_of(function, _THRESHOLD) if _THRESHOLD in hints_of(function) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _rest(strategy: Strategy) -> str:
    said = strategy.said if isinstance(strategy.said, Mapping) else {"kind": strategy.said}
    return json.dumps({name: value for name, value in said.items() if name not in (_THRESHOLD, "name")}, sort_keys=True)
