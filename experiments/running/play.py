"""Playing one cell: a question becomes a task, the graph answers it, and the answer becomes a record.

The sub-questions of a multi-hop question are answered as the settings have it. `asked` puts each as a question of its
own, in order, over the evidence that the question had, after the question's own answer, which knows nothing of them;
each has the question's limits anew. In the place of `#1` stands the model's own answer to the first; where there is
none, since it refused, failed or said nothing to read, the sub-question itself stands there as words ("the answer to
..."), so that the chain goes on without gold. With `filled: gold` the gold sub-answer stands there. `in_prompt` reads
the lines of the one reply that was asked for them all.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from ragbed.agents.graph import Graph, State, build_graph, play_to_end, recursion_limit
from ragbed.agents.search import SearchFunction, fixed_chunks
from ragbed.agents.session import Runtime, Session
from ragbed.agents.types import Answer, Cost, DecisionStep, GenerateStep, SearchStep, Step
from ragbed.documents.errors import RunError
from ragbed.experiments.benchmarks.fields import with_references
from ragbed.experiments.record import Record, Result, StoredMessage, StoredPassage, StoredStep, StoredSub, Timing
from ragbed.strategies.answering import read_sub_answers
from ragbed.strategies.prompting import fill
from ragbed.strategies.reading import is_refusal, refused_as_published, strip_citations
from ragbed.strategies.types import Usage

if TYPE_CHECKING:
    from ragbed.agents.database import Database
    from ragbed.agents.journal import Model
    from ragbed.documents.types import Chunk
    from ragbed.experiments.cells import Cell
    from ragbed.experiments.question import Question
    from ragbed.experiments.running.gold import GoldView
    from ragbed.experiments.running.plan import Tasks
    from ragbed.experiments.running.resources import ShownSearch
    from ragbed.experiments.settings import SubAnswers
    from ragbed.strategies.types import Evidence, Message, Passage, Search, Task


class CellPlayer:
    """Plays the questions of one cell, whose searches return what is `shown` under its condition; the graph finds each
    question's playback here."""

    def __init__(self, tasks: Tasks, model: Model, shown: Callable[[Cell, Question], ShownSearch]) -> None:
        self.cell, self.settings = tasks.cell, tasks.settings
        self.model = model
        self._tasks = tasks
        self._shown = shown
        self._live: dict[str, Session] = {}
        self._graph: Graph = build_graph(self)

    def session(self, state: State) -> Session:
        """Return the live playback of the state's question."""
        return self._live[state["id"]]

    def sub_answers(self, question: Question) -> SubAnswers:
        """Return how the question's sub-questions are answered."""
        return self._tasks.sub_answers(question)

    async def answer(self, question: Question) -> Answer:
        """Play the cell's strategies over one question."""
        shown = self._shown(self.cell, question)
        answer = await self._play(self._tasks.whole(question), shown.search)
        return replace(answer, notes=(*answer.notes, *shown.notes)) if shown.notes else answer

    async def answer_without(self, question: Question, numbers: Mapping[str, int], left_out: Collection[int],
                             alone: bool) -> Answer:
        """Play the cell's strategies over a question again, with its limits anew, where chunks have `numbers` by their
        id, and searches find none of those left out; if `alone`, nor any without a number."""
        found = self._shown(self.cell, question).search

        async def search(action: Search) -> Sequence[Chunk]:
            return [chunk for chunk in await found(action) if (number := numbers.get(chunk.id)) not in left_out
                    and (number is not None or not alone)]

        return await self._play(self._tasks.whole(question), search, numbers)

    async def answer_part(self, question: Question, place: int, text: str, evidence: Evidence) -> Answer:
        """Play the cell's reasoning strategy over a sub-question, its references to earlier answers filled in, and the
        evidence that its question had."""
        task = self._tasks.part(question, place, text, evidence)
        chunks = tuple(passage.chunk for passage in evidence)
        return await self._play(task, fixed_chunks(chunks))

    async def _play(self, task: Task, search: SearchFunction,
                    numbers: Mapping[str, int] = MappingProxyType({})) -> Answer:
        limits = self.settings.limits
        runtime = Runtime(search=search, ask=self.model.ask, key=self.model.key, chunk=_none_kept, limits=limits)
        play = self._live[task.id] = Session(task, self._tasks.reasoning, runtime, numbers)
        try:
            if self.model.journal.mode == "replay":
                await play_to_end(play)
            else:
                await self._graph.ainvoke({"id": task.id, "question": task.question},
                                          recursion_limit(limits), output_keys="answer")
        finally:
            del self._live[task.id]
        return play.answer()


def _none_kept(chunk: str) -> Chunk:
    raise RunError(f"the chunk {chunk} cannot be brought back: a run restarts its unfinished questions")


SourceOf = Callable[[str], str]


def make_result(cell: Cell, question: Question, answerable: bool, answer: Answer, view: GoldView, source_of: SourceOf,
                database: Database) -> Result:
    """Return the answer as it is stored, not judged nor scored yet; its texts go to the database."""
    return Result(
        cell=cell.id, question=question.id, answerable=answerable, outcome=answer.outcome,
        text=answer.text, refused=answer.refused, refused_as_published=refused_as_published(answer.text),
        cited=answer.cited, invalid_citations=answer.invalid_citations, tagged=answer.tagged, notes=answer.notes,
        evidence=tuple(_stored_passage(passage, passage.number not in answer.shown, view, source_of, database)
                       for passage in answer.ranked),
        gold_total=view.total, gold_grades=view.grades,
        gold_in_view=view.gold_among(answer.shown), verdict=None, scores={},
        usage=answer.used, trace=stored_trace(answer.trace, database), failure=answer.failure,
        figures=dict(answer.figures))


def make_record(result: Result, cost: Cost) -> Record:
    """Return the record, timed from the cost of all that was played for it."""
    timing = Timing(seconds=round(cost.seconds, 4), attempts=cost.attempts, replayed=cost.replayed, paid=cost.paid,
                    finished=datetime.now(UTC).isoformat(timespec="seconds"), retried=cost.retried)
    return Record(result=result, timing=timing)


def add_cost(record: Record, result: Result, cost: Cost) -> Record:
    """Return the record with a follow-up's result and calls. Its seconds stay those of the answer."""
    timing = record.timing
    paid = None if timing.paid is None or cost.paid is None else timing.paid + cost.paid
    return Record(result=result, timing=timing.model_copy(update={
        "attempts": timing.attempts + cost.attempts, "replayed": timing.replayed + cost.replayed,
        "retried": timing.retried + cost.retried, "paid": paid}))


def stored_trace(trace: Sequence[Step], database: Database) -> tuple[StoredStep, ...]:
    """Return the steps as they are stored; their texts go to the database."""
    return tuple(_stored_step(step, database) for step in trace)


def _stored_passage(passage: Passage, aside: bool, view: GoldView, source_of: SourceOf,
                    database: Database) -> StoredPassage:
    chunk = passage.chunk
    return StoredPassage(number=passage.number, chunk=chunk.id, document=chunk.document,
                         source=source_of(chunk.document), format=chunk.format, start=chunk.start, end=chunk.end,
                         pages=chunk.pages, text=database.put_text(chunk.content), gold=view.levels[passage.number],
                         holds=tuple(sorted(view.hits[passage.number])), repeats=passage.number in view.repeats,
                         aside=aside)


def _stored_step(step: Step, database: Database) -> StoredStep:
    if isinstance(step, SearchStep):
        return StoredStep(kind="search", query=step.query, found=step.found, failure=step.failure)
    if isinstance(step, DecisionStep):
        return StoredStep(kind="decision", purpose=step.what, text=step.why)
    return StoredStep(kind="generate", purpose=step.purpose, key=step.key,
                      messages=tuple(_stored_message(message, database) for message in step.messages),
                      shown=step.shown, text=step.text, reasoning=step.reasoning, finish_reason=step.finish_reason,
                      usage=step.usage, failure=step.failure, tool_calls=tuple(map(dict, step.tool_calls)))


def _stored_message(message: Message, database: Database) -> StoredMessage:
    return StoredMessage(role=message.role, parts=tuple(map(database.put_text, message.parts)),
                         tool_calls=tuple(map(dict, message.tool_calls)), call_id=message.call_id)


_NO_REPLY = ("connection", "timeout")  # a key that is refused ends the run


@dataclass(frozen=True, slots=True)
class Subs:
    """The answers to the sub-questions, and what they used and cost."""

    stored: tuple[StoredSub, ...] = ()
    usage: Usage = field(default_factory=Usage)
    cost: Cost = field(default_factory=Cost)


async def subs_of(player: CellPlayer, question: Question, answer: Answer, database: Database) -> Subs:
    """Return the sub-questions of a question that was played, as its cell has them answered.

    Where the question ended before any prompt was sent, its evidence is not known to be whole; where no reply came
    from its server, none is to be had for them either. Then its sub-questions are not asked and share its outcome.
    """
    mode = player.sub_answers(question)
    if mode == "none":
        return Subs()
    if mode == "in_prompt":
        return Subs(tuple(_read(question, answer)))
    if answer.failure is not None and (answer.failure.kind in _NO_REPLY or not any(
            isinstance(step, GenerateStep) for step in answer.trace)):
        return Subs(tuple(StoredSub(question=text, outcome=answer.outcome) for text in question.sub_questions))
    return await _ask(player, question, answer, database)


async def _ask(player: CellPlayer, question: Question, answer: Answer, database: Database) -> Subs:
    known: list[str] = []
    stored: list[StoredSub] = []
    usage, cost = Usage(), Cost()
    for place, text in enumerate(question.sub_questions):
        asked = with_references(text, known)
        came = await player.answer_part(question, place, asked, answer.in_view)
        stored.append(StoredSub(question=asked, outcome=came.outcome, text=came.text,
                                trace=stored_trace(came.trace, database)))
        known.append(question.sub_answers[place] if player.settings.filled == "gold" else _phrase(asked, came))
        usage += came.used
        cost += came.cost
    return Subs(tuple(stored), usage, cost)


def _phrase(asked: str, answer: Answer) -> str:
    """What stands for the answer in later sub-questions: on one line, without citations and its full stop."""
    said = " ".join(strip_citations(answer.text).split()) if answer.outcome == "answered" else ""
    if said.endswith(".") and "." not in said.split()[-1][:-1]:
        said = said[:-1].rstrip()
    return said or fill("unanswered", question=asked)


def _read(question: Question, answer: Answer) -> list[StoredSub]:
    """The lines of the last reply that was asked for an answer. Where none came, each shares the question's outcome."""
    replies = [step for step in answer.trace if isinstance(step, GenerateStep) and step.failure is None]
    if answer.failure is not None or not replies:
        return [StoredSub(question=text, outcome=answer.outcome) for text in question.sub_questions]
    # What comes after an answer, such as a check that it passes, was not asked for the lines.
    last = [step for step in replies if step.purpose == "answer"] or replies
    read = read_sub_answers(last[-1].text, len(question.sub_questions))
    return [StoredSub(question=text, outcome="malformed" if said is None else "refused" if is_refusal(said)
                      else "answered", text=said or "")
            for text, said in zip(question.sub_questions, read, strict=True)]
