"""`ragbed show` at work: one question and what the cells of a run made of it; and chunks as rows for programs."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from documents.types import Chunk
from experiments.analysis.cases import causes_of
from experiments.analysis.causes import BY_NAME
from experiments.cells import Cell
from experiments.question import Question
from experiments.record import Record, StoredPassage, StoredStep, StoredSub, Verdict
from experiments.runs.finished import cells_in, cells_named, question_named
from experiments.runs.manifest import manifest_of
from experiments.runs.store import RunFolder
from experiments.terminal.display import print_json, print_records, print_table, say
from experiments.terminal.trace import PassagePlaces, cut, restored, show_steps, step_row
from experiments.words import plural, price
from retrieval.index import Index
from retrieval.types import Hit

Text = Callable[[str], str]


def hit_row(hit: Hit, index: Index) -> dict[str, Any]:
    """Return a hit with where it comes from, as `search --json` prints it."""
    return {"rank": hit.rank, "score": round(hit.score, 6), "found_by": hit.found_by, **chunk_row(hit.chunk, index)}


def chunk_row(chunk: Chunk, index: Index) -> dict[str, Any]:
    """Return a chunk and its place; `document` is the source's path, `pages` first and last, counted from 1."""
    return {"chunk": chunk.id, "document": index.source_of(chunk.document), "format": chunk.format,
            "pages": list(chunk.pages) if chunk.pages else None, "start": chunk.start, "end": chunk.end,
            "text": chunk.content}


def place(row: dict[str, Any]) -> str:
    """Return the place in words, such as `report.pdf, pages 3-4`."""
    pages = row["pages"]
    if not pages:
        return str(row["document"])
    return f"{row['document']}, " + (f"page {pages[0]}" if pages[0] == pages[1] else f"pages {pages[0]}-{pages[1]}")


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """A cell, and what it made of the question.

    Attributes:
        record: None where there is none yet.
        cause: in words; None where there is none to tell.
        searches: whether its evidence is searched for, rather than placed.
    """

    label: str
    record: Record | None
    cause: str | None
    searches: bool


def show_answers(title: str, question: Question, cells: Sequence[ShownAnswer], columns: Sequence[str], text: Text,
                 prompts: bool, every: bool) -> None:
    """Print the question with its gold, a line for each cell, then each cell: figures, and the steps that led to them.

    Evidence that several cells were shown has its passages once.

    Args:
        columns: metrics of the run's table, the first one above all.
        text: a text by its hash.
        prompts: whether with the prompts as sent.
        every: whether with all scores, or those of the columns.
    """
    print_records([(title, list(_question_fields(question)))])
    say("")
    rows = []
    for one in cells:
        scores = {} if one.record is None else one.record.result.scores
        rows.append([one.label, "not asked yet" if one.record is None else one.record.result.outcome,
                     *("-" if (score := scores.get(name)) is None else f"{score:g}" for name in columns[:1]),
                     (one.record and one.cause) or "-"])
    print_table(["cell", "outcome", *columns[:1], "cause"], rows)
    first: dict[tuple[StoredPassage, ...], str] = {}
    for one in cells:
        if one.record is None:
            continue
        result = one.record.result
        say("")
        print_records([(one.label, list(_answer_fields(one.record, question, () if every else columns)))])
        known = first.setdefault(result.evidence, one.label)
        places = PassagePlaces({passage.number: _placed(passage) for passage in result.evidence}, one.searches,
                        known if known != one.label else None)
        show_steps([restored(step, text) for step in result.trace], places, prompts)
        for number, sub in enumerate(result.subs, 1):
            if sub.trace:
                say(f"sub-question {number}:")
                show_steps([restored(step, text) for step in sub.trace], places, prompts)


def _question_fields(question: Question) -> Iterator[tuple[str, str]]:
    yield "question", cut(question.text)
    for label, option in question.options:
        yield "option", f"{label}. {option}"
    yield "gold", " | ".join(question.answers) or "none is known"
    if not question.answerable:
        yield "", "unanswerable: a refusal is right"
    for number, (sub, answer) in enumerate(zip(question.sub_questions, question.sub_answers, strict=False), 1):
        yield f"hop {number}", f"{sub} {answer}"
    for number, step in enumerate(question.steps, 1):
        yield f"step {number}", cut(step.text)
    if question.tags:
        yield "tags", ", ".join(f"{name}={'+'.join(values)}" for name, values in question.tags.items())


def _answer_fields(record: Record, question: Question, columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the scores of the columns; without columns, all."""
    result, timing = record.result, record.timing
    yield "outcome", result.outcome + (f": {result.failure.message}" if result.failure else "")
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
    if result.figures and columns:
        yield "measured", ", ".join(f"{cut(name)} {value:g}" for name, value in result.figures.items())
    if result.verdict is not None:
        yield "verdict", _verdict(result.verdict)
    for number, (sub, gold) in enumerate(_with_gold(result.subs, question), 1):
        yield f"sub {number}", (f"{sub.question} {sub.outcome}: {cut(sub.text) or 'nothing'}"
                                f"{'' if gold is None else f' (gold: {gold})'}")
    if result.notes:
        yield "notes", ", ".join(result.notes)
    usage = result.usage + result.sub_usage
    retried = f" (calls retried: {timing.retried})" if timing.retried else ""
    yield "used", (f"{plural(usage.calls, 'call')}, {usage.prompt_tokens} + {usage.completion_tokens} tokens, "
                   f"{price(usage.price)}; {plural(timing.attempts, 'request')}{retried} in {timing.seconds} s")


def _placed(passage: StoredPassage) -> str:
    gold = f" (gold {passage.gold})" if passage.gold else ""
    return place({"document": passage.source, "pages": passage.pages}) + gold


def _verdict(verdict: Verdict) -> str:
    parts = [f"{verdict.grade}" if verdict.grade else "",
             "" if verdict.points is None else f"{verdict.points} of 10 points",
             "" if verdict.steps is None else f"holds the steps {[one + 1 for one in verdict.steps]}",
             verdict.error_type or "", verdict.note]
    return f"{', '.join(filter(None, parts)) or 'nothing'} (by {verdict.judge})"


def show_question(path: Path, name: str, cell: str | None, prompts: bool, scores: bool, json: bool) -> None:
    """Show a question and what each cell, or those named, made of it. The run stays as it is.

    Args:
        prompts: whether with the prompts as sent.
        scores: whether with all scores; JSON has them anyhow.

    Raises:
        UserError: there is no such run, question or cell.
    """
    folder = RunFolder.existing(path)
    try:
        ids = folder.question_ids()
        number = question_named(ids, name)
        question, cells = folder.question(ids[number]), cells_in(folder)
        wanted = cells_named(cells, cell)
        records = {record.result.cell: record for record in folder.records_of(question.id)}
        texts, columns, causes = folder.database.text, *_scored(folder, cells, question, records)
        if json:
            rows = [_cell_row(id, label, records.get(id), causes.get(id), question, texts, prompts)
                    for id, label in wanted.items()]
            chunks = ("given", "pool", "whole", "negatives", "table")  # which a run does not keep with the question
            row = {key: value for key, value in asdict(question).items() if key not in chunks}
            print_json({"run": str(path), "number": number + 1, "of": len(ids), "question": row, "cells": rows})
        else:
            searching = {row["id"] for row in cells if row.get("condition", "retrieved") == "retrieved"}
            show_answers(f"question {number + 1} of {len(ids)}: {question.id}", question,
                         [ShownAnswer(label, records.get(id), causes.get(id), id in searching)
                          for id, label in wanted.items()], columns, texts, prompts, scores)
    finally:
        folder.close()


def _scored(folder: RunFolder, cells: Sequence[Mapping[str, Any]], question: Question,
            records: Mapping[str, Record]) -> tuple[list[str], dict[str, str]]:
    """Return the metrics of the run's table, and the cause of each cell's answer by the cell's id."""
    made = manifest_of(folder.path)
    results = [record.result for record in records.values()]
    found = causes_of(list(map(Cell.of, cells)), results, {question.id: question}, made.scheme.rights, made.scoring)
    return ([name for column in made.scheme.columns for name in column.split(" / ")],
            {cell: BY_NAME[cause].title for cell, causes in found.items() for cause in causes.values()})


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
            "trace": trace(result.trace),
            "timing": record.timing.model_dump(mode="json")}


def _with_gold(subs: Sequence[StoredSub], question: Question) -> list[tuple[StoredSub, str | None]]:
    """Return each sub-question of a record with its gold answer, None where none is known."""
    return list(zip(subs, [*question.sub_answers, *[None] * len(subs)], strict=False))
