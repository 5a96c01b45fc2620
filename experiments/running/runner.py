"""The runner: every question in every cell, in a sliding window, each with exactly one record."""
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
from ragbed.documents.shards import Shard
from ragbed.experiments.cells import Cell
from ragbed.experiments.judges import ModelJudge, ModelSupport, ask_judge, ask_support, claims_of, graded_of
from ragbed.experiments.judges.relevance import with_grades
from ragbed.experiments.metrics import ScoredRow, scored_result
from ragbed.experiments.query_variations import QueryVariation, asked_in
from ragbed.experiments.question import Question
from ragbed.experiments.record import Record, Result, Support, Verdict
from ragbed.experiments.running.budget import Metered, Spending, check_prices
from ragbed.experiments.running.cassette import Replay
from ragbed.experiments.running.checks import check_divisible, preflight
from ragbed.experiments.running.gold import Places, match
from ragbed.experiments.running.jobs import (
    Job,
    group_results,
    jobs_left,
    on_prefixes,
    prefix_of,
    side_by_side,
    turns_of,
)
from ragbed.experiments.running.open_resources import open_resources
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.play import CellPlayer, add_cost, make_record, make_result, subs_of
from ragbed.experiments.running.prepare import prepare_run
from ragbed.experiments.running.resources import Resources
from ragbed.experiments.running.summary import summarise
from ragbed.experiments.runs.finished import start_up_kept
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.settings import RunSettings
from ragbed.retrieval.rerankers.reranker import Aids
from ragbed.retrieval.types import Progress

_REPLAYED_AT_ONCE = 32  # no server is asked; so many share a commit


@dataclass(frozen=True, slots=True)
class Begun:
    """A run whose first call comes next."""

    cells: Sequence[Cell]
    questions: int  # how many each cell has
    done: Collection[tuple[str, str]]  # the (cell, question) pairs that have a record and keep it
    spending: Spending
    clients: Sequence[ModelClient]  # of every model, the judge's included


@dataclass(frozen=True, slots=True)
class RunWatch:
    """Who wants to know how the run goes."""

    stage: Progress  # while an index is built
    begun: Callable[[Begun], None]  # once, where there is anything to do
    record: Callable[[Record], None]  # after each record
    note: Callable[[str], None] = lambda text: None  # what looks like a mistake; at last what judges graded
    searched: Callable[[Resources], None] = lambda resources: None  # once all was, before it is closed


async def run(settings: RunSettings, watch: RunWatch, mode: Mode = "record", again: bool = False,
              fresh: bool = False, replay: Replay | None = None, shard: Shard | None = None) -> RunFolder:
    """Carry out or continue a run, and write its summary; of a shard nothing but its records, to be merged.

    Args:
        mode: of the journal.
        again: make every record of the run anew, each in the place of the one before.
        fresh: remove what an earlier run left, its journal too, once all that can be checked was.
        replay: the cassette that calls and searches are from; goes with the mode `replay`.
        shard: the part of the run that is carried out, in a folder of its own; None for all of it.

    Returns:
        the folder of the finished run, or of the shard with all its records, open.

    Raises:
        RunError: the folder holds another run, or one over an index that has changed.
        BudgetSpent: the budget was spent before the end; without a summary, and so unfinished.
        UserError: what the user can mend; records made so far are kept.
    """
    plan = replace(Plan.of(settings), shard=shard)
    check_divisible(plan)
    spending = Spending(settings.budget.shared(plan.share), mode)
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
        stage = _interruptible(watch.stage, lambda: spending.check(plan, there) if jobs else None)
        resources = Resources(plan)
        async with open_resources(plan, resources, session, mode if jobs else None, stage):
            folder = session.begin(resources.contents())
            resources.recording.searches.begin(folder.database, mode)
            if jobs:
                await _session(jobs, done, _Work(plan, folder, resources, Journal(folder.database, mode), watch,
                                                 spending, answers))
            watch.searched(resources)
        with start_up_kept():
            folder.keep_records(plan.schedule.due(answers) if plan.schedule else {
                (cell.id, question.id) for cell in plan.cells for question in plan.asked.values()})
            if shard is None:
                folder.finish(summarise(plan, folder, len(plan.exemplars)))
        undone.pop_all()
        return folder


def _pending(plan: Plan, folder: RunFolder | None) -> set[tuple[str, str]]:
    """Return the (cell, question) pairs with an answer that the follow-up has still to ask about."""
    follow_up = plan.follow_up
    if follow_up is None or folder is None:
        return set()
    questions = {question.id: question for question in plan.benchmark.questions}
    return {(result.cell, result.question) for result in folder.results(traces=True)
            if not result.probes and follow_up.is_due(result, questions[result.question], plan)}


def _interruptible(progress: Progress, check: Callable[[], None]) -> Progress:
    """Look for an interrupt, and call `check`, as an index is built, which gives the event loop no turn."""
    running = asyncio.current_task()

    def told(stage: str, done: int, total: int | None) -> None:
        if running is not None and running.cancelling():
            raise asyncio.CancelledError
        check()
        progress(stage, done, total)

    return told


async def _session(jobs: Sequence[Job], done: Collection[tuple[str, str]], work: _Work) -> None:
    folder, watch, plan, spending = work.folder, work.watch, work.plan, work.spending
    spending.recall(folder.database)
    spending.check(plan, folder.done())
    if work.journal.mode != "replay":  # a replay gives what is there, so its figures stay until it ends
        folder.reopen()
    watch.begun(Begun(plan.cells, len(plan.asked), done, spending, list(work.resources.clients.values())))
    asked = work.journal.mode != "replay"
    for text in [*preflight(plan, work.resources), *(on_prefixes(plan, work.resources) if asked else ())]:
        watch.note(text)
    with start_up_kept(), watchdog():
        await _play(jobs, work)
        while plan.schedule and not spending.stopped and (jobs := jobs_left(plan, done, work.answers)):
            await _play(jobs, work)
    for text in judge_notes(work.resources.aids):
        watch.note(text)
    if spending.stopped:
        spending.end(plan, folder.done())


async def _play(jobs: Sequence[Job], work: _Work) -> None:
    """Each model has its own window, so that a slow one does not hold up the others. Ends early with the budget."""
    settings, resources, replayed = work.plan.settings, work.resources, work.journal.mode == "replay"

    async def of_model(name: str) -> None:
        for turn in turns_of([job for job in jobs if job.cell.model == name], settings.only_searches):
            own = side_by_side(turn, lambda job: prefix_of(job, settings.layout, resources))
            at_once = _REPLAYED_AT_ONCE if replayed else resources.clients[name].limits.concurrency
            await run_bounded(work.spending.affordable(own), at_once, work.carry_out)

    models = list(dict.fromkeys(job.cell.model for job in jobs))
    async with work.spending.in_time():
        await run_bounded(models, len(models), of_model)


class _Work:
    def __init__(self, plan: Plan, folder: RunFolder, resources: Resources, journal: Journal,
                 watch: RunWatch, spending: Spending, answers: dict[str, dict[str, ScoredRow]]) -> None:
        settings = plan.settings
        self.plan, self.settings, self.folder, self.spending = plan, settings, folder, spending
        self.resources, self.journal, self.watch, self.answers = resources, journal, watch, answers
        self._players: dict[tuple[str, int], CellPlayer] = {}
        judging = [one.model if isinstance(one, ModelJudge | ModelSupport) else None
                    for one in (settings.judge, settings.support)]
        self._judge_model, self._support_model, self._paraphraser = (
            self._model(resources.clients[name]) if name else None for name in (*judging, settings.paraphrasing_model))
        judges = RelevanceJudges(lambda name: self._model(resources.clients[name]), settings.limits)
        resources.aids, self._grader = Aids(judges), judges(settings.grader) if settings.grader else None

    async def carry_out(self, job: Job) -> None:
        record = await self._record(job)
        kept = self._timed(record)
        follow_up = self.plan.follow_up
        if follow_up is not None and follow_up.is_due(record.result, job.question, self.plan):
            probes, cost = await follow_up.ask(record.result, job.question, partial(self._player, job.cell),
                                               job.cell.repeat, partial(self._judged, job.question))
            result = self._scored(job, record.result.model_copy(update={"probes": probes}))
            record, kept = (add_cost(one, result, cost) for one in (record, kept))
        await self.folder.add(kept, job.place)
        if self.plan.schedule:
            self.answers[job.cell.id] |= group_results([record.result])[job.cell.id]
        self.watch.record(record)

    async def _record(self, job: Job) -> Record:
        cell, question, settings, resources, scheme = (job.cell, job.question, self.settings, self.resources,
                                                       self.plan.scheme)
        player = self._player(cell, cell.repeat)
        seed = settings.seed if cell.seed is None else cell.seed
        variation = QueryVariation.parse(cell.variation or "as_asked")
        asked = await asked_in(variation, question.text, f"{seed}:{question.id}", self._paraphraser, self._deadline)
        worded = question if asked.end.text == question.text else replace(question, text=asked.end.text)
        answer = await player.answer(worded) if asked.end.failure is None else failed_answer(asked.end.failure)
        answer, placed = resources.located(cell, question, answer)
        subs = await subs_of(player, question, answer, self.folder.database)
        view = match(resources.gold(cell, question), answer.ranked, resources.source_of,
                     question.id if scheme.itself_ignored else None, placed)
        result = make_result(cell, question, resources.answerable(cell, question), answer, view, resources.source_of,
                             self.folder.database)
        if settings.grader and self._grader and cell.ranked:
            texts = {passage.number: passage.chunk.content for passage in answer.ranked}
            result = await with_grades(result, question, self._grader, texts, settings.grader.depth)
        judged = await self._judged(question, result)
        checked = await self._checked(result, question, cell, answer)
        result = result.model_copy(update={
            "verdict": judged.end, "judge_usage": judged.usage + checked.usage, "support": checked.end,
            "subs": subs.stored, "sub_usage": subs.usage,
            "asked": asked.end.text * (asked.end.text != question.text), "asked_usage": asked.usage,
            "notes": (*result.notes, *filter(None, [asked.end.note]))})
        return make_record(self._scored(job, result), answer.cost + subs.cost + judged.cost + checked.cost + asked.cost)

    async def _judged(self, question: Question, result: Result) -> ExchangeResult[Verdict | None]:
        due = graded_of(result, question, self.plan.scheme, self.settings.scoring)
        return await ask_judge(self.settings.judge, self._judge_model, due, self._deadline)

    def _scored(self, job: Job, result: Result) -> Result:
        cell, settings = job.cell, self.settings
        return scored_result(result, job.question, self.plan.scheme, settings.scoring, cell.rules, cell.separators,
                             cell.ranked)

    async def _checked(self, result: Result, question: Question, cell: Cell,
                       answer: Answer) -> ExchangeResult[Support | None]:
        check = self.settings.support
        if check is None:
            return ExchangeResult(None)
        gold = Places(question.own, self.resources.source_of).gold(question.gold) if check.makes_nuggets else ()
        texts = {passage.number: passage.chunk.content for passage in answer.ranked}
        claims = claims_of(result, question, cell, texts, check, [chunk.content for chunk in gold])
        return await ask_support(check, self._support_model, claims, self._deadline)

    def _deadline(self) -> float:
        return time.monotonic() + self.settings.limits.seconds

    def _timed(self, record: Record) -> Record:
        """The record as it is kept: what comes from the journal took the time that it took when it was asked."""
        result, now = record.result, record.timing
        before = self.folder.timing(result.cell, result.question)
        missed = result.failure is not None and result.failure.kind == "replay_miss"
        if before is None or now.attempts or missed:
            return record
        return record.model_copy(update={"timing": before.model_copy(update={"replayed": now.replayed})})

    def _player(self, cell: Cell, repeat: int) -> CellPlayer:
        if (cell.id, repeat) not in self._players:
            model = self._model(self.resources.clients[cell.model], repeat)
            self._players[cell.id, repeat] = CellPlayer(self.plan.tasks(cell), model, self.resources.shown)
        return self._players[cell.id, repeat]

    def _model(self, client: ModelClient, repeat: int = 0) -> Model:
        return Model(Metered(client, self.spending), self.journal, self.settings.limits.max_tokens, repeat)
