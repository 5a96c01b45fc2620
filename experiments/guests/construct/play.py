"""Playing instances through the stages and gates of a kind, on the machine that plays answers. Every call goes through
the journal, and items are kept in the order of their instances, however many are played at once: the same calls make
the same bytes, also after a kill."""
from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from ragbed.agents.graph import Graph, State, build_graph, recursion_limit
from ragbed.agents.journal import Model
from ragbed.agents.limits import run_bounded
from ragbed.agents.search import SearchFunction
from ragbed.agents.session import Runtime, Session
from ragbed.agents.settings import Limits
from ragbed.agents.types import Answer, GenerateStep
from ragbed.documents.errors import RunError
from ragbed.documents.shards import Shard
from ragbed.documents.types import Chunk
from ragbed.experiments.guests.construct.stages import Dropped, Kind, Library, Stage
from ragbed.experiments.guests.review.items import Item
from ragbed.experiments.running.budget import Spending
from ragbed.strategies.catalogue import RETRIEVAL
from ragbed.strategies.types import Draft, Generate, Recipe, Task

FAILED = "failed call"
"""In the place of a stage's name, where the call to a model failed: asked again by the same command."""
DUPLICATE, SURPLUS = "twin", "more than asked for"
_LEAST_BLOCK = 8  # instances begun together, however few items are missing


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an item."""

    item: Item
    lost: str = ""  # the stage or gate that it ended at; empty where it was kept
    why: str = ""  # in a few words
    calls: tuple[tuple[str, str], ...] = ()  # purpose and journal key of each, those before it was an item included
    generated: bool = False  # whether the stages had made it an item before it was lost


def stage_recipe(stage: Stage, item: Item, library: Library, result: list[Any]) -> Recipe:
    """Play a stage over an item as a strategy is played; what it returns, or how it dropped the item, is put into
    `result`."""
    try:
        came = stage.step(item, library)
        result.append((yield from came) if inspect.isgenerator(came) else came)
    except Dropped as dropped:
        result.append(dropped)
    return Draft("", (), refused=False, well_formed=True, tagged=None)


class StageRunner:
    """Plays stages and gates, each as a question of its own; models are by role, such as `writer` and `solver 1`."""

    def __init__(self, models: Mapping[str, Model], search: SearchFunction, limits: Limits) -> None:
        self._models, self._search, self._limits = models, search, limits
        self._live: dict[str, Session] = {}
        self._graph: Graph = build_graph(self)

    def session(self, state: State) -> Session:
        """Return the live playback of the state's stage."""
        return self._live[state["id"]]

    async def play(self, stage: Stage, item: Item, library: Library) -> tuple[Any, Answer]:
        """Play a stage over an item; return what it returns, or how it dropped the item, and the answer's trace."""
        result: list[Any] = []
        limits = self._limits.model_copy(update={"calls": max(stage.calls, 1)})
        id = f"{item.id}/{stage.name}"
        task = Task(id, item.question or item.id, RETRIEVAL["none"])
        play = self._live[id] = Session(task, lambda task: stage_recipe(stage, item, library, result),
                                         Runtime(self._search, lambda call, *how: self._model(call).ask(call, *how),
                                                 lambda call: self._model(call).key(call), _unkept, limits))
        try:
            await self._graph.ainvoke({"id": id, "question": task.question}, recursion_limit(limits),
                                      output_keys="answer")
        finally:
            del self._live[id]
        return (result[0] if result else None), play.answer()

    def _model(self, call: Generate) -> Model:
        return self._models[call.purpose.partition(":")[0]]


def _unkept(chunk: str) -> Chunk:
    raise RunError(f"the chunk {chunk} cannot be brought back: a construction begins its unfinished items anew")


@dataclass(slots=True)
class Construction:
    """Makes items of instances until enough are kept, or no instance is left."""

    kind: Kind
    library: Library
    runner: StageRunner
    target: int  # items
    tries: int  # instances that may be begun
    window: int  # instances played at once
    find_duplicate: Callable[[Item, Sequence[Item]], str | None]  # says why an item is too like those kept so far
    spending: Spending
    on_outcomes: Callable[[Sequence[Outcome]], None] = lambda came: None  # told what became of each instance
    shard: Shard | None = None  # whose instances are begun alone
    begun: int = 0
    played: list[Outcome] = field(default_factory=list)  # every item, and every instance that became none, in order
    kept: list[Item] = field(default_factory=list)  # in order
    _sorts: Counter[str] = field(default_factory=Counter)

    def yield_counts(self) -> dict[str, Any]:
        """Count what was asked for, begun, generated, lost at each step with its reasons, and kept: the yield."""
        steps = [stage.name for stage in (*self.kind.stages, *self.kind.filters)]
        lost: dict[str, dict[str, int]] = {}
        for name in (*steps, DUPLICATE, FAILED, SURPLUS):
            reasons = Counter(one.why for one in self.played if one.lost == name)
            if reasons or name in steps or name == DUPLICATE:
                lost[name] = dict(sorted(reasons.items()))
        return {"asked_for": self.target, "instances": self.begun, "tries": self.tries,
                "generated": sum(one.generated for one in self.played), "lost": lost, "kept": len(self.kept)}

    async def run(self) -> None:
        """Play instances in blocks of as many as are missing: what is played does not depend on what ends first."""
        every = islice(self.kind.instances(self.library), self.tries)
        instances = every if self.shard is None else (one for one in every if one.id in self.shard)
        least = -(-_LEAST_BLOCK // (self.shard.of if self.shard else 1))
        while (missing := self.target - len(self.kept)) > 0 and not self.spending.stopped:
            block = list(islice(instances, max(missing, least)))
            if not block:
                return
            await self._block(block)

    async def _block(self, block: Sequence[Item]) -> None:
        came: dict[int, list[Outcome]] = {}

        async def one(place: int) -> None:
            came[place] = await self._instance(block[place])
            self.on_outcomes(came[place])

        await run_bounded(self.spending.affordable(range(len(block))), self.window, one)
        if self.spending.stopped:  # a part of a block is no part of the set: the same command plays it whole
            return
        self.begun += len(block)
        self.played += [self._collected(each) for place in range(len(block)) for each in came[place]]

    def _collected(self, played: Outcome) -> Outcome:
        if played.lost:
            return played
        if len(self.kept) >= self.target:
            return replace(played, lost=SURPLUS, why=f"{self.target} were kept before it")
        sort, most = self.kind.quota(played.item, self.library) or ("", self.target)
        if self._sorts[sort] >= most:
            return replace(played, lost=SURPLUS, why=f"{most} of {sort} were kept before it")
        if why := self.find_duplicate(played.item, self.kept):
            return replace(played, lost=DUPLICATE, why=why)
        self.kept.append(played.item)
        self._sorts[sort] += 1
        return played

    async def _instance(self, instance: Item) -> list[Outcome]:
        under_way, ended = [Outcome(instance)], []
        for stage in self.kind.stages:
            came = [each for one in under_way for each in await self._stage(stage, one)]
            ended += [one for one in came if one.lost]
            under_way = [one for one in came if not one.lost]
        made = [replace(one, generated=True) for one in under_way]
        return [*ended, *[await self._through_gates(one) for one in made]]

    async def _stage(self, stage: Stage, before: Outcome) -> list[Outcome]:
        played, came = await self._step(stage, before)
        if played.lost:
            return [played]
        return [replace(played, item=item) for item in (came if isinstance(came, list) else [came])]

    async def _through_gates(self, played: Outcome) -> Outcome:
        for gate in self.kind.filters:
            played, came = await self._step(gate, played)
            if played.lost:
                return played
            played = replace(played, item=came or played.item)
        return played

    async def _step(self, stage: Stage, before: Outcome) -> tuple[Outcome, Any]:
        came, answer = await self.runner.play(stage, before.item, self.library)
        calls = [(f"{stage.name}/{step.purpose}", step.key) for step in answer.trace if isinstance(step, GenerateStep)]
        played = replace(before, calls=(*before.calls, *calls))
        if answer.failure is not None:
            why = f"{stage.name}: {answer.failure.kind}: {answer.failure.message}"
            return replace(played, lost=FAILED, why=why), None
        lost = isinstance(came, Dropped | str)
        return replace(played, lost=stage.name, why=str(came)) if lost else played, came
