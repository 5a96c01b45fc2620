"""Data of the question browser: an index of all questions for its list and filters, and an item per question with its
evidence, prompts, answers and steps. Each text is stored once and referred to by number."""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, zip_longest
from typing import Any

from ragbed.agents.types import describe_tool_call as in_words
from ragbed.experiments.formatting import visible
from ragbed.experiments.question import Question
from ragbed.experiments.record import Record, Result, StoredPassage, StoredStep, Support, Verdict
from ragbed.experiments.report.cell_table import ReportCell, column
from ragbed.experiments.report.packing import BUDGET, Blocks, Packed, as_json, pack, packed_within
from ragbed.experiments.report.report_input import ReportInput, bounded, shown
from ragbed.guests import entries, load
from ragbed.strategies.reading import find_citations

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
        self._texts, self._lines = Texts(view.text), load(entries("trajectory")["lines"])

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
            "notes": [*map(_own_grade, result.judgements),
                      *([f"asked as: {visible(result.asked)}"] if result.asked else []), *map(visible, result.notes)],
            "no_gold": result.gold_in_view is False,
            "cited": result.cited, "invalid": result.invalid_citations, "evidence": passages.of(result),
            "asked": [[shown(sub.question, LONGEST), shown(sub.text, LONGEST), visible(sub.outcome),
                       None if (score := result.scores.get(f"sub_em@{place}")) is None else score == 1]
                      for place, sub in enumerate(result.subs, 1)], "scores": self._scores(result, cell),
            "tokens": result.usage.prompt_tokens + result.usage.completion_tokens, "calls": result.usage.calls,
            "price": result.usage.price, "steps": len(result.trace), "trace": self._trace(result),
            "found": sum(step.kind in ("search", "tool") for step in result.trace)}

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
        return self._traces.add(_filled({"steps": steps(result.trace, result.evidence, self._texts), "subs": parts,
                                         "lines": self._lines(result)}))


def _checked(support: Support | None) -> list[Any]:
    """Return each sentence and nugget of a support check: level, text and details."""
    return [[label.level or "unread", shown(label.text, LONGEST), visible(", ".join(filter(None, (
        "" if label.vital is None else "vital nugget" if label.vital else "okay nugget", label.note,
        " ".join(f"[{number}]" for number in label.cited)))))] for label in (support.labels if support else ())]


def _own_grade(verdict: Verdict) -> str:
    value = "not graded" if verdict.value is None else f"{verdict.value:g}"
    return visible(f"{verdict.judge}: {', '.join(filter(None, (value, verdict.label, verdict.reason, verdict.note)))}")


def _judged(result: Result) -> dict[str, Any]:
    verdict = result.verdict
    if verdict is None:
        return {}
    return {"judge": visible(verdict.judge), "said": shown(verdict.note, QUESTION),
            "error": visible(verdict.error_type or ""), "held": None if verdict.steps is None else list(verdict.steps)}


def _filled(item: dict[str, Any]) -> dict[str, Any]:
    """Drop empty values, but not 0, which may be the number of an item."""
    return {name: value for name, value in item.items() if value or (value == 0 and value is not False)}


_LONGEST_TEXT = 300_000  # largest number of characters of one text in the page
_LEAST = 80  # prompts refer to passages of at least this many characters instead of repeating them

Piece = str | int | dict[str, int]


class Texts:
    """Number texts in the order of first use. Texts are looked up by their hash."""

    def __init__(self, text: Callable[[str], str]) -> None:
        self._text = lru_cache(maxsize=256)(text)  # the prompts of one question show the same passages
        self._evidence: dict[str, int] = {}
        self._prompts: dict[str, int] = {}
        self._shown: list[tuple[str, ...]] = []

    def evidence(self, key: str) -> int:
        """Return the number of a passage."""
        return self._evidence.setdefault(key, len(self._evidence))

    def prompt(self, key: str, shown: tuple[str, ...]) -> int:
        """Return the number of a prompt part, which may contain the passages with the hashes `shown`, in order."""
        if key not in self._prompts:
            self._prompts[key] = len(self._prompts)
            self._shown.append(shown)
        return self._prompts[key]

    def packed_evidence(self, budget: int) -> Packed:
        """Pack each passage as pieces."""
        return packed_within("evidence", len(self._evidence), (_literal(self._text(key)) for key in self._evidence),
                             budget)

    def packed_prompts(self, budget: int) -> Packed:
        """Pack each prompt part as pieces: a piece is text, or the number of a passage."""
        pieces = (self._pieces(self._text(key), parts) for key, parts in zip(self._prompts, self._shown, strict=True))
        return packed_within("prompts", len(self._prompts), pieces, budget)

    def _pieces(self, text: str, shown: Sequence[str]) -> list[Piece]:
        pieces: list[Piece] = []
        at = 0
        for key in shown:
            content = self._text(key)
            found = text.find(content, at) if _LEAST <= len(content) <= _LONGEST_TEXT else -1
            if found >= 0:
                pieces += [*_literal(text[at:found]), self.evidence(key)]
                at = found + len(content)
        return [*pieces, *_literal(text[at:])]


def _literal(text: str) -> list[Piece]:
    """Return the shown text, with the number of omitted characters."""
    beginning, left_out = bounded(text, _LONGEST_TEXT)
    return [*([beginning] if text else []), *([{"left_out": left_out}] if left_out else [])]


def graded(verdict: Verdict | None, question: Question) -> str:
    """Return a verdict in a few words; empty without one."""
    if verdict is None:
        return ""
    if verdict.points is not None:
        return f"{verdict.points} of 10"
    if verdict.steps is not None:
        return f"{len(verdict.steps)} of {len(question.steps)} steps"
    return visible(verdict.grade or "unjudged")


_NUMBER = re.compile(r"(\d+)")


def linked(answer: str) -> list[str | int]:
    """Split an answer into text and the numbers of its citations."""
    pieces: list[str | int] = []
    at = 0
    for start, end, numbers in find_citations(answer):
        pieces.append(answer[at:start])
        parts = _NUMBER.split(answer[start:end])
        if len(parts) == 1:  # raised digits
            parts = ["", *(part for number in numbers for part in (str(number), " "))]
            parts[-1] = ""
        for place, part in enumerate(parts):
            pieces.append(int(part) if place % 2 and int(part) in numbers else part)
        at = end
    return _join_texts([*pieces, answer[at:]])


def _join_texts(pieces: Sequence[str | int]) -> list[str | int]:
    joined: list[str | int] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece != "":
            joined.append(piece)
    return joined


@dataclass(slots=True)
class Passages:
    """Collect the chunks shown for a question's answers, in order of first appearance."""

    texts: Texts
    found: list[dict[str, Any]] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)

    def of(self, result: Result) -> list[Any]:
        """Return each passage as its index in `found` and its number; only the indexes if the numbers are 1, 2, 3, ...
        """
        places = [self._place(stored) for stored in result.evidence]
        numbers = [stored.number for stored in result.evidence]
        return [places] if numbers == list(range(1, len(numbers) + 1)) else [places, numbers]

    def _place(self, stored: StoredPassage) -> int:
        if stored.chunk not in self._places:
            self._places[stored.chunk] = len(self.found)
            self.found.append({
                "source": visible(stored.source), "format": stored.format, "start": stored.start, "end": stored.end,
                "text": self.texts.evidence(stored.text), **({"pages": stored.pages} if stored.pages else {})})
        place = self._places[stored.chunk]
        if stored.gold:
            self.found[place].setdefault("gold", stored.gold)
        return place


REPLY = 12_000


def steps(trace: Sequence[StoredStep], evidence: Sequence[StoredPassage], texts: Texts) -> list[dict[str, Any]]:
    """Return the steps of a trace without their empty fields."""
    keys = tuple(passage.text for passage in evidence)
    return [{name: value for name, value in _step(step, keys, texts).items() if value} for step in trace]


def _step(step: StoredStep, evidence: tuple[str, ...], texts: Texts) -> dict[str, Any]:
    failure = shown(f"{step.failure.kind}: {step.failure.message}", REPLY) if step.failure else ""
    if step.kind == "search":
        return {"query": shown(step.query or "(no words)", REPLY), "found": step.found, "failure": failure}
    if step.kind == "tool":
        return {"tool": visible(f"{step.purpose} {json.dumps(step.arguments, ensure_ascii=False)}"[:REPLY]),
                "found": step.found, "failure": failure, "result": [
                    texts.prompt(part, evidence) if isinstance(part, str) else f"[{part}]" for part in step.parts]}
    if step.kind == "decision":
        return {"decided": shown(step.purpose or "", REPLY), "why": shown(step.text, REPLY)}
    usage = step.usage
    return {"purpose": visible(step.purpose or step.kind),
            # role, numbers of the parts, tool calls, and the call that the message answers
            "messages": [[visible(one.role), *(texts.prompt(key, evidence) for key in one.parts),
                          *map(_called, one.tool_calls), *([visible(f"answers {one.call_id}")] if one.call_id else [])]
                         for one in step.messages],
            "reply": shown(step.text, REPLY), "reasoning": shown(step.reasoning, REPLY),
            "calls": list(map(_called, step.tool_calls)),
            "ended": visible(step.finish_reason), "failure": failure,
            "tokens": [usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens]}


def _called(call: Mapping[str, Any]) -> str:
    return bounded(in_words(call), REPLY)[0]
