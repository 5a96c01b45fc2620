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
from ragbed.agents.relevance_judge import RelevanceJudges, judge_notes
from ragbed.agents.types import Answer, Cost, failed_answer
from ragbed.agents.watchdog import watchdog
from ragbed.documents.errors import RunError, UserError
from ragbed.documents.shards import Shard
from ragbed.experiments.cells import Cell
from ragbed.experiments.judges import ask_judge, grading_input
from ragbed.experiments.judges.judge import GradingInput, JudgeKind, due_input, model_of, own_verdict
from ragbed.experiments.judges.passage_grades import add_grades
from ragbed.experiments.metrics import ScoredRow, may_refuse, score_result
from ragbed.experiments.query_variations import AskedQuestion, QueryVariation, vary_question
from ragbed.experiments.question import Question
from ragbed.experiments.record import Record, Result, Support, Verdict
from ragbed.experiments.running.budget import Spending, check_prices
from ragbed.experiments.running.cell_runner import (
    CellRunner,
    StoredChunks,
    add_cost,
    answer_subs,
    make_record,
    make_result,
)
from ragbed.experiments.running.fingerprint import identities
from ragbed.experiments.running.gold import Places, match
from ragbed.experiments.running.hooks import RunJobs, Schedule, open_control, refresh_metrics
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
from ragbed.experiments.running.preflight import (
    RunSession,
    SearchesChanged,
    check_divisible,
    preflight_notes,
    prepare_run,
)
from ragbed.experiments.running.replay import Replay
from ragbed.experiments.running.resources import Resources
from ragbed.experiments.running.reuse import Reuse, ReusingClient
from ragbed.experiments.running.summary import summarise
from ragbed.experiments.runs.finished import freeze_startup_objects
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.settings import RunSettings
from ragbed.guests import entries, load
from ragbed.retrieval.index import Index
from ragbed.retrieval.types import Progress, RerankerDeps
from ragbed.strategies.prompting import replace_prompts
from ragbed.strategies.types import Usage

_REPLAY_WINDOW = 32  # a replay plays this many questions at once, which share a commit


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The state of a run just before its first call.

    Attributes:
        questions: the number of questions that each cell has.
        done: the (cell, question) pairs that already have a record.
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
        stage: called while an index is built.
        started: called once before the first call, unless nothing is left to ask.
        record: called after each record.
        note: called with each note: before the run on likely mistakes, at the end on grading.
        searched: called once after the last question, before indexes are closed.
    """

    stage: Progress
    started: Callable[[RunStarted], None]
    record: Callable[[Record], None]
    note: Callable[[str], None] = lambda text: None
    searched: Callable[[Resources], None] = lambda resources: None


async def run(settings: RunSettings, callbacks: RunCallbacks, mode: Mode = "record", again: bool = False,
              fresh: bool = False, replay: Replay | None = None, shard: Shard | None = None,
              scheduler: Callable[[Plan], Schedule] | None = None) -> RunFolder:
    """Run or continue an experiment and write its summary.

    Args:
        mode: how the journal is used.
        again: make every record again.
        fresh: remove the files of an earlier run, including its journal, after all checks have passed.
        replay: the cassette from which calls and searches are replayed; needs the mode `replay`.
        shard: the part of the run to carry out, in its own folder and without a summary; None for all of it.
        scheduler: makes the schedule that chooses the questions of each cell; see `Plan`.

    Returns:
        the open folder of the finished run, or of the shard with all its records.

    Raises:
        RunError: the folder holds a damaged run, or another process works on it.
        BudgetSpent: the run spent its budget before the end, so there is no summary.
        UserError: another error that the user can correct; records made so far are kept.
    """
    plan = replace(Plan.of(settings), shard=shard, scheduler=scheduler)
    check_divisible(plan)
    spending = Spending(settings.budget.scale(plan.share), mode)
    if mode != "replay":
        check_prices(settings, plan.models)
    searches: Sequence[str] = ()
    while True:
        try:
            session = prepare_run(plan, fresh, replay, searches)
            return await _run(plan, session, spending, callbacks, mode, again, fresh)
        except SearchesChanged as error:  # start again as if the settings had changed
            searches = error.names


async def _run(plan: Plan, session: RunSession, spending: Spending, callbacks: RunCallbacks, mode: Mode, again: bool,
               fresh: bool) -> RunFolder:
    with ExitStack() as undone:
        undone.callback(session.close)
        if mode == "replay" and session.replay is None:
            session.check_whole()
        there = session.done()
        done = set() if again else there - _pending(plan, session.folder)
        before = session.folder.results() if plan.schedule and done and session.folder else ()
        answers = group_results(one for one in before if (one.cell, one.question) in done)
        jobs = jobs_left(plan, done, answers)
        stage = _interruptible(callbacks.stage, lambda: spending.check(plan, there) if jobs else None)
        resources = Resources(plan)
        async with open_resources(plan, resources, session, mode if jobs else None, stage):
            folder = session.begin(resources.contents(), {} if mode == "replay" else resources.servers())
            resources.cache.searches.begin(folder.database, mode)
            if session.changes:
                more = f", and {len(session.changes) - 3} more" if len(session.changes) > 3 else ""
                callbacks.note(f"changed since the last run: {'; '.join(session.changes[:3])}{more}")
            for text in refresh_metrics(plan, folder):
                callbacks.note(text)
            if jobs:
                again = fresh or mode == "live"
                with Reuse.opened(plan.settings, folder.database, again, callbacks.note) as reuse:
                    await _run_jobs(jobs, done, JobExecutor(plan, folder, resources, Journal(folder.database, mode),
                                                            callbacks, spending, answers, reuse))
            callbacks.searched(resources)
        with freeze_startup_objects():
            folder.keep_records(plan.schedule.due(answers) if plan.schedule else {
                (cell.id, question.id) for cell in plan.cells for question in plan.asked.values()})
            folder.drop_earlier()
            if plan.shard is None:
                folder.finish(summarise(plan, folder, len(plan.exemplars)))
            else:
                folder.seal()
        undone.pop_all()
        return folder


def check_all(runs: Sequence[RunSettings], fresh: bool = False, replay: bool = False,
              shard: Shard | None = None) -> None:
    """Check before the first call that each run, or its shard, can start. Raises RunError that names one that cannot.
    """
    for settings in runs:
        try:
            _check(replace(Plan.of(settings), shard=shard), fresh, replay)
        except UserError as error:
            raise RunError(f"{settings.name}: {error}; no run was started") from error


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
    follow_up = plan.follow_up
    if follow_up is None or folder is None:
        return set()
    questions = {question.id: question for question in plan.benchmark.questions}
    return {(result.cell, result.question) for result in folder.results(traces=True)
            if not result.probes and follow_up.is_due(
                result, plan.asks_citations(result.cell, questions[result.question]))}


def _interruptible(progress: Progress, check: Callable[[], None]) -> Progress:
    """Return a progress function that also calls `check` and raises after an interrupt."""
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
    if not replayed:  # during a replay, keep the earlier figures until the end
        folder.reopen()
    callbacks.started(RunStarted(plan.cells, len(plan.asked), done, spending,
                                 list(executor.resources.clients.values())))
    notes = [*preflight_notes(plan, executor.resources),
             *(() if replayed else prefix_notes(plan, executor.resources))]
    for text in notes:
        callbacks.note(text)
    with freeze_startup_objects(), watchdog(), open_control(folder.path, callbacks.note) as run_jobs:
        await _play(jobs, executor, run_jobs)
        while plan.schedule and not spending.stopped and (jobs := jobs_left(plan, done, executor.answers)):
            await _play(jobs, executor, run_jobs)
    for text in (*judge_notes(executor.resources.deps), executor.reuse.describe(spending.calls)):
        if text:
            callbacks.note(text)
    if spending.stopped:
        spending.end(plan, folder.done())


async def _play(jobs: Sequence[Job], executor: JobExecutor, run_jobs: RunJobs) -> None:
    """Carry out jobs until the budget is spent. Each model has its own queue, so that none delays the others."""
    settings, resources, replayed = executor.plan.settings, executor.resources, executor.journal.mode == "replay"

    async def ask_model(name: str) -> None:
        for turn in group_turns([job for job in jobs if job.cell.model == name], settings.only_searches):
            ordered = sort_by_prefix(turn, lambda job: prompt_prefix(job, settings.layout, resources))
            affordable = executor.spending.affordable(ordered)
            await (run_bounded(affordable, _REPLAY_WINDOW, executor.carry_out) if replayed else
                   run_jobs(affordable, resources.clients[name], executor.carry_out))

    models = list(dict.fromkeys(job.cell.model for job in jobs))
    async with executor.spending.in_time():
        await run_bounded(models, len(models), ask_model)


class JobExecutor:
    """Carry out jobs: ask, match gold, judge, check support, score, and store the record."""

    def __init__(self, plan: Plan, folder: RunFolder, resources: Resources, journal: Journal,
                 callbacks: RunCallbacks, spending: Spending, answers: dict[str, dict[str, ScoredRow]],
                 reuse: Reuse) -> None:
        settings, self.reuse = plan.settings, reuse
        self.plan, self.settings, self.folder, self.spending = plan, settings, folder, spending
        self.resources, self.journal, self.callbacks, self.answers = resources, journal, callbacks, answers
        self._runners: dict[tuple[str, int], CellRunner] = {}
        self._chunks = StoredChunks(folder.database, resources.source_of)
        self._judge_model, self._support_model, self._refusal_model, self._paraphraser = (
            self._model(resources.clients[name]) if name else None for name in settings.judging_models)
        target = entries("refusal").get("settle")
        self._settle = load(target) if target else None
        judges = RelevanceJudges(lambda name: self._model(resources.clients[name]), settings.limits)
        resources.deps, self._grader = RerankerDeps(judges), judges(settings.grader) if settings.grader else None

    async def carry_out(self, job: Job) -> None:
        """Make the record of one job."""
        with replace_prompts(self.plan.tasks(job.cell).prompts):
            record = await self._record(job)
        kept = self._finish_timing(record)
        follow_up = self.plan.follow_up
        if follow_up is not None and follow_up.is_due(
                record.result, self.plan.asks_citations(job.cell.id, job.question)):
            probes, cost = await follow_up.ask(record.result, job.question, partial(self._runner, job.cell),
                                               job.cell.repeat, partial(self._judge, job.question))
            result = self._score(job, record.result.model_copy(update={"probes": probes}))
            record, kept = (add_cost(one, result, cost) for one in (record, kept))
        await self.folder.add(kept, job.place)
        if self.plan.schedule:
            self.answers[job.cell.id] |= group_results([record.result])[job.cell.id]
        self.callbacks.record(record)

    async def _record(self, job: Job) -> Record:
        cell, question, settings, resources, scheme = (job.cell, job.question, self.settings, self.resources,
                                                       self.plan.scheme)
        runner = self._runner(cell, cell.repeat)
        # 1. Vary the question as the cell requires, and answer it.
        asked = ExchangeResult(AskedQuestion(question.text))
        if cell.variation is not None:
            seed = settings.seed if cell.seed is None else cell.seed
            asked = await vary_question(QueryVariation.parse(cell.variation), question.text, f"{seed}:{question.id}",
                                        self._paraphraser, self._deadline)
        worded = question if asked.end.text == question.text else replace(question, text=asked.end.text)
        answer = await runner.answer(worded) if asked.end.failure is None else failed_answer(asked.end.failure)
        deciding = self._refusal_model if may_refuse(cell.rules) else None
        settled: ExchangeResult[Answer] = ExchangeResult(answer) if self._settle is None else await self._settle(
            answer, question, settings, deciding, self._deadline)
        answer, levels = resources.match_contexts(cell, question, settled.end)
        subs = await answer_subs(runner, question, answer, self.folder.database)
        # 2. Match the evidence with the gold.
        view = match(resources.gold(cell, question), answer.ranked, resources.source_of,
                     question.id if scheme.itself_ignored else None, levels)
        result = make_result(cell, question, resources.answerable(cell, question), answer, view, self._chunks)
        if settings.grader and self._grader and cell.ranked:
            texts = {passage.number: passage.chunk.content for passage in answer.ranked}
            result = await add_grades(result, question, self._grader, texts, settings.grader.depth)
        # 3. Judge, check support and score.
        judged, judgements = await self._judge(question, result), await self._ask_own_judges(question, result)
        checked = await self._check_support(result, question, cell, answer)
        result = result.model_copy(update={
            "verdict": judged.end, "judgements": judgements.end,
            "judge_usage": judged.usage + judgements.usage + checked.usage + settled.usage, "support": checked.end,
            "subs": subs.stored, "sub_usage": subs.usage,
            "asked": asked.end.text * (asked.end.text != question.text), "asked_usage": asked.usage,
            "notes": (*result.notes, *filter(None, [asked.end.note]))})
        return make_record(self._score(job, result), answer.cost + subs.cost + settled.cost + judged.cost
                           + judgements.cost + checked.cost + asked.cost)

    async def _judge(self, question: Question, result: Result) -> ExchangeResult[Verdict | None]:
        judge, due = self.settings.judge, grading_input(result, question, self.plan.scheme, self.settings.scoring)
        if judge.is_own and due is not None:
            due = self._due(judge, question, result)
        return await ask_judge(judge, self._judge_model, due, self._deadline)

    def _due(self, judge: JudgeKind, question: Question, result: Result) -> GradingInput | None:
        return due_input(judge, result, question, self.plan.scheme, self.settings.scoring, self.folder.database.text)

    async def _ask_own_judges(self, question: Question, result: Result) -> ExchangeResult[tuple[Verdict, ...]]:
        """Return the verdicts of the judges with a column of their own. Equal calls of the first judge are made once.
        """
        found: list[Verdict] = []
        usage, cost = Usage(), Cost()
        for judge in () if result.outcome == "searched" else self.settings.own_judges:
            model = self._model(self.resources.clients[name]) if (name := model_of(judge)) else None
            one = await ask_judge(judge, model, self._due(judge, question, result), self._deadline)
            found += filter(None, [own_verdict(judge, result, question, one.end)])
            usage, cost = usage + one.usage, cost + one.cost
        return ExchangeResult(tuple(found), usage, cost)

    def _score(self, job: Job, result: Result) -> Result:
        cell, own = job.cell, self.plan.measuring
        rescore = partial(score_result, question=job.question, scheme=self.plan.scheme, scoring=self.settings.scoring,
                          rules=cell.rules, separators=cell.separators, searched=cell.ranked)
        scored = rescore(result)
        return scored if own is None else rescore(own.measure(scored, job.question, cell, self.folder.database.text))

    async def _check_support(self, result: Result, question: Question, cell: Cell,
                             answer: Answer) -> ExchangeResult[Support | None]:
        check = getattr(self.settings, "support", None)
        if check is None:
            return ExchangeResult(None)
        gold = Places(question.own, self.resources.source_of).gold(question.gold) if check.makes_nuggets else ()
        texts = {passage.number: passage.chunk.content for passage in answer.ranked}
        checked: ExchangeResult[Support | None] = await check.check_answer(
            result, question, cell, texts, [chunk.content for chunk in gold], self._support_model, self._deadline)
        return checked

    def _deadline(self) -> float:
        return time.monotonic() + self.settings.limits.seconds

    def _finish_timing(self, record: Record) -> Record:
        """Return the record in its stored form. An answer from the journal keeps its original duration."""
        result, now = record.result, record.timing
        missed = result.failure is not None and result.failure.kind == "replay_miss"
        before = None if now.attempts or missed else self.folder.timing(result.cell, result.question)
        if before is None:
            return record
        return record.model_copy(update={"timing": before.model_copy(update={"replayed": now.replayed})})

    def _runner(self, cell: Cell, repeat: int) -> CellRunner:
        if (cell.id, repeat) not in self._runners:
            model = self._model(self.resources.clients[cell.model], repeat)
            self._runners[cell.id, repeat] = CellRunner(self.plan.tasks(cell), model, self.resources)
        return self._runners[cell.id, repeat]

    def _model(self, client: ModelClient, repeat: int = 0) -> Model:
        reusing = ReusingClient(client, self.spending, self.reuse)
        return Model(reusing, self.journal, self.settings.limits.max_tokens, repeat)
