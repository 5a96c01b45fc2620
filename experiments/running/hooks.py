"""Interfaces through which a guest changes a run: schedules choose the next questions, follow-ups ask again, and a
control pauses the run.

The setting `race` looks up the scheduler `race` in `ragbed.guests`, and `probe: NAME` the follow-up `NAME`.
"""
from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ragbed.agents.limits import run_bounded
from ragbed.guests import entries, load

if TYPE_CHECKING:
    from ragbed.agents.client import ModelClient
    from ragbed.agents.types import Answer, Cost
    from ragbed.experiments.analysis.replicates import Answers
    from ragbed.experiments.cells import Cell
    from ragbed.experiments.judges.judge import JudgeResult
    from ragbed.experiments.question import Question
    from ragbed.experiments.record import Result, StoredProbe
    from ragbed.experiments.running.plan import Plan
    from ragbed.experiments.runs.store import RunFolder
    from ragbed.experiments.statistics import Clusters


class Schedule(Protocol):
    """Chooses the next (cell, question) pairs from the answers so far. The runner asks the due pairs and then calls
    `due` again, until it returns no new pair."""

    def due(self, answers: Answers) -> set[tuple[str, str]]: ...

    @property
    def notes(self) -> Sequence[str]:
        """Return notes for the run's summary."""
        ...

    def comparisons(self, answers: Answers) -> dict[str, Any]:
        """Return the verdicts in the form of `analysis.pairs.comparisons`."""
        ...


class Reasker(Protocol):
    """Ask a question of a cell again, over fewer passages; see `CellRunner.answer_without`."""

    async def answer_without(self, question: Question, numbers: Mapping[str, int], left_out: Collection[int],
                             alone: bool) -> Answer: ...


class FollowUp(Protocol):
    """Makes further calls about an answered question, such as the same question without one of its passages."""

    def is_due(self, result: Result, cites: bool) -> bool:
        """Return whether to ask about an answer. `cites` says whether its prompt asked for citations."""
        ...

    def repeats(self, passages: int) -> int:
        """Return the largest number of times that a question is repeated, given the number of passages in its prompt.
        """
        ...

    async def ask(self, result: Result, question: Question, runner: Callable[[int], Reasker], repeat: int,
                  judge: Callable[[Result], Awaitable[JudgeResult]]) -> tuple[tuple[StoredProbe, ...], Cost]:
        """Make the further calls, and return the results and their cost. `runner` returns a repeat's runner."""
        ...


def make_schedule(cells: list[dict[str, Any]], questions: dict[str, Question], clusters: Clusters, metric: str,
                  scoring: str, seed: int) -> Schedule:
    """Return the schedule of a race. Raises SettingsError if these cells cannot be raced."""
    made: Schedule = load(entries("scheduler")["race"])(cells, questions, clusters, metric, scoring, seed)
    return made


class Measuring(Protocol):
    """Computes the metrics of the setting `metrics`."""

    content: str

    def measure(self, result: Result, question: Question, cell: Cell, text: Callable[[str], str]) -> Result: ...


def refresh_metrics(plan: Plan, folder: RunFolder) -> Iterator[str]:
    """Compute the metrics of the setting `metrics` again for all stored records, if that setting has changed. Yield
    notes on it."""
    if refresh := entries("measure").get("metrics"):
        yield from load(refresh)(plan, folder)


def find_follow_up(name: str) -> FollowUp:
    """Return the follow-up of this name."""
    made: FollowUp = load(entries("follow_up")[name])()
    return made


# Carries out jobs of one model concurrently, by a function of one job.
RunJobs = Callable[[Iterable[Any], "ModelClient", Callable[[Any], Awaitable[None]]], Awaitable[None]]


@contextmanager
def open_control(run: Path, note: Callable[[str], None]) -> Iterator[RunJobs]:
    """Yield a function that runs jobs, with as many at once as the client's limits allow. A guest's control may change
    that number while the run goes on. `note` receives one-line notes."""
    if control := entries("control").get("run"):
        with load(control)(run, note) as run_jobs:
            yield run_jobs
    else:
        yield lambda jobs, client, work: run_bounded(jobs, client.limits.concurrency, work)
