"""Playing one cell: a question becomes a task, the graph answers it, the judge grades it."""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from agents.graph import Graph, State, build_graph, recursion_limit
from agents.model import Model
from agents.playback import Means, Playback
from agents.search import SearchFunction
from agents.types import Answer, Cost
from documents.errors import RunError
from documents.types import Chunk, digest
from experiments.cells import Cell
from experiments.judges import Judge
from experiments.metrics.scored import needs_judge
from experiments.question import Question
from experiments.record import Verdict
from experiments.settings import RunSettings
from strategies.catalogue import reasoning, retrieval
from strategies.types import Failure, Reply, Task, Usage


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


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on an answer, None where none is due; and what it used and cost."""

    verdict: Verdict | None
    usage: Usage
    cost: Cost


async def ask_judge(judge: Judge, model: Model | None, question: Question, answer: Answer,
                    deadline: Callable[[], float]) -> Judged:
    """The judge's verdict where one is due."""
    if not needs_judge(answer.outcome, question.answerable, question.answers):
        return Judged(None, Usage(), Cost())
    judging = judge.judge(question.text, question.answers, answer.text)
    sent: Reply | Failure | None = None
    usage, cost, started = Usage(), Cost(), time.monotonic()
    while True:
        try:
            action = next(judging) if sent is None else judging.send(sent)
        except StopIteration as end:
            return Judged(end.value, usage, replace(cost, seconds=time.monotonic() - started))
        if model is None:
            raise RunError(f"the judge {judge.name} asks for a model, and none is open")
        asked = await model.ask(action, deadline())
        sent = asked.outcome
        used = sent.usage if isinstance(sent, Reply) else Usage(calls=1)
        price = 0.0 if asked.replayed else used.price
        usage += used
        cost = Cost(0.0, cost.attempts + asked.attempts, cost.replayed + asked.replayed,
                    None if price is None or cost.paid is None else cost.paid + price)
