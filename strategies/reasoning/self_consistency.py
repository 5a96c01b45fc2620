"""Self-consistency: several samples of a strategy, and the answer that most of them give (Wang et al. 2023).

The paper samples chains of thought; here any strategy is sampled. What the samples gather for equal queries is
gathered once, and what the retrieval strategy asks a model for is not sampled, so that the samples differ by their
reasoning alone and their prompts share the documents.

Votes are for answers that are equal word by word, so it is for short ones: `brief: true`, or options. Of sentences that
say one thing in different words each has one vote, and the first sample wins. A sample is drawn at a temperature, where
other strategies answer at 0; the control for that is one sample: `{kind: self_consistency, samples: 1}`.
"""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from ragbed.strategies.parts.lockstep import Lockstep
from ragbed.strategies.parts.voting import tally
from ragbed.strategies.reading import REFUSAL
from ragbed.strategies.reasoning.chain_of_thought import chain_of_thought
from ragbed.strategies.types import Decision, Draft, Generate, Reasoning, Recipe, Task


def self_consistency(task: Task, *, of: Reasoning = chain_of_thought,
                     samples: Annotated[int, Field(ge=1, le=100)] = 5,
                     temperature: Annotated[float, Field(gt=0, le=2)] = 0.7,
                     threshold: Annotated[float, Field(ge=0, le=1)] | None = None,
                     tokens: Annotated[int, Field(ge=1)] | None = None) -> Recipe:
    """Samples a strategy and takes the answer with the most votes, of several the one that came up first.

    `agreement` is its share of all samples, those without an answer too. Where the rules offer a refusal, an agreement
    below the threshold becomes one; where no two of several samples agree, the note is `no_majority`. With a budget of
    tokens there are as many samples as it is expected to hold, by the mean of those so far: `samples` at most, and one
    at least.
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
        return Draft(REFUSAL, (), True, True, chosen.tagged, (*chosen.notes, "low_agreement"), figures=figures)
    return replace(chosen, figures={**chosen.figures, **figures})


def _further(samples: int, taken: int, tokens: int | None, used: int) -> int:
    """How many samples the next round takes: half of those that the budget is expected to hold still."""
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
    shown: set[int] = field(default_factory=set)  # evidence numbers that any prompt of theirs showed

    def rewrite(self, place: int, call: Generate) -> Generate:
        """Return the call with the sample's number; as it is where evidence is gathered, or the strategy itself wants
        no chance in it. A number that the strategy gave, as another self-consistency does, stays told apart."""
        if call.gathering:
            return call
        self.shown.update(call.shown)
        if call.temperature == 0:
            return call
        temperature = self.temperature if call.temperature is None else call.temperature
        return replace(call, sample=call.sample * self.samples + place, temperature=temperature)
