"""Run one cell: a question becomes a task, the graph answers it, and the answer becomes a record.

The setting `sub_answers` decides how the sub-questions of a multi-hop question are answered:

- `asked`: after the question itself, the sub-questions are asked in order, over the question's evidence, with fresh
  limits. `#1` is replaced by the model's own answer to the first one. If it has no readable answer, `#1` is replaced by
  "the answer to ..." with the text of the sub-question, so that the chain continues without gold. With `filled: gold`,
  `#1` is replaced by the gold sub-answer.
- `in_prompt`: one reply answers all sub-questions, one per line.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ragbed.agents.cassette import RECORDED
from ragbed.agents.graph import QuestionPlayer, runtime_of
from ragbed.agents.tools import QUESTION_TOOLS
from ragbed.agents.types import Answer, Cost, DecisionStep, GenerateStep, SearchStep, Step, ToolStep
from ragbed.experiments.benchmarks.fields import fill_references
from ragbed.experiments.cells import PIPELINE
from ragbed.experiments.record import Record, Result, StoredMessage, StoredPassage, StoredStep, StoredSub, Timing
from ragbed.strategies.answering import read_sub_answers
from ragbed.strategies.catalogue import SEARCH_ONLY
from ragbed.strategies.prompting import fill
from ragbed.strategies.reading import is_published_refusal, is_refusal, strip_citations
from ragbed.strategies.types import Usage

if TYPE_CHECKING:
    from ragbed.agents.database import Database
    from ragbed.agents.journal import Model
    from ragbed.agents.tools import ToolOutput
    from ragbed.documents.types import Chunk
    from ragbed.experiments.cells import Cell
    from ragbed.experiments.question import Question
    from ragbed.experiments.running.gold import GoldView
    from ragbed.experiments.running.plan import Tasks
    from ragbed.experiments.running.resources import Resources, ShownSearch
    from ragbed.strategies.types import Evidence, Message, Search, Task, ToolCall

SourceOf = Callable[[str], str]
_NO_NUMBERS: Mapping[str, int] = MappingProxyType({})
_MAX_KNOWN = 100_000  # chunks whose stored form is kept in memory
_NO_REPLY = ("connection", "timeout")  # other failures of calls, such as a rejected API key, end the run


class CellRunner:
    """Runs the questions of one cell."""

    def __init__(self, tasks: Tasks, model: Model, resources: Resources) -> None:
        self.tasks, self.model, self._resources = tasks, model, resources
        self._player = QuestionPlayer()
        journal = model.journal
        changed = journal.database is not None and journal.database.has("earlier_calls")  # most replies are reused
        recorded = tasks.settings.calls.config(tasks.cell.model).model.startswith(RECORDED)
        self._direct = (changed or recorded or journal.mode == "replay"
                        or tasks.cell.reasoning in (SEARCH_ONLY, PIPELINE))

    async def answer(self, question: Question) -> Answer:
        """Answer one question."""
        shown = self._resources.shown(self.tasks.cell, question)
        answer = await self._play(self.tasks.whole(question), shown)
        return replace(answer, notes=(*answer.notes, *shown.notes), scores=shown.scores)

    async def answer_without(self, question: Question, numbers: Mapping[str, int], left_out: Collection[int],
                             alone: bool) -> Answer:
        """Answer a question again without some passages.

        Args:
            numbers: the evidence number of each chunk by its id.
            left_out: numbers of chunks that no search returns.
            alone: whether searches also omit chunks without a number.
        """
        shown = self._resources.shown(self.tasks.cell, question)
        found, tools = shown.search, shown.tools

        def stays(chunk: Chunk) -> bool:
            return (number := numbers.get(chunk.id)) not in left_out and (number is not None or not alone)

        async def search(action: Search) -> Sequence[Chunk]:
            return [*filter(stays, await found(action))]

        async def call(action: ToolCall) -> ToolOutput:
            assert tools is not None
            output = await tools.call(action)
            return replace(output, parts=tuple(one for one in output.parts if isinstance(one, str) or stays(one)))

        less = replace(shown, search=search, tools=tools and replace(tools, call=call))
        return await self._play(self.tasks.whole(question), less, numbers)

    async def answer_part(self, question: Question, place: int, text: str, evidence: Evidence) -> Answer:
        """Answer a sub-question over the question's evidence. `text` is the sub-question with its references filled in.
        """
        shown = self._resources.over_passages(self.tasks.cell, tuple(passage.chunk for passage in evidence))
        return await self._play(self.tasks.part(question, place, text, evidence), shown)

    async def _play(self, task: Task, shown: ShownSearch, numbers: Mapping[str, int] = _NO_NUMBERS) -> Answer:
        limits = self.tasks.settings.limits
        tools = shown.tools and replace(shown.tools, most=limits.tools)
        headed = {"header": self._resources.header_of} if self.tasks.cell.headers else {}
        runtime = runtime_of(shown.search, self.model, limits, tools=tools.call if tools else None, **headed)
        token = QUESTION_TOOLS.set(tools)
        try:
            return await self._player.play(replace(task, tools=tools.specs if tools else ()), self.tasks.reasoning,
                                           runtime, numbers, self._direct)
        finally:
            QUESTION_TOOLS.reset(token)


class StoredChunks:
    """Chunks in their stored form, which is made once, because many questions find the same chunks. Their texts are
    added to the database."""

    def __init__(self, database: Database, source_of: SourceOf) -> None:
        self.database, self._source_of = database, source_of
        self._known: dict[str, tuple[Chunk, dict[str, Any]]] = {}

    def fields(self, chunk: Chunk) -> dict[str, Any]:
        """Return the fields of a `StoredPassage` without gold, in order. The caller copies them."""
        known, fields = self._known.get(chunk.id, (None, {}))
        if known is not chunk:
            fields = {"number": 0, "chunk": chunk.id, "document": chunk.document,
                      "source": self._source_of(chunk.document), "format": chunk.format, "start": chunk.start,
                      "end": chunk.end, "pages": chunk.pages, "text": self.database.put_text(chunk.content),
                      "gold": None, "holds": (), "repeats": False, "grade": None, "aside": False, "score": None}
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[chunk.id] = chunk, fields
        return fields


def make_result(cell: Cell, question: Question, answerable: bool, answer: Answer, view: GoldView,
                chunks: StoredChunks) -> Result:
    """Return the answer in its stored form, without verdict and scores. Its texts are added to the database."""
    # ragbed learns of a pipeline's calls of tools from its reply, but they came first
    trace = sorted(answer.trace, key=lambda step: cell.reasoning == PIPELINE and isinstance(step, GenerateStep))
    return Result(
        cell=cell.id, question=question.id, answerable=answerable, outcome=answer.outcome,
        text=answer.text, refused=answer.refused, refused_as_published=is_published_refusal(answer.text),
        cited=answer.cited, invalid_citations=answer.invalid_citations, tagged=answer.tagged, notes=answer.notes,
        evidence=tuple(_stored_passages(cell, answer, view, chunks)),
        gold_total=view.total, gold_grades=view.grades,
        gold_in_view=view.gold_among(answer.shown), verdict=None, scores={},
        usage=answer.used, trace=stored_trace(trace, chunks.database), failure=answer.failure,
        figures=dict(answer.figures))


def make_record(result: Result, cost: Cost) -> Record:
    """Return the record of a result and its cost."""
    timing = Timing(seconds=round(cost.seconds, 4), attempts=cost.attempts, replayed=cost.replayed, paid=cost.paid,
                    finished=datetime.now(UTC).isoformat(timespec="seconds"), retried=cost.retried)
    return Record(result=result, timing=timing)


def add_cost(record: Record, result: Result, cost: Cost) -> Record:
    """Return the record with the result and calls of a follow-up. Its duration stays that of the answer."""
    timing = record.timing
    paid = None if timing.paid is None or cost.paid is None else timing.paid + cost.paid
    return Record(result=result, timing=timing.model_copy(update={
        "attempts": timing.attempts + cost.attempts, "replayed": timing.replayed + cost.replayed,
        "retried": timing.retried + cost.retried, "paid": paid}))


def stored_trace(trace: Sequence[Step], database: Database) -> tuple[StoredStep, ...]:
    """Return the steps in their stored form. Their texts are added to the database."""
    return tuple(_stored_step(step, database) for step in trace)


def _stored_passages(cell: Cell, answer: Answer, view: GoldView, chunks: StoredChunks) -> Iterator[StoredPassage]:
    shown, scores = set(answer.shown), answer.scores if cell.reasoning == SEARCH_ONLY else {}
    for passage in answer.ranked:
        number, chunk = passage.number, passage.chunk
        fields = chunks.fields(chunk) | {"number": number, "repeats": number in view.repeats,
                                         "aside": number not in shown, "score": scores.get(chunk.id)}
        if held := view.hits[number]:
            fields |= {"gold": view.levels[number], "holds": tuple(sorted(held))}
        yield StoredPassage.build_unchecked(fields)


def _stored_step(step: Step, database: Database) -> StoredStep:
    if isinstance(step, SearchStep):
        return StoredStep(kind="search", query=step.query, found=step.found, failure=step.failure)
    if isinstance(step, DecisionStep):
        return StoredStep(kind="decision", purpose=step.what, text=step.why)
    if isinstance(step, ToolStep):
        parts = tuple(database.put_text(part) if isinstance(part, str) else part for part in step.parts)
        return StoredStep(kind="tool", purpose=step.tool, arguments=dict(step.arguments), found=step.found, parts=parts,
                          failure=step.failure)
    return StoredStep(kind="generate", purpose=step.purpose, key=step.key,
                      messages=tuple(_stored_message(message, database) for message in step.messages),
                      shown=step.shown, text=step.text, reasoning=step.reasoning, finish_reason=step.finish_reason,
                      usage=step.usage, failure=step.failure, tool_calls=tuple(map(dict, step.tool_calls)))


def _stored_message(message: Message, database: Database) -> StoredMessage:
    return StoredMessage(role=message.role, parts=tuple(map(database.put_text, message.parts)),
                         tool_calls=tuple(map(dict, message.tool_calls)), call_id=message.call_id)


@dataclass(frozen=True, slots=True)
class SubAnswered:
    """The answers to a question's sub-questions, with their usage and cost."""

    stored: tuple[StoredSub, ...] = ()
    usage: Usage = field(default_factory=Usage)
    cost: Cost = field(default_factory=Cost)


async def answer_subs(runner: CellRunner, question: Question, answer: Answer, database: Database) -> SubAnswered:
    """Return the answers to the sub-questions of a question that was answered.

    In two cases, sub-questions are not asked but share the question's outcome. If no prompt was sent, the evidence may
    be incomplete. If the server did not reply, it would not reply to sub-questions either.
    """
    mode = runner.tasks.sub_answers(question)
    if mode == "none":
        return SubAnswered()
    if mode == "in_prompt":
        return SubAnswered(tuple(_read_subs(question, answer)))
    if answer.failure is not None and (answer.failure.kind in _NO_REPLY or not any(
            isinstance(step, GenerateStep) for step in answer.trace)):
        return SubAnswered(tuple(StoredSub(question=text, outcome=answer.outcome) for text in question.sub_questions))
    return await _ask_subs(runner, question, answer, database)


async def _ask_subs(runner: CellRunner, question: Question, answer: Answer, database: Database) -> SubAnswered:
    references: list[str] = []
    stored: list[StoredSub] = []
    usage, cost = Usage(), Cost()
    for place, text in enumerate(question.sub_questions):
        asked = fill_references(text, references)
        part = await runner.answer_part(question, place, asked, answer.in_view)
        stored.append(StoredSub(question=asked, outcome=part.outcome, text=part.text,
                                trace=stored_trace(part.trace, database)))
        gold = runner.tasks.settings.filled == "gold"
        references.append(question.sub_answers[place] if gold else _reference(asked, part))
        usage += part.used
        cost += part.cost
    return SubAnswered(tuple(stored), usage, cost)


def _reference(asked: str, answer: Answer) -> str:
    """Return the text that replaces `#1`: the answer on one line, without citations or final full stop.
    """
    text = " ".join(strip_citations(answer.text).split()) if answer.outcome == "answered" else ""
    if text.endswith(".") and "." not in text.split()[-1][:-1]:
        text = text[:-1].rstrip()
    return text or fill("unanswered", question=asked)


def _read_subs(question: Question, answer: Answer) -> list[StoredSub]:
    """Read the sub-answers from the last final answer. Without one, all share the question's outcome.
    """
    replies = [step for step in answer.trace if isinstance(step, GenerateStep) and step.failure is None]
    if answer.failure is not None or not replies:
        return [StoredSub(question=text, outcome=answer.outcome) for text in question.sub_questions]
    # Later replies, such as a check of the answer, do not contain these lines.
    last = [step for step in replies if step.purpose == "answer"] or replies
    lines = read_sub_answers(last[-1].text, len(question.sub_questions))
    return [StoredSub(question=text, outcome="malformed" if line is None else "refused" if is_refusal(line)
                      else "answered", text=line or "")
            for text, line in zip(question.sub_questions, lines, strict=True)]
