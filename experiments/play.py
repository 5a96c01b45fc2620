"""Playing one cell: a question becomes a task, and the graph answers it."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agents.graph import Graph, State, build_graph, recursion_limit
from agents.model import Model
from agents.playback import Means, Playback
from agents.search import SearchFunction, instant
from agents.types import Answer
from documents.errors import RunError
from documents.types import Chunk, digest
from experiments.cells import Cell
from experiments.question import Question
from experiments.resources import Shown
from experiments.scheme import Scheme
from experiments.settings import RunSettings, SubAnswers
from retrieval.conditions import Placed
from strategies.catalogue import reasoning, retrieval
from strategies.types import Evidence, Exemplar, Task


class CellPlayer:
    """Plays the questions of one cell; the graph finds each question's playback here.

    Args:
        shown: what a question's searches return under the cell's condition.
        scheme: of the benchmark: whether sub-questions are scored.
    """

    def __init__(self, cell: Cell, settings: RunSettings, model: Model,
                 shown: Callable[[Cell, Question], Shown], scheme: Scheme,
                 exemplars: tuple[Exemplar, ...] = ()) -> None:
        self.cell = cell
        self.settings = settings
        self.model = model
        self.scheme = scheme
        self._shown = shown
        self._exemplars = exemplars
        self._live: dict[str, Playback] = {}
        self._graph: Graph = build_graph(self)

    def playback(self, state: State) -> Playback:
        """The live playback of the state's question."""
        return self._live[state["id"]]

    def sub_answers(self, question: Question) -> SubAnswers:
        """How the question's sub-questions are answered; `none` where they are not scored: it has no gold for them."""
        scored = "chain" in self.scheme.groups and question.sub_answers
        return self.settings.sub_answers if scored else "none"

    async def answer(self, question: Question) -> Answer:
        """Play the cell's strategies over one question."""
        shown = self._shown(self.cell, question)
        answer = await self._play(self._task(question), shown.search)
        return replace(answer, notes=(*answer.notes, *shown.notes)) if shown.notes else answer

    async def answer_part(self, question: Question, place: int, text: str, evidence: Evidence) -> Answer:
        """Play the cell's reasoning strategy over a sub-question and the evidence that its question had.

        Args:
            text: the sub-question, its references to earlier answers filled in.
        """
        task = replace(self._task(question), id=f"{question.id}, sub-question {place + 1}", question=text,
                       retrieval=retrieval("once" if evidence else "none"), options=(), sub_questions=(),
                       rules="open" if self.cell.rules == "choice" else self.cell.rules)
        chunks = tuple(passage.chunk for passage in evidence)
        return await self._play(task, instant(Placed(chunks, self.cell.condition)))

    async def _play(self, task: Task, search: SearchFunction) -> Answer:
        means = Means(search=search, ask=self.model.ask, key=self.model.key, chunk=_none_kept,
                      limits=self.settings.limits)
        play = self._live[task.id] = Playback(task, reasoning(self.cell.reasoning), means)
        try:
            await self._graph.ainvoke({"id": task.id, "question": task.question},
                                      recursion_limit(self.settings.limits), output_keys="answer")
        finally:
            del self._live[task.id]
        return play.answer()

    def _task(self, question: Question) -> Task:
        placed = "none" if self.cell.condition == "closed-book" else "once"
        sub_questions = question.sub_questions if self.cell.show == "sub_questions" else ()
        return Task(id=question.id, question=question.text, retrieval=retrieval(self.cell.retrieval or placed),
                    rules=self.cell.rules, options=question.options, layout=self.settings.layout,
                    separators=self.cell.separators, sub_questions=sub_questions,
                    with_sub_answers=self.sub_answers(question) == "in_prompt", about=question.about,
                    brief=self.settings.brief, exemplars=self._exemplars,
                    seed=int(digest(str(self.settings.seed), self.cell.id)[:12], 16))


def _none_kept(chunk: str) -> Chunk:
    raise RunError(f"the chunk {chunk} cannot be brought back: a run restarts its unfinished questions")
