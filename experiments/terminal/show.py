"""Show a question with its answers in every cell, as text and as JSON rows."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ragbed.agents.types import (
    DecisionStep,
    GenerateStep,
    SearchStep,
    Step,
    ToolStep,
)
from ragbed.experiments.analysis.causes import causes_by_name, find_causes
from ragbed.experiments.cells import Cell
from ragbed.experiments.formatting import format_price, plural
from ragbed.experiments.question import Question
from ragbed.experiments.record import Record, StoredPassage, StoredStep, StoredSub, SupportLabel, Verdict
from ragbed.experiments.runs.finished import cells_in, find_cells, find_question
from ragbed.experiments.runs.run_manifest import read_manifest
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.terminal.display import console, print_json, print_records, print_table, say
from ragbed.experiments.terminal.steps import PassagePlaces, cut, place, show_steps, step_row
from ragbed.guests import entries, load
from ragbed.strategies.types import Message, Role

_ROLES: TypeAdapter[Role] = TypeAdapter(Role)
Text = Callable[[str], str]


def _show_answers(question: Question, labels: Mapping[str, str], records: Mapping[str, Record],
                  causes: Mapping[str, str], placing: Collection[str], columns: Sequence[str], text: Text,
                  prompts: bool, every: bool) -> None:
    """Print a table of the cells, then the answer and steps of each.

    `every` prints all scores, not only those of `columns`. Evidence that several cells share is listed once. Cells in
    `placing` do not search.
    """
    rows = []
    for id, label in labels.items():
        result = records[id].result if id in records else None
        score = None if result is None else result.scores.get(columns[0])
        rows.append([label, "not asked yet" if result is None else result.outcome,
                     "-" if score is None else f"{score:g}", causes.get(id, "-")])
    print_table(["cell", "outcome", columns[0], "cause"], rows)
    first: dict[tuple[StoredPassage, ...], str] = {}
    for id, label in labels.items():
        if id not in records:
            continue
        result = records[id].result
        say("")
        print_records([(label, list(_answer_fields(records[id], question, () if every else columns)))])
        known = first.setdefault(result.evidence, label)
        places = PassagePlaces({passage.number: _placed(passage) for passage in result.evidence}, id not in placing,
                               known if known != label else None)
        for line in load(entries("trajectory")["draw"])(result, console().width):
            say(line)
        show_steps([restored(step, text) for step in result.trace], places, prompts)
        for number, sub in enumerate(result.subs, 1):
            if sub.trace:
                say(f"sub-question {number}:")
                show_steps([restored(step, text) for step in sub.trace], places, prompts)


def _question_fields(question: Question) -> Iterator[tuple[str, str]]:
    for turn in question.turns:
        yield "before", f"{cut(turn.question)} | {cut(turn.answer) or 'no answer'}"
    yield "question", cut(question.text)
    for label, option in question.options:
        yield "option", f"{label}. {option}"
    yield "gold", " | ".join(question.answers) or "none is known"
    if not question.answerable:
        yield "", "unanswerable: a refusal is correct"
    for number, (sub, answer) in enumerate(zip(question.sub_questions, question.sub_answers, strict=False), 1):
        yield f"hop {number}", f"{sub} {answer}"
    for number, step in enumerate(question.steps, 1):
        yield f"step {number}", cut(step.text)
    for text, vital in question.nuggets.items():
        yield "nugget", f"{'vital' if vital else 'okay'}: {cut(text)}"
    if question.tags:
        yield "tags", ", ".join(f"{name}={'+'.join(values)}" for name, values in question.tags.items())


def _answer_fields(record: Record, question: Question, columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the fields of an answer, with the scores of the columns, or all scores without columns."""
    result, timing = record.result, record.timing
    yield "outcome", result.outcome + (f": {result.failure.message}" if result.failure else "")
    if result.asked:
        yield "asked as", cut(result.asked)
    yield "answer", cut(result.text) or "none"
    by_number = {passage.number: passage for passage in result.evidence}
    for number in result.cited:
        yield "cites", f"[{number}] {_placed(by_number[number])}"
    if result.invalid_citations:
        yield "", f"cited but never shown: {list(result.invalid_citations)}"
    yield "gold shown", "none is known" if result.gold_in_view is None else \
        ", ".join(f"[{one.number}]" for one in result.in_view if one.gold) or f"none of {result.gold_total}"
    scores = [f"{name} {value:g}" for name, value in result.scores.items()
              if value is not None and (not columns or name in columns)]
    yield "scores", ", ".join(scores) or "none applies"
    for name, why in result.measured.items():
        if isinstance(why, str):
            yield "no score", f"{name}: {cut(why)}"
    if result.figures and columns:
        yield "measured", ", ".join(f"{cut(name)} {value:g}" for name, value in result.figures.items())
    if result.verdict is not None:
        yield "verdict", _verdict(result.verdict)
    for one in result.judgements:
        yield one.judge, f"{_own_grade(one)}{f': {cut(one.reason)}' if one.reason else ''}"
    if result.support is not None:
        yield "support", f"judge: {result.support.judge}{f'; {result.support.note}' if result.support.note else ''}"
        yield from (("" if label.vital is None else "nugget", _label(label)) for label in result.support.labels)
    for number, (sub, gold) in enumerate(_with_gold(result.subs, question), 1):
        yield f"sub {number}", (f"{sub.question} {sub.outcome}: {cut(sub.text) or 'nothing'}"
                                f"{'' if gold is None else f' (gold: {gold})'}")
    for probe in result.probes:
        without = f"without {list(probe.left_out)}" if probe.left_out else "asked again"
        yield "probe", f"{without}, {probe.outcome}: {cut(probe.text) or 'nothing'}"
    if result.notes:
        yield "notes", ", ".join(result.notes)
    usage = result.usage + result.sub_usage
    retried = f" (calls retried: {timing.retried})" if timing.retried else ""
    yield "used", (f"{plural(usage.calls, 'call')}, {usage.prompt_tokens} + {usage.completion_tokens} tokens, "
                   f"{format_price(usage.price)}; {plural(timing.attempts, 'request')}{retried} in {timing.seconds} s")


def _placed(passage: StoredPassage) -> str:
    gold = f" (gold {passage.gold})" if passage.gold else ""
    return place({"document": passage.source, "pages": passage.pages}) + gold


def _label(label: SupportLabel) -> str:
    numbers = "".join(f" [{number}]" for number in label.cited)
    kind = "" if label.vital is None else "vital, " if label.vital else "okay, "
    return f"{kind}{label.level or 'unread'}: {cut(label.text)}{numbers}{f' ({label.note})' if label.note else ''}"


def _own_grade(verdict: Verdict) -> str:
    value = "not graded" if verdict.value is None else f"{verdict.value:g}"
    return ", ".join(filter(None, (value, verdict.label if verdict.label != value else "", verdict.note)))


def _verdict(verdict: Verdict) -> str:
    parts = [f"{verdict.grade}" if verdict.grade else "",
             "" if verdict.points is None else f"{verdict.points} of 10 points",
             "" if verdict.steps is None else f"contains the steps {[one + 1 for one in verdict.steps]}",
             verdict.error_type or "", verdict.note]
    return f"{', '.join(filter(None, parts)) or 'nothing'} (judge: {verdict.judge})"


def show_question(path: Path, name: str, cell: str | None, prompts: bool, scores: bool, json: bool) -> None:
    """Show a question and its answers in every cell, or in the named cells. JSON always has all scores.

    Raises UserError if there is no such run, question or cell.
    """
    with closing(RunFolder.existing(path)) as folder:
        ids, cells = folder.question_ids(), cells_in(folder)
        number = find_question(ids, name)
        question = folder.questions([ids[number]])[ids[number]]
        wanted = find_cells(cells, cell)
        records = {record.result.cell: record for record in folder.records_of(question.id)}
        texts, columns, causes = folder.database.text, *_scored(folder, cells, question, records)
        complete = (path / "summary.json").is_file()
        there = "" if complete else f"; unfinished run, {len(folder.done()):,} of {len(ids) * len(cells):,} answers"
        if json:
            rows = [_cell_row(id, label, records.get(id), causes.get(id), question, texts, prompts)
                    for id, label in wanted.items()]
            chunks = ("provided", "pool", "whole", "negatives", "table")  # fields that a run does not store
            row = {key: value for key, value in asdict(question).items() if key not in chunks}
            print_json({"run": str(path), "complete": complete, "number": number + 1, "of": len(ids), "question": row,
                        "cells": rows})
            return
        print_records([(f"question {number + 1} of {len(ids)}: {question.id}{there}",
                        list(_question_fields(question)))])
        say("")
        placing = {row["id"] for row in cells if row.get("condition", "retrieved") != "retrieved"}
        _show_answers(question, wanted, records, causes, placing, columns, texts, prompts, scores)


def _scored(folder: RunFolder, cells: Sequence[Mapping[str, Any]], question: Question,
            records: Mapping[str, Record]) -> tuple[list[str], dict[str, str]]:
    made = read_manifest(folder.path)
    results = [record.result for record in records.values()]
    found = find_causes(list(map(Cell.of, cells)), results, {question.id: question}, made.scheme.correctness_metrics,
                        made.scoring)
    return ([name for column in made.scheme.columns for name in column.split(" / ")],
            {cell: causes_by_name()[cause].title for cell, causes in found.items() for cause in causes.values()})


def _cell_row(id: str, label: str, record: Record | None, cause: str | None, question: Question,
              text: Text, prompts: bool) -> dict[str, Any]:
    if record is None:
        return {"cell": id, "name": label, "outcome": None}
    result = record.result
    passages = {}
    for passage in result.evidence:
        row = {**passage.model_dump(mode="json", exclude={"source", "document"}), "document": passage.source}
        passages[passage.number] = {**row, "place": place(row), "text": text(passage.text)}

    def trace(steps: Sequence[StoredStep]) -> list[dict[str, Any]]:
        return [step_row(restored(step, text), prompts) for step in steps]

    return {"name": label, "cause": cause,
            **result.model_dump(mode="json", exclude={"evidence", "cited", "trace", "subs"}),
            "citations": [{key: value for key, value in passages[number].items() if key != "text"}
                          for number in result.cited],
            "evidence": list(passages.values()),
            "sub_questions": [{"question": sub.question, "outcome": sub.outcome, "answer": sub.text, "gold": gold,
                               "trace": trace(sub.trace)} for sub, gold in _with_gold(result.subs, question)],
            "trace": trace(result.trace), "trajectory": load(entries("trajectory")["lines"])(result),
            "timing": record.timing.model_dump(mode="json")}


def _with_gold(subs: Sequence[StoredSub], question: Question) -> list[tuple[StoredSub, str | None]]:
    return list(zip(subs, [*question.sub_answers, *[None] * len(subs)], strict=False))


def restored(step: StoredStep, text: Text) -> Step:
    """Return a stored step in its original form. `text` returns the text of a hash."""
    if step.kind == "search":
        return SearchStep(step.query or "", step.found, step.failure)
    if step.kind == "decision":
        return DecisionStep(step.purpose or "", step.text)
    if step.kind == "tool":
        parts = tuple(text(part) if isinstance(part, str) else part for part in step.parts)
        return ToolStep(step.purpose or "", step.arguments, parts, step.failure)
    messages = tuple(Message(_ROLES.validate_python(one.role), tuple(map(text, one.parts)), one.tool_calls, one.call_id)
                     for one in step.messages)
    return GenerateStep(step.purpose or "", step.key or "", messages, step.shown, step.text, step.reasoning,
                        step.finish_reason, step.usage, step.failure, step.tool_calls)
