"""`ragbed show` at work: one question of a run in its cells, from the records alone."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.finding import cells_in, cells_named, question_named
from experiments.question import Question
from experiments.record import Record, StoredPassage, StoredSub
from experiments.store import RunFolder
from experiments.sub_questions import with_gold
from experiments.terminal.answers import show_answers
from experiments.terminal.display import print_json
from experiments.terminal.passages import place
from experiments.terminal.trace import restored, step_row

Text = Callable[[str], str]


def show_question(path: Path, name: str, cell: str | None, prompts: bool, json: bool) -> None:
    """Show a question and what each cell, or those named, made of it. The run stays as it is.

    Raises:
        UserError: there is no such run, question or cell.
    """
    folder = RunFolder.existing(path)
    try:
        ids = folder.question_ids()
        number = question_named(ids, name)
        question, wanted = folder.question(ids[number]), cells_named(cells_in(folder), cell)
        records = {record.result.cell: record for record in folder.records_of(question.id)}
        texts = folder.database.text
        if json:
            rows = [_cell_row(id, label, records.get(id), question, texts, prompts) for id, label in wanted.items()]
            print_json({"run": str(path), "number": number + 1, "of": len(ids), "question": _question_row(question),
                        "cells": rows})
        else:
            show_answers(f"question {number + 1} of {len(ids)}: {question.id}", question,
                         [(label, records.get(id)) for id, label in wanted.items()], texts, prompts)
    finally:
        folder.close()


def _question_row(question: Question) -> dict[str, Any]:
    """The question without the chunks, which a run does not keep with it."""
    chunks = ("given", "pool", "whole", "negatives", "table")
    return {key: value for key, value in asdict(question).items() if key not in chunks}


def _cell_row(id: str, label: str, record: Record | None, question: Question, text: Text,
              prompts: bool) -> dict[str, Any]:
    """What a cell made of the question; `outcome` is None where it has no record yet."""
    if record is None:
        return {"cell": id, "name": label, "outcome": None}
    result = record.result
    passages = {passage.number: _passage_row(passage, text) for passage in result.evidence}
    return {"name": label, **result.model_dump(mode="json", exclude={"evidence", "cited", "trace", "subs"}),
            "citations": [{key: value for key, value in passages[number].items() if key != "text"}
                          for number in result.cited],
            "evidence": list(passages.values()),
            "sub_questions": [_sub_row(sub, gold, text, prompts) for sub, gold in with_gold(result.subs, question)],
            "trace": [step_row(restored(step, text), prompts) for step in result.trace],
            "timing": record.timing.model_dump(mode="json")}


def _passage_row(passage: StoredPassage, text: Text) -> dict[str, Any]:
    row = {**passage.model_dump(mode="json", exclude={"source", "document"}), "document": passage.source}
    return {**row, "place": place(row), "text": text(passage.text)}


def _sub_row(sub: StoredSub, gold: str | None, text: Text, prompts: bool) -> dict[str, Any]:
    return {"question": sub.question, "outcome": sub.outcome, "answer": sub.text, "gold": gold,
            "trace": [step_row(restored(step, text), prompts) for step in sub.trace]}
