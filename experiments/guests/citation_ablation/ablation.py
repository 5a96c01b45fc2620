"""Ask each answered question again: without each shown passage in turn, with only the cited passages, without all cited
passages, and with all passages, to measure noise.

The question's graph runs again over searches without the omitted passages. The other passages keep their numbers. A
strategy that rewrites its queries may find another passage instead, unless only the cited ones are kept."""
from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ragbed.agents.types import Cost
from ragbed.experiments.guests.citation_ablation.ablation_metrics import find_uncited, is_changed, replace_answer
from ragbed.experiments.record import Result, StoredProbe

if TYPE_CHECKING:
    from ragbed.experiments.judges.judge import JudgeResult
    from ragbed.experiments.question import Question
    from ragbed.experiments.running.hooks import Reasker

_OTHERS = 3  # ablations in addition to those without one passage


class CitationAblation:
    """The follow-up `citations`: see `running.hooks.FollowUp`."""

    def is_due(self, result: Result, cites: bool) -> bool:
        """Return whether to ablate an answer, which must have its trace. Its rules must require citations, and ragbed's
        own search must have found every shown passage, because a pipeline's own search cannot omit passages."""
        shown = {passage.number for passage in result.in_view}
        return (cites and result.outcome == "answered" and bool(shown)
                and shown <= {number for step in result.trace for number in step.found})

    def repeats(self, passages: int) -> int:
        """Return the maximum number of ablations of an answer over this many passages."""
        return passages + _OTHERS

    async def ask(self, result: Result, question: Question, player: Callable[[int], Reasker], repeat: int,
                  judge: Callable[[Result], Awaitable[JudgeResult]]) -> tuple[tuple[StoredProbe, ...], Cost]:
        """Run the ablations of an answer one after the other. Return their answers and the cost.

        Args:
            player: returns the runner for a repeat of the cell. The next repeat measures noise.
            judge: grades an answer that changed.
        """
        question = replace(question, text=result.asked or question.text)
        numbers = {passage.chunk: passage.number for passage in result.evidence}
        probes, cost = [], Cost()
        for left_out in plan_ablations(result):
            only_cited = bool(result.cited) and left_out == find_uncited(result)
            answer = await player(repeat if left_out else repeat + 1).answer_without(
                question, numbers, left_out, only_cited)
            probe = StoredProbe(left_out=tuple(sorted(left_out)), outcome=answer.outcome, text=answer.text,
                                failure=answer.failure, usage=answer.used)
            cost += answer.cost
            if is_changed(result, probe):
                verdict = await judge(replace_answer(result, probe))
                probe = probe.model_copy(update={"verdict": verdict.end, "usage": probe.usage + verdict.usage})
                cost += verdict.cost
            probes.append(probe)
        return tuple(probes), cost


def plan_ablations(result: Result) -> list[frozenset[int]]:
    """Return the distinct sets of passages to leave out. The empty set comes first, then passages from the end of the
    prompt to its beginning, so that a server can reuse the longest prefixes.
    """
    shown = [passage.number for passage in result.in_view]
    wanted = [frozenset({number}) for number in shown]
    if result.cited:
        wanted += [find_uncited(result), frozenset(result.cited)]
    places = {number: place for place, number in enumerate(shown)}
    return [frozenset(), *sorted(dict.fromkeys(filter(None, wanted)), key=lambda left_out: (
        -min(places.get(number, len(shown)) for number in left_out), len(left_out)))]
