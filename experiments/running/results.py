"""From an answer to the record of it: its scores computed, its texts kept apart."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from agents.database import Database
from agents.types import Answer, Cost, DecisionStep, GenerateStep, SearchStep, Step
from experiments.cells import Cell
from experiments.evidence.gold import GoldView
from experiments.metrics.as_published import refused as refused_as_published
from experiments.metrics.catalogue import score
from experiments.metrics.scored import Scoring, scored_of
from experiments.question import Question
from experiments.record import Record, Result, StoredMessage, StoredPassage, StoredStep, Timing
from experiments.scheme import Scheme
from strategies.types import Message, Passage, Usage

SourceOf = Callable[[str], str]


def make_result(cell: Cell, question: Question, answerable: bool, answer: Answer, view: GoldView, source_of: SourceOf,
                database: Database) -> Result:
    """The answer as it is stored, not judged nor scored yet; its texts go to the database."""
    return Result(
        cell=cell.id, question=question.id, answerable=answerable, outcome=answer.outcome,
        text=answer.text, refused=answer.refused, refused_as_published=refused_as_published(answer.text),
        cited=answer.cited, invalid_citations=answer.invalid_citations, tagged=answer.tagged, notes=answer.notes,
        evidence=tuple(_stored_passage(passage, passage.number not in answer.shown, view, source_of, database)
                       for passage in answer.ranked),
        gold_total=view.total, gold_grades=view.grades,
        gold_in_view=view.gold_among(answer.shown), verdict=None, scores={},
        usage=used(answer), trace=stored_trace(answer.trace, database), failure=answer.failure,
        figures=dict(answer.figures))


def scored_result(result: Result, cell: Cell, question: Question, scheme: Scheme, scoring: Scoring) -> Result:
    """The result with its scores, computed from what is stored of it alone."""
    item = scored_of(result, question, cell.rules, separators=cell.separators, searched=cell.searched)
    return result.model_copy(update={"scores": score(item, scoring, scheme.groups, scheme.metrics)})


def make_record(result: Result, cost: Cost) -> Record:
    """The record, timed from the cost of all that was played for it."""
    timing = Timing(seconds=round(cost.seconds, 4), attempts=cost.attempts, replayed=cost.replayed, paid=cost.paid,
                    finished=datetime.now(UTC).isoformat(timespec="seconds"), retried=cost.retried)
    return Record(result=result, timing=timing)


def used(answer: Answer) -> Usage:
    """What the answer used; `calls` are all that it asked the model for, those that failed too."""
    return replace(answer.usage, calls=sum(isinstance(step, GenerateStep) for step in answer.trace))


def stored_trace(trace: Sequence[Step], database: Database) -> tuple[StoredStep, ...]:
    """The steps as they are stored; their texts go to the database."""
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
