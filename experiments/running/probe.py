"""Probes of citations: each answer asked again without each passage that it was shown, over the cited ones alone,
without all of them, and, for the noise, with nothing left out.

The question's graph is played anew over searches that lack the passages; the others keep their numbers. A strategy that
words its searches anew may find something else in a passage's place, but not over the cited ones alone.
"""
from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ragbed.agents.types import Cost
from ragbed.experiments.metrics.weight import changes, probed_result, uncited
from ragbed.experiments.record import Result, StoredProbe

if TYPE_CHECKING:
    from ragbed.experiments.judges.base import Judged
    from ragbed.experiments.question import Question
    from ragbed.experiments.running.plan import Plan
    from ragbed.experiments.running.play import CellPlayer

BESIDES = 3  # probes of an answer besides those without one passage


class CitationAblation:
    """The follow-up `citations`: see `running.hooks.FollowUp`."""

    def is_due(self, result: Result, question: Question, plan: Plan) -> bool:
        """Return whether an answer is probed."""
        return is_due(result, question, plan)

    def repeats(self, passages: int) -> int:
        """Return how many probes an answer over this many passages has at most."""
        return passages + BESIDES

    async def ask(self, result: Result, question: Question, player: Callable[[int], CellPlayer], repeat: int,
                  judge: Callable[[Result], Awaitable[Judged]]) -> tuple[tuple[StoredProbe, ...], Cost]:
        """Return the probes of an answer, and what they cost."""
        return await probes_of(result, question, player, repeat, judge)


def is_due(result: Result, question: Question, plan: Plan) -> bool:
    """Tell whether an answer, with its trace, is probed: where its rules ask for citations, and all that it was shown
    can be kept from it. What a pipeline finds by itself cannot."""
    cell = next((cell for cell in plan.cells if cell.id == result.cell), None)
    if cell is None or result.outcome != "answered" or not plan.tasks(cell).whole(question).cites:
        return False
    shown = {passage.number for passage in result.in_view}
    return bool(shown) and shown <= {number for step in result.trace for number in step.found}


def to_leave_out(result: Result) -> list[frozenset[int]]:
    """Return what the probes of an answer leave out, each set once: first nothing, then what stands last in prompts, so
    that a server has the most of each at hand."""
    shown = [passage.number for passage in result.in_view]
    wanted = [frozenset({number}) for number in shown]
    if result.cited:
        wanted += [uncited(result), frozenset(result.cited)]
    places = {number: place for place, number in enumerate(shown)}
    return [frozenset(), *sorted(dict.fromkeys(filter(None, wanted)), key=lambda left_out: (
        -min(places.get(number, len(shown)) for number in left_out), len(left_out)))]


async def probes_of(result: Result, question: Question, player: Callable[[int], CellPlayer], repeat: int,
                    judged: Callable[[Result], Awaitable[Judged]]) -> tuple[tuple[StoredProbe, ...], Cost]:
    """Ask an answered question again in every way, one after the other, and return what that came to and cost. `player`
    makes the player of a repeat of its cell, and the noise is that of the next one; `judged` asks the run's judge."""
    question = replace(question, text=result.asked or question.text)
    numbers = {passage.chunk: passage.number for passage in result.evidence}
    probes, cost = [], Cost()
    for left_out in to_leave_out(result):
        alone = bool(result.cited) and left_out == uncited(result)
        answer = await player(repeat if left_out else repeat + 1).answer_without(question, numbers, left_out, alone)
        probe = StoredProbe(left_out=tuple(sorted(left_out)), outcome=answer.outcome, text=answer.text,
                            failure=answer.failure, usage=answer.used)
        cost += answer.cost
        if changes(result, probe):
            verdict = await judged(probed_result(result, probe))
            probe = probe.model_copy(update={"verdict": verdict.end, "usage": probe.usage + verdict.usage})
            cost += verdict.cost
        probes.append(probe)
    return tuple(probes), cost
