"""Self-consistency: sample a strategy several times, and take the most frequent answer (Wang et al. 2023).

The paper samples chains of thought; here any strategy can be sampled. Equal queries are gathered once, and calls of the
retrieval strategy are not sampled, so the samples differ only in their reasoning and share the documents.

Votes count answers that match word for word, so use it for short answers: `brief: true`, or options. Different
sentences with the same meaning get one vote each, and the first sample wins. Samples are drawn at a temperature above
0, while other strategies answer at 0. To control for that, compare with `{kind: self_consistency, samples: 1}`.
"""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from ragbed.experiments.guests.more_strategies.parts.voting import tally
from ragbed.strategies.parts.conversation import Lockstep
from ragbed.strategies.reasoning.direct import chain_of_thought
from ragbed.strategies.types import Decision, Draft, Generate, Reasoning, Recipe, Task


def self_consistency(task: Task, *, of: Reasoning = chain_of_thought,
                     samples: Annotated[int, Field(ge=1, le=100)] = 5,
                     temperature: Annotated[float, Field(gt=0, le=2)] = 0.7,
                     threshold: Annotated[float, Field(ge=0, le=1)] | None = None,
                     tokens: Annotated[int, Field(ge=1)] | None = None) -> Recipe:
    """Sample a strategy and take the answer with the most votes, or the first one on a tie.

    The figure `agreement` is the answer's share of all samples. If the rules offer a refusal, an agreement below
    `threshold` becomes a refusal. If no two samples agree, the note is `no_majority`. `tokens` is a budget that limits
    the number of samples by their mean cost so far, but at least one is drawn.
    """
    draws = _Draws(samples, temperature)
    lockstep = Lockstep(draws.rewrite)
    drafts: list[Draft] = []
    while more := _further(samples, len(drafts), tokens, lockstep.tokens):
        drafts += yield from lockstep.run([of(task) for _ in range(more)])
    votes = tally(task, drafts, draws.shown)
    yield Decision("votes", votes.said)
    figures = {"agreement": votes.agreement, **({"samples": float(len(drafts))} if tokens else {})}
    chosen = votes.chosen
    if chosen is None:
        return replace(drafts[0], figures={**drafts[0].figures, **figures})
    if len(votes.best) == 1 < len(drafts):
        chosen = replace(chosen, notes=(*chosen.notes, "no_majority"))
    if threshold is not None and votes.agreement < threshold and task.rules == "grounded" and not chosen.refused:
        yield Decision("refuses", f"an agreement of {votes.agreement:.2f} is below {threshold:g}")
        return Draft(task.refusal, (), True, True, chosen.tagged, (*chosen.notes, "low_agreement"), figures=figures)
    return replace(chosen, figures={**chosen.figures, **figures})


self_consistency.gathers = "of"  # type: ignore[attr-defined]


def _further(samples: int, taken: int, tokens: int | None, used: int) -> int:
    """Return the number of samples in the next round: half of those that the rest of the budget should cover."""
    if tokens is None or (taken and not used):
        return samples - taken
    if not taken:
        return 1
    left = max(tokens - used, 0) * taken // used
    return min(samples - taken, (left + 1) // 2)


@dataclass(slots=True)
class _Draws:
    samples: int
    temperature: float
    shown: set[int] = field(default_factory=set)  # evidence numbers that any prompt showed

    def rewrite(self, place: int, call: Generate) -> Generate:
        """Give a call the number and temperature of its sample. Leave calls that gather evidence or have temperature 0
        unchanged. Sample numbers of a nested self-consistency stay distinct."""
        if call.gathering:
            return call
        self.shown.update(call.shown)
        if call.temperature == 0:
            return call
        temperature = self.temperature if call.temperature is None else call.temperature
        return replace(call, sample=call.sample * self.samples + place, temperature=temperature)
