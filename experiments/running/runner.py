"""The runner: every question in every cell, in a sliding window, each with exactly one record."""
from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from agents.client import ModelClient
from agents.journal import Journal, Mode, Model
from agents.limits import in_window
from agents.relevance import RelevanceJudges, on_judges
from agents.types import Answer, unasked
from experiments.cells import Cell
from experiments.judges import ask_judge, graded_of
from experiments.metrics import scored_result
from experiments.record import Record
from experiments.running.budget import CellBudgets, Metered, Spending, check_prices
from experiments.running.cassette import Replay
from experiments.running.gold import match
from experiments.running.open_resources import open_resources
from experiments.running.plan import Plan
from experiments.running.play import CellPlayer, make_record, make_result, subs_of
from experiments.running.preflight import preflight
from experiments.running.prepare import prepare_run
from experiments.running.resources import Resources
from experiments.running.schedule import Job, Prefix, jobs_of, prefix_of, side_by_side, turns_of
from experiments.running.summary import summarise
from experiments.runs.store import RunFolder
from experiments.settings import RunSettings
from retrieval.rerankers.reranker import Aids
from retrieval.types import Progress
from strategies.types import Failure


@dataclass(frozen=True, slots=True)
class Begun:
    """A run whose first call comes next.

    Attributes:
        questions: how many each cell has.
        done: the (cell, question) pairs that have a record and keep it.
        clients: of every model, the judge's included.
    """

    cells: Sequence[Cell]
    questions: int
    done: Collection[tuple[str, str]]
    spending: Spending
    clients: Sequence[ModelClient]


@dataclass(frozen=True, slots=True)
class RunWatch:
    """Who wants to know how the run goes.

    Attributes:
        stage: called while an index is built.
        begun: called once, where there is anything to do.
        record: called after each record.
        note: told, before the first call, what looks like a mistake and what cannot be answered; after the last, what
            relevance judges graded in this session.
        searched: given what was searched, once all of it was, and before it is closed.
    """

    stage: Progress
    begun: Callable[[Begun], None]
    record: Callable[[Record], None]
    note: Callable[[str], None] = lambda text: None
    searched: Callable[[Resources], None] = lambda resources: None


async def run(settings: RunSettings, watch: RunWatch, mode: Mode = "record", again: bool = False,
              fresh: bool = False, replay: Replay | None = None) -> RunFolder:
    """Carry out or continue a run, and write its summary.

    Args:
        mode: of the journal.
        again: make every record of the run anew, each in the place of the one before.
        fresh: remove what an earlier run left, its journal too, once all that can be checked was.
        replay: the cassette that calls and searches are from; goes with the mode `replay`.

    Returns:
        the finished run's folder, open.

    Raises:
        RunError: the folder holds a run with other settings, or over an index that has changed.
        BudgetSpent: the budget was spent before the end; without a summary, and so unfinished.
        UserError: what the user can mend; records made so far are kept.
    """
    plan = Plan.of(settings)
    benchmark, cells = plan.benchmark, plan.cells
    spending = Spending(settings.budget, mode)
    if mode != "replay":
        check_prices(settings, plan.models)
    session = prepare_run(plan, fresh, replay)
    with ExitStack() as undone:
        undone.callback(session.close)
        if mode == "replay" and replay is None:
            session.check_whole(len(cells) * len(benchmark.questions))
        there = session.done()
        done = set() if again else there
        jobs = [job for job in jobs_of(cells, benchmark.questions) if (job.cell.id, job.question.id) not in done]
        over = _Over(spending, settings.folder, cells, len(benchmark.questions))
        stage = _interruptible(watch.stage, lambda: over.check(there) if jobs else None)
        resources = Resources(plan)
        async with open_resources(plan, resources, session, mode if jobs else None, stage):
            folder = session.begin(resources.contents())
            resources.recording.searches.begin(folder.database, mode)
            if jobs:
                work = _Work(plan, folder, resources, Journal(folder.database, mode), watch, spending)
                work.cell_budgets.recall(folder, done)
                await _session(jobs, done, work, over)
            watch.searched(resources)
        with _start_up_kept():
            folder.keep_cells({cell.id for cell in cells})
            folder.finish(summarise(plan, folder, len(plan.exemplars)))
        undone.pop_all()
        return folder


@dataclass(frozen=True, slots=True)
class _Over:
    """Ends a session whose budget is spent, with what it is to say of the records that are there."""

    spending: Spending
    path: Path
    cells: Sequence[Cell]
    questions: int

    def check(self, done: Collection[tuple[str, str]]) -> None:
        """End where the budget is spent by now."""
        if self.spending.is_over():
            self.end(done)

    def end(self, done: Collection[tuple[str, str]]) -> NoReturn:
        cells = {cell.id for cell in self.cells}
        self.spending.end(self.path, sum(cell in cells for cell, _ in done), len(cells) * self.questions)


def _interruptible(progress: Progress, check: Callable[[], None]) -> Progress:
    """An index is built without giving the event loop a turn, so an interrupt is looked for as it goes on.

    Args:
        check: raises where the time is over.
    """
    running = asyncio.current_task()

    def told(stage: str, done: int, total: int | None) -> None:
        if running is not None and running.cancelling():
            raise asyncio.CancelledError
        check()
        progress(stage, done, total)

    return told


@contextmanager
def _start_up_kept() -> Iterator[None]:
    """Full garbage collections walk what is new only: what exists by now (libraries, the benchmark) lives on anyway.

    Walking that too took a sixth of a question's processor time.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _clients(resources: Resources) -> list[ModelClient]:
    judge = [] if resources.judge is None else [resources.judge]
    return list({id(client): client for client in [*resources.clients.values(), *judge]}.values())


async def _session(jobs: Sequence[Job], done: Collection[tuple[str, str]], work: _Work, over: _Over) -> None:
    """Carry out what is left, as far as the budget goes.

    Args:
        done: what is left out.

    Raises:
        BudgetSpent: it was spent before the end.
    """
    folder, watch = work.folder, work.watch
    work.spending.recall(folder.database)
    over.check(folder.done())
    if work.journal.mode != "replay":  # a replay gives what is there, so its figures stay until it ends
        folder.reopen()
    watch.begun(Begun(over.cells, over.questions, done, work.spending, _clients(work.resources)))
    for text in preflight(work.plan, work.resources):
        watch.note(text)
    with _start_up_kept():
        await _play(jobs, work)
    for text in on_judges(work.resources.aids):
        watch.note(text)
    if work.spending.stopped:
        over.end(folder.done())


async def _play(jobs: Sequence[Job], work: _Work) -> None:
    """Each model has its own window, so that a slow one does not hold up the others. Ends early with the budget."""
    def begins(job: Job) -> Prefix:
        return prefix_of(job, work.settings.layout, work.resources)

    async def of_model(name: str) -> None:
        for turn in turns_of([job for job in jobs if job.cell.model == name], work.settings.only_searches):
            own, places = side_by_side(turn, begins), work.resources.clients[name].limits.concurrency
            await in_window(work.spending.affordable(own), places, work.carry_out)

    models = list(dict.fromkeys(job.cell.model for job in jobs))
    async with work.spending.in_time():
        await in_window(models, len(models), of_model)


class _Work:
    def __init__(self, plan: Plan, folder: RunFolder, resources: Resources, journal: Journal,
                 watch: RunWatch, spending: Spending) -> None:
        settings = plan.settings
        self.plan, self.settings, self.folder, self.spending = plan, settings, folder, spending
        self.resources, self.journal, self.watch = resources, journal, watch
        self.cell_budgets = CellBudgets(settings.cell_limits, settings.limits)
        self._players: dict[str, CellPlayer] = {}
        self._judge_model = self._model(resources.judge) if resources.judge else None
        resources.aids = Aids(RelevanceJudges(lambda name: self._model(resources.clients[name]), settings.limits))

    async def carry_out(self, job: Job) -> None:
        async with self.cell_budgets.turn(job.cell.id):
            record = await self._record(job)
            kept = self._timed(record)
            self.cell_budgets.count(kept)
        await self.folder.add(kept, job.place)
        self.watch.record(record)

    async def _answer(self, player: CellPlayer, job: Job) -> Answer:
        """The answer, or that nothing of the cell's limits is left for it."""
        spent = self.cell_budgets.spent(job.cell.id)
        if spent is None:
            return await player.answer(job.question, self.cell_budgets.limits(job.cell.id))
        return unasked(Failure("budget", spent))

    async def _record(self, job: Job) -> Record:
        settings, resources, scheme = self.settings, self.resources, self.plan.scheme
        player = self._player(job.cell)
        answer = await self._answer(player, job)
        subs = await subs_of(player, job.question, answer, self.folder.database)
        view = match(resources.gold(job.cell, job.question), answer.ranked, resources.source_of,
                     job.question.id if scheme.itself_ignored else None)
        result = make_result(job.cell, job.question, resources.answerable(job.cell, job.question), answer, view,
                             resources.source_of, self.folder.database)
        judged = await ask_judge(settings.judge, self._judge_model,
                                 graded_of(result, job.question, scheme, settings.scoring),
                                 lambda: time.monotonic() + settings.limits.seconds)
        result = result.model_copy(update={"verdict": judged.verdict, "judge_usage": judged.usage,
                                           "subs": subs.stored, "sub_usage": subs.usage})
        return make_record(scored_result(result, job.question, scheme, settings.scoring, job.cell.rules,
                                         job.cell.separators, job.cell.searched),
                           answer.cost + subs.cost + judged.cost)

    def _timed(self, record: Record) -> Record:
        """The record as it is kept: what comes from the journal took the time that it took when it was asked."""
        result, now = record.result, record.timing
        before = self.folder.timing(result.cell, result.question)
        missed = result.failure is not None and result.failure.kind == "replay_miss"
        if before is None or now.attempts or missed:
            return record
        return record.model_copy(update={"timing": before.model_copy(update={"replayed": now.replayed})})

    def _player(self, cell: Cell) -> CellPlayer:
        if cell.id not in self._players:
            model = self._model(self.resources.clients[cell.model], cell.repeat)
            self._players[cell.id] = CellPlayer(self.plan.tasks(cell), model, self.resources.shown)
        return self._players[cell.id]

    def _model(self, client: ModelClient, repeat: int = 0) -> Model:
        return Model(Metered(client, self.spending), self.journal, self.settings.limits.max_tokens, repeat)
