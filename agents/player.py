"""Play many questions at once over one compiled graph, without streaming or saving."""
from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn

from ragbed.agents.graph import Graph, State, build_graph, play_to_end, recursion_limit
from ragbed.agents.journal import Model
from ragbed.agents.search import SearchFunction
from ragbed.agents.session import Runtime, Session
from ragbed.agents.settings import Limits
from ragbed.agents.types import Answer
from ragbed.documents.errors import RunError
from ragbed.strategies.types import Reasoning, Task

NO_NUMBERS: Mapping[str, int] = MappingProxyType({})


class QuestionPlayer:
    """Plays recipes to their answers. An interrupted question starts again from the beginning."""

    def __init__(self) -> None:
        self._live: dict[str, Session] = {}
        self._graph: Graph = build_graph(self)

    def session(self, state: State) -> Session:
        """Return the live session of a state's question."""
        return self._live[state["id"]]

    async def play(self, task: Task, recipe: Reasoning, runtime: Runtime, numbers: Mapping[str, int] = NO_NUMBERS,
                   replay: bool = False) -> Answer:
        """Return the answer to a task. Its id must be unique among the tasks in play.

        Args:
            numbers: evidence numbers by chunk id, for a question that is asked again.
            replay: skip the graph's scheduling, which would take most of the time if every reply is in the journal.
        """
        play = self._live[task.id] = Session(task, recipe, runtime, numbers)
        try:
            if replay:
                await play_to_end(play)
            else:
                await self._graph.ainvoke({"id": task.id, "question": task.question},
                                          recursion_limit(runtime.limits), output_keys="answer")
        finally:
            del self._live[task.id]
        return play.answer()


def runtime_of(search: SearchFunction, model: Model, limits: Limits) -> Runtime:
    """Return a runtime that sends all calls to one model."""
    return Runtime(search=search, ask=model.ask, key=model.key, chunk=cannot_restore, limits=limits)


def cannot_restore(chunk: str) -> NoReturn:
    """Raise RunError: this player starts an unfinished question again instead of resuming it."""
    raise RunError(f"the chunk {chunk} cannot be restored: an unfinished question starts again")
