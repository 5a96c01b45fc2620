"""The runner asks every question in every cell, many concurrently, and makes exactly one record of each."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from ragbed.agents.client import ModelClient
from ragbed.agents.journal import ExchangeResult, Journal, Mode, Model
from ragbed.agents.limits import run_bounded
from ragbed.agents.relevance import RelevanceJudges, judge_notes
from ragbed.agents.types import Answer, failed_answer
from ragbed.agents.watchdog import watchdog
from ragbed.documents.errors import RunError, UserError
from ragbed.documents.shards import Shard
from ragbed.experiments.cells import Cell
from ragbed.experiments.judges import ModelJudge, ModelSupport, ask_judge, ask_support, extract_claims, grading_input
from ragbed.experiments.judges.relevance import add_grades
from ragbed.experiments.metrics import ScoredRow, score_result
from ragbed.experiments.query_variations import QueryVariation, vary_question
from ragbed.experiments.question import Question
from ragbed.experiments.record import Record, Result, Support, Verdict
from ragbed.experiments.running.budget import Metered, Spending, check_prices
from ragbed.experiments.running.cassette import Replay
from ragbed.experiments.running.fingerprint import identities
from ragbed.experiments.running.gold import Places, match
from ragbed.experiments.running.jobs import (
    Job,
    group_results,
    group_turns,
    jobs_left,
    prefix_notes,
    prompt_prefix,
    sort_by_prefix,
)
from ragbed.experiments.running.open_resources import open_resources
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.play import CellRunner, add_cost, answer_subs, make_record, make_result
from ragbed.experiments.running.preflight import check_divisible, preflight_notes, prepare_run
from ragbed.experiments.running.resources import Resources
from ragbed.experiments.running.summary import summarise
from ragbed.experiments.runs.finished import freeze_startup_objects
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.settings import RunSettings
from ragbed.retrieval.index import Index
from ragbed.retrieval.rerankers.reranker import RerankerDeps
from ragbed.retrieval.types import Progress

_REPLAY_WINDOW = 32  # concurrent questions, which share a commit; a replay asks no server


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run just before its first call.

    Attributes:
        questions: the number of questions that each cell has.
        done: the (cell, question) pairs whose records are kept.
        clients: the client of every model, judge included.
    """

    cells: Sequence[Cell]
    questions: int
    done: Collection[tuple[str, str]]
    spending: Spending
    clients: Sequence[ModelClient]


@dataclass(frozen=True, slots=True)
class RunCallbacks:
    """Functions that are called as a run goes on.

    Attributes:
        stage: while an index is built.
        started: once before the first call, if there is anything to ask.
        record: after each record.
        note: for each note: on likely mistakes, and at the end on grading.
        searched: once, after the last question, before indexes are closed.
    """

    stage: Progress
    started: Callable[[RunStarted], None]
    record: Callable[[Record], None]
    note: Callable[[str], None] = lambda text: None
    searched: Callable[[Resources], None] = lambda resources: None


async def run(settings: RunSettings, callbacks: RunCallbacks, mode: Mode = "record", again: bool = False,
              fresh: bool = False, replay: Replay | None = None, shard: Shard | None = None) -> RunFolder:
    """Run or continue an experiment and write its summary.

    Args:
        mode: how the journal is used.
        again: remake every record.
        fresh: once all checks have passed, remove the files of an earlier run, including its journal.
        replay: the cassette that calls and searches come from; needs the mode `replay`.
        shard: the part of the run to carry out, in its own folder and without a summary; None for all of it.

    Returns:
        the open folder of the finished run, or of the shard with all its records.

    Raises:
        RunError: the folder holds another run, or its index has changed.
        BudgetSpent: the budget was spent before the end, so that there is no summary.
        UserError: another error that the user can correct; records made so far are kept.
    """
    plan = replace(Plan.of(settings), shard=shard)
    check_divisible(plan)
    spending = Spending(settings.budget.scale(plan.share), mode)
    if mode != "replay":
        check_prices(settings, plan.models)
    session = prepare_run(plan, fresh, replay)
    with ExitStack() as undone:
        undone.callback(session.close)
        if mode == "replay" and replay is None:
            session.check_whole()
        there = session.done()
        done = set() if again else there - _pending(plan, session.folder)
        before = session.folder.results() if plan.schedule and done and session.folder else ()
        answers = group_results(one for one in before if (one.cell, one.question) in done)
        jobs = jobs_left(plan, done, answers)
        stage = _interruptible(callbacks.stage, lambda: spending.check(plan, there) if jobs else None)
        resources = Resources(plan)
        async with open_resources(plan, resources, session, mode if jobs else None, stage):
            folder = session.begin(resources.contents())
            resources.cache.searches.begin(folder.database, mode)
            if jobs:
                await _run_jobs(jobs, done, JobExecutor(plan, folder, resources, Journal(folder.database, mode),
                                                        callbacks, spending, answers))
            callbacks.searched(resources)
        with freeze_startup_objects():
            folder.keep_records(plan.schedule.due(answers) if plan.schedule else {
                (cell.id, question.id) for cell in plan.cells for question in plan.asked.values()})
            if shard is None:
                folder.finish(summarise(plan, folder, len(plan.exemplars)))
        undone.pop_all()
        return folder


def check_all(runs: Sequence[RunSettings], fresh: bool = False, replay: bool = False,
              shard: Shard | None = None) -> None:
    """Check before the first call that each of several runs, or its shard, can begin. Raises RunError with the name of
    the run that cannot."""
    for settings in runs:
        try:
            _check(replace(Plan.of(settings), shard=shard), fresh, replay)
        except UserError as error:
            raise RunError(f"{settings.name}: {error}; none of the runs was started") from error


def _check(plan: Plan, fresh: bool, replay: bool) -> None:
    check_divisible(plan)
    if not replay:
        check_prices(plan.settings, plan.models)
    searched = {str(cell.finder) for cell in plan.cells if cell.format is not None and not replay}
    for folder in {plan.finders[name].retriever.index for name in searched} - {None}:
        Index.open(str(folder))
    if fresh or not (plan.folder / "records.sqlite").exists():
        identities(plan, {})
    else:
        prepare_run(plan).close()


def _pending(plan: Plan, folder: RunFolder | None) -> set[tuple[str, str]]:
    """Return the (cell, question) pairs whose answers still need the follow-up."""
    follow_up = plan.follow_up
    if follow_up is None or folder is None:
        return set()
    questions = {question.id: question for question in plan.benchmark.questions}
    return {(result.cell, result.question) for result in folder.results(traces=True)
            if not result.probes and follow_up.is_due(result, questions[result.question], plan)}


def _interruptible(progress: Progress, check: Callable[[], None]) -> Progress:
    """Return a progress function that also raises after an interrupt and calls `check`, because building an index
    blocks the event loop."""
    running = asyncio.current_task()

    def on_progress(stage: str, done: int, total: int | None) -> None:
        if running is not None and running.cancelling():
            raise asyncio.CancelledError
        check()
        progress(stage, done, total)

    return on_progress


async def _run_jobs(jobs: Sequence[Job], done: Collection[tuple[str, str]], executor: JobExecutor) -> None:
    folder, callbacks, plan, spending = executor.folder, executor.callbacks, executor.plan, executor.spending
    spending.recall(folder.database)
    spending.check(plan, folder.done())
    replayed = executor.journal.mode == "replay"
    if not replayed:  # a replayed run keeps its figures until it ends
        folder.reopen()
    callbacks.started(RunStarted(plan.cells, len(plan.asked), done, spending,
                                 list(executor.resources.clients.values())))
    notes = [*preflight_notes(plan, executor.resources),
             *(() if replayed else prefix_notes(plan, executor.resources))]
    for text in notes:
        callbacks.note(text)
    with freeze_startup_objects(), watchdog():
        await _play(jobs, executor)
        while plan.schedule and not spending.stopped and (jobs := jobs_left(plan, done, executor.answers)):
            await _play(jobs, executor)
    for text in judge_notes(executor.resources.deps):
        callbacks.note(text)
    if spending.stopped:
        spending.end(plan, folder.done())


async def _play(jobs: Sequence[Job], executor: JobExecutor) -> None:
    """Carry out jobs until the budget is spent. Each model has its own window, so that a slow model does not delay the
    others."""
    settings, resources, replayed = executor.plan.settings, executor.resources, executor.journal.mode == "replay"

    async def ask_model(name: str) -> None:
        for turn in group_turns([job for job in jobs if job.cell.model == name], settings.only_searches):
            ordered = sort_by_prefix(turn, lambda job: prompt_prefix(job, settings.layout, resources))
            window = _REPLAY_WINDOW if replayed else resources.clients[name].limits.concurrency
            await run_bounded(executor.spending.affordable(ordered), window, executor.carry_out)

    models = list(dict.fromkeys(job.cell.model for job in jobs))
    async with executor.spending.in_time():
        await run_bounded(models, len(models), ask_model)


class JobExecutor:
    """Carry out jobs: ask, match gold, judge, check support, score, and store the record."""

    def __init__(self, plan: Plan, folder: RunFolder, resources: Resources, journal: Journal,
                 callbacks: RunCallbacks, spending: Spending, answers: dict[str, dict[str, ScoredRow]]) -> None:
        settings = plan.settings
        self.plan, self.settings, self.folder, self.spending = plan, settings, folder, spending
        self.resources, self.journal, self.callbacks, self.answers = resources, journal, callbacks, answers
        self._runners: dict[tuple[str, int], CellRunner] = {}
        judging = [one.model if isinstance(one, ModelJudge | ModelSupport) else None
                   for one in (settings.judge, settings.support)]
        self._judge_model, self._support_model, self._paraphraser = (
            self._model(resources.clients[name]) if name else None for name in (*judging, settings.paraphrasing_model))
        judges = RelevanceJudges(lambda name: self._model(resources.clients[name]), settings.limits)
        resources.deps, self._grader = RerankerDeps(judges), judges(settings.grader) if settings.grader else None

    async def carry_out(self, job: Job) -> None:
        """Make the record of one job."""
        record = await self._record(job)
        kept = self._timed(record)
        follow_up = self.plan.follow_up
        if follow_up is not None and follow_up.is_due(record.result, job.question, self.plan):
            probes, cost = await follow_up.ask(record.result, job.question, partial(self._runner, job.cell),
                                               job.cell.repeat, partial(self._judge, job.question))
            result = self._scored(job, record.result.model_copy(update={"probes": probes}))
            record, kept = (add_cost(one, result, cost) for one in (record, kept))
        await self.folder.add(kept, job.place)
        if self.plan.schedule:
            self.answers[job.cell.id] |= group_results([record.result])[job.cell.id]
        self.callbacks.record(record)

    async def _record(self, job: Job) -> Record:
        cell, question, settings, resources, scheme = (job.cell, job.question, self.settings, self.resources,
                                                       self.plan.scheme)
        runner = self._runner(cell, cell.repeat)
        seed = settings.seed if cell.seed is None else cell.seed
        # 1. Vary the question as the cell requires, and answer it.
        variation = QueryVariation.parse(cell.variation or "as_asked")
        asked = await vary_question(variation, question.text, f"{seed}:{question.id}", self._paraphraser,
                                    self._deadline)
        worded = question if asked.end.text == question.text else replace(question, text=asked.end.text)
        answer = await runner.answer(worded) if asked.end.failure is None else failed_answer(asked.end.failure)
        answer, levels = resources.match_contexts(cell, question, answer)
        subs = await answer_subs(runner, question, answer, self.folder.database)
        # 2. Match the evidence with the gold.
        view = match(resources.gold(cell, question), answer.ranked, resources.source_of,
                     question.id if scheme.itself_ignored else None, levels)
        result = make_result(cell, question, resources.answerable(cell, question), answer, view, resources.source_of,
                             self.folder.database)
        if settings.grader and self._grader and cell.ranked:
            texts = {passage.number: passage.chunk.content for passage in answer.ranked}
            result = await add_grades(result, question, self._grader, texts, settings.grader.depth)
        # 3. Judge, check support and score.
        judged = await self._judge(question, result)
        checked = await self._check_support(result, question, cell, answer)
        result = result.model_copy(update={
            "verdict": judged.end, "judge_usage": judged.usage + checked.usage, "support": checked.end,
            "subs": subs.stored, "sub_usage": subs.usage,
            "asked": asked.end.text * (asked.end.text != question.text), "asked_usage": asked.usage,
            "notes": (*result.notes, *filter(None, [asked.end.note]))})
        return make_record(self._scored(job, result), answer.cost + subs.cost + judged.cost + checked.cost + asked.cost)

    async def _judge(self, question: Question, result: Result) -> ExchangeResult[Verdict | None]:
        due = grading_input(result, question, self.plan.scheme, self.settings.scoring)
        return await ask_judge(self.settings.judge, self._judge_model, due, self._deadline)

    def _scored(self, job: Job, result: Result) -> Result:
        cell, settings = job.cell, self.settings
        return score_result(result, job.question, self.plan.scheme, settings.scoring, cell.rules, cell.separators,
                             cell.ranked)

    async def _check_support(self, result: Result, question: Question, cell: Cell,
                             answer: Answer) -> ExchangeResult[Support | None]:
        check = self.settings.support
        if check is None:
            return ExchangeResult(None)
        gold = Places(question.own, self.resources.source_of).gold(question.gold) if check.makes_nuggets else ()
        texts = {passage.number: passage.chunk.content for passage in answer.ranked}
        claims = extract_claims(result, question, cell, texts, check, [chunk.content for chunk in gold])
        return await ask_support(check, self._support_model, claims, self._deadline)

    def _deadline(self) -> float:
        return time.monotonic() + self.settings.limits.seconds

    def _timed(self, record: Record) -> Record:
        """Return the record in its stored form. A result from the journal keeps its original duration."""
        result, now = record.result, record.timing
        before = self.folder.timing(result.cell, result.question)
        missed = result.failure is not None and result.failure.kind == "replay_miss"
        if before is None or now.attempts or missed:
            return record
        return record.model_copy(update={"timing": before.model_copy(update={"replayed": now.replayed})})

    def _runner(self, cell: Cell, repeat: int) -> CellRunner:
        if (cell.id, repeat) not in self._runners:
            model = self._model(self.resources.clients[cell.model], repeat)
            self._runners[cell.id, repeat] = CellRunner(self.plan.tasks(cell), model, self.resources.shown)
        return self._runners[cell.id, repeat]

    def _model(self, client: ModelClient, repeat: int = 0) -> Model:
        return Model(Metered(client, self.spending), self.journal, self.settings.limits.max_tokens, repeat)
