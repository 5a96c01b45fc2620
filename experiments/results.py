"""From an answer to the record of it: its scores computed, its texts kept apart."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from agents.database import Database
from agents.types import Answer, GenerateStep, SearchStep, Step
from experiments.cells import Cell
from experiments.gold import GoldView
from experiments.metrics.as_published import refused as refused_as_published
from experiments.metrics.scored import Scored, Scoring
from experiments.metrics.table import score
from experiments.play import Judged
from experiments.question import Question
from experiments.record import Record, Result, StoredMessage, StoredPassage, StoredStep, Timing, Verdict
from strategies.types import Message, Passage, Usage

SourceOf = Callable[[str], str]


def make_record(cell: Cell, question: Question, answer: Answer, judged: Judged, scoring: Scoring, view: GoldView,
                source_of: SourceOf, database: Database) -> Record:
    """The record of one question in one cell; its texts go to the database."""
    result = Result(
        cell=cell.id, question=question.id, answerable=question.answerable, outcome=answer.outcome,
        text=answer.text, refused=answer.refused, refused_as_published=refused_as_published(answer.text),
        cited=answer.cited, invalid_citations=answer.invalid_citations, tagged=answer.tagged, notes=answer.notes,
        evidence=tuple(_stored_passage(passage, view, source_of, database) for passage in answer.evidence),
        gold_total=view.total, gold_in_view=view.gold_in_view, verdict=judged.verdict,
        scores=score(_scored(cell, question, answer, judged.verdict, view), scoring),
        usage=used(answer), judge_usage=judged.usage,
        trace=tuple(_stored_step(step, database) for step in answer.trace), failure=answer.failure)
    cost, judging = answer.cost, judged.cost
    timing = Timing(seconds=round(cost.seconds + judging.seconds, 4), attempts=cost.attempts + judging.attempts,
                    replayed=cost.replayed + judging.replayed,
                    paid=None if cost.paid is None or judging.paid is None else cost.paid + judging.paid,
                    finished=datetime.now(UTC).isoformat(timespec="seconds"))
    return Record(result=result, timing=timing)


def used(answer: Answer) -> Usage:
    """What the answer used; `calls` are all that it asked the model for, those that failed too."""
    return replace(answer.usage, calls=sum(isinstance(step, GenerateStep) for step in answer.trace))


def _scored(cell: Cell, question: Question, answer: Answer, verdict: Verdict | None, view: GoldView) -> Scored:
    return Scored(
        outcome=answer.outcome, answerable=question.answerable, text=answer.text, refused=answer.refused,
        tagged=answer.tagged, answers=question.answers, grade=verdict.grade if verdict else None, cited=answer.cited,
        invalid=answer.invalid_citations, hits=view.hits, gold_total=view.total,
        gold_repeats=question.gold_repeats, rules=cell.rules)


def _stored_passage(passage: Passage, view: GoldView, source_of: SourceOf, database: Database) -> StoredPassage:
    chunk = passage.chunk
    return StoredPassage(number=passage.number, chunk=chunk.id, document=chunk.document,
                         source=source_of(chunk.document), format=chunk.format, start=chunk.start, end=chunk.end,
                         pages=chunk.pages, text=database.put_text(chunk.content), gold=view.levels[passage.number])


def _stored_step(step: Step, database: Database) -> StoredStep:
    if isinstance(step, SearchStep):
        return StoredStep(kind="search", query=step.query, found=step.found, failure=step.failure)
    return StoredStep(kind="generate", purpose=step.purpose, key=step.key,
                      messages=tuple(_stored_message(message, database) for message in step.messages),
                      shown=step.shown, text=step.text, reasoning=step.reasoning, finish_reason=step.finish_reason,
                      usage=step.usage, failure=step.failure)


def _stored_message(message: Message, database: Database) -> StoredMessage:
    return StoredMessage(role=message.role, parts=tuple(map(database.put_text, message.parts)))
