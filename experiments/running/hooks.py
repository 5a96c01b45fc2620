"""Interfaces through which a guest changes a run: a schedule of the questions for each cell, and follow-ups on answers.

The setting `race` looks up the scheduler `race` in `ragbed.guests`, and `probe: NAME` the follow-up `NAME`.
"""
from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ragbed.guests import entries, load

if TYPE_CHECKING:
    from ragbed.agents.types import Cost
    from ragbed.experiments.analysis.replicates import Answers
    from ragbed.experiments.judges.base import JudgeResult
    from ragbed.experiments.question import Question
    from ragbed.experiments.record import Result, StoredProbe
    from ragbed.experiments.running.plan import Plan
    from ragbed.experiments.running.play import CellRunner
    from ragbed.experiments.statistics import Clusters


class Schedule(Protocol):
    """Choose the next (cell, question) pairs from the answers so far. The runner asks the pairs that are due, then
    checks again, until no new pair is due."""

    def due(self, answers: Answers) -> set[tuple[str, str]]: ...

    @property
    def notes(self) -> Sequence[str]:
        """Notes for the run's summary."""
        ...

    def comparisons(self, answers: Answers) -> dict[str, Any]:
        """Return the verdicts in the form of `analysis.pairs.comparisons`."""
        ...


class FollowUp(Protocol):
    """Ask further calls about an answered question, such as the same question without one of its passages."""

    def is_due(self, result: Result, question: Question, plan: Plan) -> bool: ...

    def repeats(self, passages: int) -> int:
        """Return how often a question is asked again at most, given the number of passages in its prompt."""
        ...

    async def ask(self, result: Result, question: Question, runner: Callable[[int], CellRunner], repeat: int,
                  judge: Callable[[Result], Awaitable[JudgeResult]]) -> tuple[tuple[StoredProbe, ...], Cost]:
        """Ask again, and return the results and their cost. `runner` makes the runner of a repeat of the cell."""
        ...


def make_schedule(cells: list[dict[str, Any]], questions: dict[str, Question], clusters: Clusters, metric: str,
                  scoring: str, seed: int) -> Schedule:
    """Return the schedule of a race. Raises SettingsError if these cells cannot be raced."""
    made: Schedule = load(entries("scheduler")["race"])(cells, questions, clusters, metric, scoring, seed)
    return made


def find_follow_up(name: str) -> FollowUp:
    """Return the follow-up of this name."""
    made: FollowUp = load(entries("follow_up")[name])()
    return made
