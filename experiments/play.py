"""Playing one cell: a question becomes a task, and the graph answers it."""
from __future__ import annotations

from collections.abc import Callable

from agents.graph import Graph, State, build_graph, recursion_limit
from agents.model import Model
from agents.playback import Means, Playback
from agents.search import SearchFunction
from agents.types import Answer
from documents.errors import RunError
from documents.types import Chunk, digest
from experiments.cells import Cell
from experiments.question import Question
from experiments.settings import RunSettings
from strategies.catalogue import reasoning, retrieval
from strategies.types import Task


class CellPlayer:
    """Plays the questions of one cell; the graph finds each question's playback here.

    Args:
        search: what a search returns under the cell's condition.
    """

    def __init__(self, cell: Cell, settings: RunSettings, model: Model,
                 search: Callable[[Cell, Question], SearchFunction]) -> None:
        self.cell = cell
        self.settings = settings
        self.model = model
        self._search = search
        self._live: dict[str, Playback] = {}
        self._graph: Graph = build_graph(self)

    def playback(self, state: State) -> Playback:
        """The live playback of the state's question."""
        return self._live[state["id"]]

    async def answer(self, question: Question) -> Answer:
        """Play the cell's strategies over one question."""
        play = Playback(self._task(question), reasoning(self.cell.reasoning), self._means(question))
        self._live[question.id] = play
        try:
            await self._graph.ainvoke({"id": question.id, "question": question.text},
                                      recursion_limit(self.settings.limits), output_keys="answer")
        finally:
            del self._live[question.id]
        return play.answer()

    def _task(self, question: Question) -> Task:
        placed = "none" if self.cell.condition == "closed-book" else "once"
        return Task(id=question.id, question=question.text, retrieval=retrieval(self.cell.retrieval or placed),
                    rules=self.cell.rules, options=question.options, layout=self.settings.layout,
                    seed=int(digest(str(self.settings.seed), self.cell.id)[:12], 16))

    def _means(self, question: Question) -> Means:
        return Means(search=self._search(self.cell, question), ask=self.model.ask, key=self.model.key,
                     chunk=_none_kept, limits=self.settings.limits)


def _none_kept(chunk: str) -> Chunk:
    raise RunError(f"the chunk {chunk} cannot be brought back: a run restarts its unfinished questions")
