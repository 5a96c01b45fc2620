"""Data of the question browser: an index of all questions for its list and filters, and an item per question."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any

from ragbed.experiments.formatting import visible
from ragbed.experiments.question import Question
from ragbed.experiments.record import Record, Result, Support
from ragbed.experiments.report.cells import ReportCell, column
from ragbed.experiments.report.evidence import Passages, Texts, graded, linked, steps
from ragbed.experiments.report.packing import BUDGET, Blocks, Packed, as_json, pack
from ragbed.experiments.report.text import ReportInput, bounded, shown

LINE = 240  # characters of a question in the list
ID = 200
TAG = 80


class Words:
    """Number words in the order of first appearance."""

    def __init__(self, *words: str) -> None:
        self.known = {word: number for number, word in enumerate(words)}

    def __call__(self, word: str) -> int:
        return self.known.setdefault(word, len(self.known))


def deciding(result: Result, correctness_metrics: Sequence[str]) -> tuple[str, float] | None:
    """Return the first of these metrics that applies to a result, with its score."""
    return next(((name, score) for name in correctness_metrics if (score := result.scores.get(name)) is not None), None)


LONGEST = 2_000  # characters of a sub-question, its answer, or a reference step
ANSWER = 6_000
QUESTION = 6_000


@dataclass(frozen=True, slots=True)
class Browser:
    """The packed index and the blocks of items."""

    index: str
    kinds: tuple[Packed, ...]
    count: int

    @property
    def left_out(self) -> dict[str, int]:
        """The number of items of each kind that do not fit into the page."""
        return {kind.kind: kind.left_out for kind in self.kinds if kind.left_out}


def browse(view: ReportInput, cells: Sequence[ReportCell], results: list[Result], budget: int = BUDGET) -> Browser:
    """Pack every question, in the benchmark's order.

    Records are read only once; their results, without traces, are appended to `results`. The budget, in characters,
    limits everything except questions and answers.
    """
    made = _Collected(view, cells)
    places = {name: place for place, name in enumerate(view.questions)}
    for question, records in _asked(view):
        results += [record.result.model_copy(update={"trace": ()}) for record in records.values()]
        made.add(question, records, places.get(question.id, len(places)))
    kinds = made.packed(budget)
    head = {**made.index(view.causes(results)),
            "kinds": {kind.kind: {"firsts": kind.firsts, "kept": kind.kept} for kind in kinds}}
    return Browser(pack(as_json(head)), kinds, len(made.rows))


def _asked(view: ReportInput) -> Iterator[tuple[Question, dict[str, Record]]]:
    """Yield each question with its records by cell. Questions without records come last."""
    without = dict(view.questions)
    for name, records in groupby(view.records, key=lambda record: record.result.question):
        unknown = Question(name, "(not among the run's questions)", (), answerable=False)
        yield without.pop(name, unknown), {record.result.cell: record for record in records}
    for question in without.values():
        yield question, {}


class _Collected:
    """Collect the item and the index row of each question."""

    def __init__(self, view: ReportInput, cells: Sequence[ReportCell]) -> None:
        self.rows: list[tuple[int, dict[str, Any]]] = []
        self._view, self._cells = view, cells
        self._outcomes, self._grades, self._tags, self._metrics = Words("missing"), Words(""), Words(), Words()
        self._questions, self._traces = Blocks("questions"), Blocks("traces")
        self._texts = Texts(view.text)

    def add(self, question: Question, records: Mapping[str, Record], place: int) -> None:
        """Add a question, at this position in the list."""
        passages = Passages(self._texts)
        answered = [_filled(self._answer(cell, record, passages)) if (record := records.get(cell.id)) else None
                    for cell in self._cells]
        item = self._questions.add(_filled({
            "text": shown(question.in_context, QUESTION),
            "gold": [shown(answer, ANSWER) for answer in question.answers],
            "options": [[visible(label), shown(text, ANSWER)] for label, text in question.options],
            "subs": [[shown(asked, LONGEST), shown(answer, LONGEST)] for asked, answer in zip_longest(
                question.sub_questions, question.sub_answers, fillvalue="")],
            # reference reasoning: each step, and the position of its evidence
            "references": [[shown(step.text, LONGEST), "" if step.depth is None else f"{100 * step.depth:.0f} % in"]
                           for step in question.steps],
            "passages": passages.found,
            "gold_total": max((record.result.gold_total for record in records.values()), default=0),
            "answers": answered}))
        results = [record.result if (record := records.get(cell.id)) else None for cell in self._cells]
        decides = [one and deciding(one, self._view.correctness_metrics) for one in results]
        self.rows.append((place, {
            "id": question.id, "ids": visible(question.id[:ID]),
            "texts": visible(question.text[:LINE]) + "…" * (len(question.text) > LINE),
            "answerable": int(question.answerable), "items": item,
            "tags": [self._tags(visible(f"{name}: {value}"[:TAG])) for name, values in question.tags.items()
                     for value in values],
            "outcome": [self._outcomes(one.outcome if one else "missing") for one in results],
            "grade": [self._grades(graded(one.verdict, question) if one else "") for one in results],
            "score": [round(one[1], 3) if one else None for one in decides]}))

    def index(self, causes: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
        """Return the index without the positions of items. `causes` are by cell id and question id."""
        rows = [row for _, row in sorted(self.rows, key=lambda row: row[0])]
        of_cells = [causes.get(cell.id, {}) for cell in self._cells]
        numbers = Words("")
        caused = [numbers(visible(of_cell.get(row["id"], ""))) for row in rows for of_cell in of_cells]
        return {
            "cells": [{"number": cell.number, "label": cell.label} for cell in self._cells],
            "words": {"outcome": list(self._outcomes.known), "grade": list(self._grades.known),
                      "cause": list(numbers.known), "tag": list(self._tags.known)},
            "causes": {one["name"]: [visible(one["title"]), visible(one["definition"])] for one in (
                self._view.summary.get("error_analysis") or {}).get("causes") or () if one["name"] in numbers.known},
            "cause": caused, "correctness_metrics": bool(self._view.correctness_metrics),
            "metrics": list(self._metrics.known),
            **{name: [row[name] for row in rows] for name in ("ids", "texts", "answerable", "items", "tags")},
            **{name: [value for row in rows for value in row[name]] for name in ("outcome", "grade", "score")}}

    def packed(self, budget: int) -> tuple[Packed, ...]:
        """Pack all kinds; each gets the room that the earlier kinds leave."""
        questions = self._questions.packed()
        evidence = self._texts.packed_evidence(budget - questions.size)
        traces = self._traces.packed(budget - questions.size - evidence.size)
        prompts = self._texts.packed_prompts(budget - questions.size - evidence.size - traces.size)
        return questions, evidence, traces, prompts

    def _answer(self, cell: ReportCell, record: Record, passages: Passages) -> dict[str, Any]:
        result = record.result
        text, left_out = bounded(result.text, ANSWER)
        return {
            "text": linked(text), "left_out": left_out or None, **_judged(result), "support": _checked(result.support),
            "failure": shown(f"{result.failure.kind}: {result.failure.message}", ANSWER) if result.failure else "",
            "notes": [*([f"asked as: {visible(result.asked)}"] if result.asked else []), *map(visible, result.notes)],
            "no_gold": result.gold_in_view is False,
            "cited": result.cited, "invalid": result.invalid_citations, "evidence": passages.of(result),
            "asked": [[shown(sub.question, LONGEST), shown(sub.text, LONGEST), visible(sub.outcome),
                       None if (score := result.scores.get(f"sub_em@{place}")) is None else score == 1]
                      for place, sub in enumerate(result.subs, 1)], "scores": self._scores(result, cell),
            "tokens": result.usage.prompt_tokens + result.usage.completion_tokens, "calls": result.usage.calls,
            "price": result.usage.price, "steps": len(result.trace), "trace": self._trace(result)}

    def _scores(self, result: Result, cell: ReportCell) -> list[list[float | int | None] | int]:
        """Return metric numbers, values, and the index of the metric that decides whether the answer is right."""
        judge = result.verdict.judge if result.verdict else cell.judge
        decides = deciding(result, self._view.correctness_metrics)
        return [[self._metrics(column(name, judge)) for name in result.scores],
                [None if value is None else round(value, 4) for value in result.scores.values()],
                *([] if decides is None else [list(result.scores).index(decides[0])])]

    def _trace(self, result: Result) -> int | None:
        if not result.trace and not result.subs:
            return None
        parts = [steps(sub.trace, result.evidence, self._texts) for sub in result.subs]
        return self._traces.add(_filled({"steps": steps(result.trace, result.evidence, self._texts), "subs": parts}))


def _checked(support: Support | None) -> list[Any]:
    """Return each sentence and nugget of a support check: level, text and details."""
    return [[label.level or "unread", shown(label.text, LONGEST), visible(", ".join(filter(None, (
        "" if label.vital is None else "vital nugget" if label.vital else "okay nugget", label.note,
        " ".join(f"[{number}]" for number in label.cited)))))] for label in (support.labels if support else ())]


def _judged(result: Result) -> dict[str, Any]:
    verdict = result.verdict
    if verdict is None:
        return {}
    return {"judge": visible(verdict.judge), "said": shown(verdict.note, QUESTION),
            "error": visible(verdict.error_type or ""), "held": None if verdict.steps is None else list(verdict.steps)}


def _filled(item: dict[str, Any]) -> dict[str, Any]:
    """Drop empty values, but not 0, which may be the number of an item."""
    return {name: value for name, value in item.items() if value or (value == 0 and value is not False)}
