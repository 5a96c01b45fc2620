"""Probes of citations: each answer asked again without each passage that it was shown, over the cited ones alone,
without all of them, and, for the noise, with nothing left out.

The question's graph is played anew over searches that lack the passages; the others keep their numbers, so that prompts
differ in nothing else. Calls go through the run's journal. What stands last in a prompt is left out first, right after
the answer, so that a server has most of each prompt at hand. A strategy that words its searches anew may find something
else in a passage's place, but not over the cited ones alone.
"""
from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from agents.types import Cost
from experiments.metrics.weight import changes, probed_result, uncited
from experiments.record import Record, Result, StoredProbe

if TYPE_CHECKING:
    from experiments.judges.base import Judged
    from experiments.question import Question
    from experiments.running.plan import Plan
    from experiments.running.play import CellPlayer
    from experiments.runs.store import RunFolder

BESIDES = 3  # probes of an answer besides those without one passage


def is_due(result: Result, question: Question, plan: Plan) -> bool:
    """Tell whether an answer is probed: where its rules ask for citations, and it was shown something."""
    cell = next((cell for cell in plan.cells if cell.id == result.cell), None)
    return (cell is not None and result.outcome == "answered" and bool(result.in_view)
            and plan.tasks(cell).whole(question).cites)


def unprobed(plan: Plan, folder: RunFolder) -> set[tuple[str, str]]:
    """Return the (cell, question) pairs of a run whose answers are still to be probed."""
    questions = {question.id: question for question in plan.benchmark.questions}
    return {(result.cell, result.question) for result in folder.results()
            if not result.probes and is_due(result, questions[result.question], plan)}


def to_leave_out(result: Result) -> list[frozenset[int]]:
    """Return what the probes of an answer leave out, each set once: first nothing, then what stands last in prompts."""
    shown = [passage.number for passage in result.in_view]
    wanted = [frozenset({number}) for number in shown]
    if result.cited:
        wanted += [uncited(result), frozenset(result.cited)]
    places = {number: place for place, number in enumerate(shown)}
    return [frozenset(), *sorted(dict.fromkeys(filter(None, wanted)), key=lambda left_out: (
        -min(places.get(number, len(shown)) for number in left_out), len(left_out)))]


async def probes_of(result: Result, question: Question, player: Callable[[int], CellPlayer], repeat: int,
                    judged: Callable[[Result], Awaitable[Judged]]) -> tuple[tuple[StoredProbe, ...], Cost]:
    """Ask an answered question again in every way, one after the other, and return what that came to and cost.

    Args:
        player: makes the player of the answer's cell as a repeat of it.
        repeat: the cell's own; the noise is that of the next one.
        judged: asks the run's judge about a result; it is asked of other answers than the first alone.
    """
    probes, cost = [], Cost()
    for left_out in to_leave_out(result):
        answer = await player(repeat if left_out else repeat + 1).answer_over(question, _numbers(result),
                                                                              _keeps(result, left_out))
        probe = StoredProbe(left_out=tuple(sorted(left_out)), outcome=answer.outcome, text=answer.text,
                            failure=answer.failure, usage=answer.used)
        cost += answer.cost
        if changes(result, probe):
            verdict = await judged(probed_result(result, probe))
            probe = probe.model_copy(update={"verdict": verdict.verdict, "usage": probe.usage + verdict.usage})
            cost += verdict.cost
        probes.append(probe)
    return tuple(probes), cost


def _numbers(result: Result) -> dict[str, int]:
    return {passage.chunk: passage.number for passage in result.evidence}


def _keeps(result: Result, left_out: frozenset[int]) -> Callable[[str], bool]:
    """Over the cited passages alone, nothing else is found, whatever a strategy searches for."""
    numbers, alone = _numbers(result), bool(result.cited) and left_out == uncited(result)
    return lambda chunk: numbers[chunk] not in left_out if chunk in numbers else not alone


def with_probes(record: Record, probes: tuple[StoredProbe, ...], cost: Cost) -> Record:
    """Return the record with its probes, not scored yet. Their calls are counted in its timing; its seconds stay those
    of the answer."""
    timing = record.timing
    paid = None if timing.paid is None or cost.paid is None else timing.paid + cost.paid
    counted = {"attempts": timing.attempts + cost.attempts, "replayed": timing.replayed + cost.replayed,
               "retried": timing.retried + cost.retried, "paid": paid}
    return Record(result=record.result.model_copy(update={"probes": probes}),
                  timing=timing.model_copy(update=counted))
