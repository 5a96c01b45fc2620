"""Play instances through the stages and filters of a kind.

Every call goes through the journal, and items stay in the order of their instances. So equal replies give equal bytes,
even after a kill."""
from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from ragbed.agents.graph import QuestionPlayer
from ragbed.agents.journal import Model
from ragbed.agents.limits import run_bounded
from ragbed.agents.model_settings import Limits
from ragbed.agents.search import SearchFunction
from ragbed.agents.session import Runtime, cannot_restore
from ragbed.agents.types import Answer, GenerateStep
from ragbed.documents.shards import Shard
from ragbed.experiments.guests.construct.stages import Dropped, Kind, Library, Outcome, Stage
from ragbed.experiments.guests.review.items import Item
from ragbed.experiments.running.budget import Spending
from ragbed.strategies.catalogue import RETRIEVAL
from ragbed.strategies.types import Draft, Generate, Recipe, Task

FAILED, DUPLICATE, SURPLUS = "failed call", "duplicate", "more than asked for"
"""Further steps at which an item can be lost. Rerunning the command repeats failed calls."""
_MIN_BLOCK = 8  # least number of instances to start together


def stage_recipe(stage: Stage, item: Item, library: Library, result: list[Any]) -> Recipe:
    """Play a stage as if it were a strategy. Append its return value, or the Dropped that it raises, to `result`."""
    try:
        returned = stage.step(item, library)
        result.append((yield from returned) if inspect.isgenerator(returned) else returned)
    except Dropped as dropped:
        result.append(dropped)
    return Draft("", (), refused=False, well_formed=True, tagged=None)


class StageRunner:
    """Plays each stage as a separate question, with one model per role, such as `writer` and `solver 1`."""

    def __init__(self, models: Mapping[str, Model], search: SearchFunction, limits: Limits) -> None:
        self._models, self._search, self._limits = models, search, limits
        self._player = QuestionPlayer()

    async def play(self, stage: Stage, item: Item, library: Library) -> tuple[Any, Answer]:
        """Return the stage's return value or error for an item, and the answer with its trace."""
        result: list[Any] = []
        task = Task(f"{item.id}/{stage.name}", item.question or item.id, RETRIEVAL["none"])
        limits = self._limits.model_copy(update={"calls": max(stage.calls, 1)})
        runtime = Runtime(self._search, lambda call, *how: self._model(call).ask(call, *how),
                          lambda call: self._model(call).key(call), cannot_restore, limits)
        answer = await self._player.play(task, lambda task: stage_recipe(stage, item, library, result), runtime)
        return (result[0] if result else None), answer

    def _model(self, call: Generate) -> Model:
        return self._models[call.purpose.partition(":")[0]]


@dataclass(slots=True)
class Construction:
    """Makes items until enough are kept or no instance is left.

    Attributes:
        target: number of items to keep.
        tries: maximum number of instances to start.
        window: number of instances played at once.
        find_duplicate: returns why an item is too similar to those kept so far, or None.
        on_outcomes: called with the outcomes of each instance.
        shard: if set, only its instances are played.
        started: number of instances started so far.
        played: outcomes of all items, and of instances that gave no item, in order.
        kept: kept items in order.
    """

    kind: Kind
    library: Library
    runner: StageRunner
    target: int
    tries: int
    window: int
    find_duplicate: Callable[[Item, Sequence[Item]], str | None]
    spending: Spending
    on_outcomes: Callable[[Sequence[Outcome]], None] = lambda outcomes: None
    shard: Shard | None = None
    started: int = 0
    played: list[Outcome] = field(default_factory=list)
    kept: list[Item] = field(default_factory=list)
    _groups: Counter[str] = field(default_factory=Counter)

    def yield_counts(self) -> dict[str, Any]:
        """Count items requested, instances started, items generated, lost at each step by reason, and kept."""
        steps = [stage.name for stage in (*self.kind.stages, *self.kind.filters)]
        lost: dict[str, dict[str, int]] = {}
        for name in (*steps, DUPLICATE, FAILED, SURPLUS):
            reasons = Counter(one.why for one in self.played if one.lost == name)
            if reasons or name in steps or name == DUPLICATE:
                lost[name] = dict(sorted(reasons.items()))
        return {"asked_for": self.target, "instances": self.started, "tries": self.tries,
                "generated": sum(one.generated for one in self.played), "lost": lost, "kept": len(self.kept)}

    async def run(self) -> None:
        """Play instances in blocks as large as the number of missing items, so that timing does not affect the result.
        """
        every = islice(self.kind.instances(self.library), self.tries)
        instances = every if self.shard is None else (one for one in every if one.id in self.shard)
        min_block = -(-_MIN_BLOCK // (self.shard.of if self.shard else 1))
        while (missing := self.target - len(self.kept)) > 0 and not self.spending.stopped:
            block = list(islice(instances, max(missing, min_block)))
            if not block:
                return
            await self._play_block(block)

    async def _play_block(self, block: Sequence[Item]) -> None:
        outcomes: dict[int, list[Outcome]] = {}

        async def play(place: int) -> None:
            outcomes[place] = await self._play_instance(block[place])
            self.on_outcomes(outcomes[place])

        await run_bounded(self.spending.affordable(range(len(block))), self.window, play)
        if self.spending.stopped:  # an unfinished block does not count: rerunning the command plays all of it
            return
        self.started += len(block)
        self.played += [self._collect(one) for place in range(len(block)) for one in outcomes[place]]

    def _collect(self, outcome: Outcome) -> Outcome:
        if outcome.lost:
            return outcome
        if len(self.kept) >= self.target:
            return replace(outcome, lost=SURPLUS, why=f"{self.target} were already kept")
        group, most = self.kind.quota(outcome.item, self.library) or ("", self.target)
        if self._groups[group] >= most:
            return replace(outcome, lost=SURPLUS, why=f"{most} of {group} were already kept")
        if why := self.find_duplicate(outcome.item, self.kept):
            return replace(outcome, lost=DUPLICATE, why=why)
        self.kept.append(outcome.item)
        self._groups[group] += 1
        return outcome

    async def _play_instance(self, instance: Item) -> list[Outcome]:
        active, lost = [Outcome(instance)], []
        for stage in self.kind.stages:
            outcomes = [each for one in active for each in await self._play_stage(stage, one)]
            lost += [one for one in outcomes if one.lost]
            active = [one for one in outcomes if not one.lost]
        return [*lost, *[await self._filter(replace(one, generated=True)) for one in active]]

    async def _play_stage(self, stage: Stage, before: Outcome) -> list[Outcome]:
        outcome, returned = await self._step(stage, before)
        if outcome.lost:
            return [outcome]
        return [replace(outcome, item=item) for item in (returned if isinstance(returned, list) else [returned])]

    async def _filter(self, outcome: Outcome) -> Outcome:
        for stage in self.kind.filters:
            outcome, returned = await self._step(stage, outcome)
            if outcome.lost:
                return outcome
            outcome = replace(outcome, item=returned or outcome.item)
        return outcome

    async def _step(self, stage: Stage, before: Outcome) -> tuple[Outcome, Any]:
        returned, answer = await self.runner.play(stage, before.item, self.library)
        calls = [(f"{stage.name}/{step.purpose}", step.key) for step in answer.trace if isinstance(step, GenerateStep)]
        outcome = replace(before, calls=(*before.calls, *calls))
        if answer.failure is not None:
            why = f"{stage.name}: {answer.failure.kind}: {answer.failure.message}"
            return replace(outcome, lost=FAILED, why=why), None
        lost = isinstance(returned, Dropped | str)
        return replace(outcome, lost=stage.name, why=str(returned)) if lost else outcome, returned
