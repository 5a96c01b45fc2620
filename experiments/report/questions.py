"""The question browser as data: an index of all questions, and an item of each, which is opened when asked for."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from experiments.question import Question
from experiments.record import Record, Result
from experiments.report.answers import linked
from experiments.report.asked import asked, references, subs
from experiments.report.cells import Cell, column
from experiments.report.listing import Listing, Words, deciding
from experiments.report.passages import Passages
from experiments.report.store import BUDGET, Blocks, Packed, as_json, pack
from experiments.report.text import bounded, shown, visible
from experiments.report.texts import Texts
from experiments.report.trace import steps
from experiments.report.view import ReportInput

ANSWER = 6_000
QUESTION = 6_000


@dataclass(frozen=True, slots=True)
class Browser:
    """What the page holds: the packed index, and the blocks that it leads to."""

    index: str
    kinds: tuple[Packed, ...]
    count: int

    @property
    def left_out(self) -> dict[str, int]:
        """How many items of each kind the page has no room for."""
        return {kind.kind: kind.left_out for kind in self.kinds if kind.left_out}


def browse(view: ReportInput, cells: Sequence[Cell], results: list[Result], budget: int = BUDGET) -> Browser:
    """Every question of the run or of its records, in the benchmark's order; the unknown ones last.

    Args:
        results: takes the results of all records, without their traces: the records are read once.
        budget: characters of packed blocks; the questions and their answers are there whatever they take.
    """
    items = _Items(view, cells)
    listing = Listing(view, cells)
    places = {name: place for place, name in enumerate(view.questions)}
    for question, records in _asked(view):
        results += [record.result.model_copy(update={"trace": ()}) for record in records.values()]
        listing.add(question, records, items.add(question, records), places.get(question.id, len(places)))
    kinds = items.packed(budget)
    head = {**listing.columns(view.causes(results)), "metrics": list(items.metrics.known),
            "kinds": {kind.kind: {"firsts": kind.firsts, "kept": kind.kept} for kind in kinds}}
    return Browser(pack(as_json(head)), kinds, len(listing))


def _asked(view: ReportInput) -> Iterator[tuple[Question, dict[str, Record]]]:
    """Each question with its records by cell; those that have none follow the others."""
    without = dict(view.questions)
    for name, records in groupby(view.records, key=lambda record: record.result.question):
        unknown = Question(name, "(not among the run's questions)", (), answerable=False)
        yield without.pop(name, unknown), {record.result.cell: record for record in records}
    for question in without.values():
        yield question, {}


class _Items:
    """Makes the items of all kinds."""

    def __init__(self, view: ReportInput, cells: Sequence[Cell]) -> None:
        self.metrics = Words()
        self._numbers: dict[tuple[str, str | None], int] = {}
        self._cells, self._rights = cells, view.rights
        self._questions, self._traces = Blocks("questions"), Blocks("traces")
        self._texts = Texts(view.text)

    def add(self, question: Question, records: Mapping[str, Record]) -> int:
        """The number of the question's item."""
        passages = Passages(self._texts)
        answered = [_filled(self._answer(cell, record, passages)) if (record := records.get(cell.id)) else None
                    for cell in self._cells]
        return self._questions.add(_filled({
            "text": shown(question.text, QUESTION), "gold": [shown(answer, ANSWER) for answer in question.answers],
            "options": [[visible(label), shown(text, ANSWER)] for label, text in question.options],
            "subs": subs(question), "references": references(question), "passages": passages.found,
            "gold_total": max((record.result.gold_total for record in records.values()), default=0),
            "answers": answered}))

    def packed(self, budget: int) -> tuple[Packed, ...]:
        """The kinds in the order in which they get room, each what those before it leave."""
        questions = self._questions.packed()
        evidence = self._texts.packed_evidence(budget - questions.size)
        traces = self._traces.packed(budget - questions.size - evidence.size)
        prompts = self._texts.packed_prompts(budget - questions.size - evidence.size - traces.size)
        return questions, evidence, traces, prompts

    def _answer(self, cell: Cell, record: Record, passages: Passages) -> dict[str, Any]:
        result, timing = record.result, record.timing
        answer = bounded(result.text, ANSWER)
        return {
            "text": linked(answer.text), "left_out": answer.left_out or None, **_judged(result),
            "failure": shown(f"{result.failure.kind}: {result.failure.message}", ANSWER) if result.failure else "",
            "notes": [visible(note) for note in result.notes], "no_gold": result.gold_in_view is False,
            "cited": result.cited, "invalid": result.invalid_citations, "evidence": passages.of(result),
            "asked": asked(result), "scores": self._scores(result, cell),
            "tokens": result.usage.prompt_tokens + result.usage.completion_tokens, "calls": result.usage.calls,
            "price": result.usage.price, "seconds": round(timing.seconds, 2), "attempts": timing.attempts,
            "steps": len(result.trace), "trace": self._trace(result)}

    def _scores(self, result: Result, cell: Cell) -> list[list[float | int | None] | int]:
        """The numbers of the metrics, their values, and the place of the one that says whether the answer is right."""
        judge = result.verdict.judge if result.verdict else cell.judge
        decides = deciding(result, self._rights)
        return [[self._metric(name, judge) for name in result.scores],
                [None if value is None else round(value, 4) for value in result.scores.values()],
                *([] if decides is None else [list(result.scores).index(decides[0])])]

    def _metric(self, name: str, judge: str | None) -> int:
        if (name, judge) not in self._numbers:
            self._numbers[name, judge] = self.metrics(column(name, judge))
        return self._numbers[name, judge]

    def _trace(self, result: Result) -> int | None:
        if not result.trace and not result.subs:
            return None
        parts = [steps(sub.trace, result.evidence, self._texts) for sub in result.subs]
        return self._traces.add(_filled({"steps": steps(result.trace, result.evidence, self._texts), "subs": parts}))


def _judged(result: Result) -> dict[str, Any]:
    verdict = result.verdict
    if verdict is None:
        return {}
    return {"judge": visible(verdict.judge), "said": shown(verdict.note, QUESTION),
            "error": visible(verdict.error_type or ""), "held": None if verdict.steps is None else list(verdict.steps)}


def _filled(item: dict[str, Any]) -> dict[str, Any]:
    """Without what is empty: the script takes what is not there as such. Zero, as the number of an item, is not."""
    return {name: value for name, value in item.items() if value or (value == 0 and value is not False)}
