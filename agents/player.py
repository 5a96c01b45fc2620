"""Play questions that nobody watches or saves, many at once over one compiled graph."""
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
    """Play recipes to their answers. A question that is interrupted starts again; nothing of it is restored."""

    def __init__(self) -> None:
        self._live: dict[str, Session] = {}
        self._graph: Graph = build_graph(self)

    def session(self, state: State) -> Session:
        """Return the live session of the state's question."""
        return self._live[state["id"]]

    async def play(self, task: Task, recipe: Reasoning, runtime: Runtime, numbers: Mapping[str, int] = NO_NUMBERS,
                   replay: bool = False) -> Answer:
        """Return the answer to a task, whose id is unique among those in play.

        Args:
            numbers: evidence numbers by chunk id, for a question that is asked again.
            replay: every reply is in the journal, so the graph's own scheduling would take most of the time.
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
    """Return a runtime whose calls all go to one model."""
    return Runtime(search=search, ask=model.ask, key=model.key, chunk=cannot_restore, limits=limits)


def cannot_restore(chunk: str) -> NoReturn:
    """Refuse to restore a chunk by its id."""
    raise RunError(f"the chunk {chunk} cannot be restored: an unfinished question starts again")
