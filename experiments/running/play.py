"""Playing one cell: a question becomes a task, and the graph answers it."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from agents.graph import Graph, State, build_graph, recursion_limit
from agents.playback import Playback, Runtime
from agents.search import SearchFunction, instant
from documents.errors import RunError
from retrieval.conditions import Placed

if TYPE_CHECKING:
    from agents.journal import Model
    from agents.settings import Limits
    from agents.types import Answer
    from documents.types import Chunk
    from experiments.cells import Cell
    from experiments.question import Question
    from experiments.running.plan import Tasks
    from experiments.running.resources import Shown
    from experiments.settings import SubAnswers
    from strategies.types import Evidence, Task


class CellPlayer:
    """Plays the questions of one cell; the graph finds each question's playback here.

    Args:
        shown: what a question's searches return under the cell's condition.
    """

    def __init__(self, tasks: Tasks, model: Model, shown: Callable[[Cell, Question], Shown]) -> None:
        self.cell, self.settings = tasks.cell, tasks.settings
        self.model = model
        self._tasks = tasks
        self._shown = shown
        self._live: dict[str, Playback] = {}
        self._graph: Graph = build_graph(self)

    def playback(self, state: State) -> Playback:
        """The live playback of the state's question."""
        return self._live[state["id"]]

    def sub_answers(self, question: Question) -> SubAnswers:
        """How the question's sub-questions are answered."""
        return self._tasks.sub_answers(question)

    async def answer(self, question: Question, limits: Limits) -> Answer:
        """Play the cell's strategies over one question.

        Args:
            limits: what it may use.
        """
        shown = self._shown(self.cell, question)
        answer = await self._play(self._tasks.whole(question), shown.search, limits)
        return replace(answer, notes=(*answer.notes, *shown.notes)) if shown.notes else answer

    async def answer_part(self, question: Question, place: int, text: str, evidence: Evidence) -> Answer:
        """Play the cell's reasoning strategy over a sub-question and the evidence that its question had.

        Args:
            text: the sub-question, its references to earlier answers filled in.
        """
        task = self._tasks.part(question, place, text, evidence)
        chunks = tuple(passage.chunk for passage in evidence)
        return await self._play(task, instant(Placed(chunks, self.cell.condition)), self.settings.limits)

    async def _play(self, task: Task, search: SearchFunction, limits: Limits) -> Answer:
        runtime = Runtime(search=search, ask=self.model.ask, key=self.model.key, chunk=_none_kept, limits=limits)
        play = self._live[task.id] = Playback(task, self._tasks.reasoning, runtime)
        try:
            await self._graph.ainvoke({"id": task.id, "question": task.question},
                                      recursion_limit(limits), output_keys="answer")
        finally:
            del self._live[task.id]
        return play.answer()


def _none_kept(chunk: str) -> Chunk:
    raise RunError(f"the chunk {chunk} cannot be brought back: a run restarts its unfinished questions")
