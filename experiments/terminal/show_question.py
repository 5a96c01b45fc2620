"""`ragbed show` at work: one question of a run in its cells, from the records alone."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from documents.errors import UserError
from experiments.attribution import BY_NAME, causes_of
from experiments.cells import Cell
from experiments.question import Question
from experiments.record import Record, StoredPassage, StoredSub
from experiments.running.sub_questions import with_gold
from experiments.runs.finding import cells_in, cells_named, question_named
from experiments.runs.store import RunFolder
from experiments.settings.file import read_settings
from experiments.terminal.answers import Shown, show_answers
from experiments.terminal.display import print_json
from experiments.terminal.passages import place
from experiments.terminal.trace import restored, step_row

Text = Callable[[str], str]


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
            print_json({"run": str(path), "number": number + 1, "of": len(ids), "question": _question_row(question),
                        "cells": rows})
        else:
            searching = {row["id"] for row in cells if row.get("condition", "retrieved") == "retrieved"}
            show_answers(f"question {number + 1} of {len(ids)}: {question.id}", question,
                         [Shown(label, records.get(id), causes.get(id), id in searching)
                          for id, label in wanted.items()], columns, texts, prompts, scores)
    finally:
        folder.close()


def _scored(folder: RunFolder, cells: Sequence[Mapping[str, Any]], question: Question,
            records: Mapping[str, Record]) -> tuple[list[str], dict[str, str]]:
    """The metrics of the run's table, and the cause of each cell's answer by the cell's id; none where the settings
    cannot be read, or the factors of the cells are not known."""
    try:
        settings = read_settings(folder.path / "config.yaml")
    except UserError:
        return [], {}
    scheme = settings.scheme_of(folder.questions().values())
    results = [record.result for record in records.values()]
    known = [Cell.of(row) for row in cells if "condition" in row]
    found = causes_of(known, results, {question.id: question}, scheme, settings.scoring)
    return ([name for column in scheme.columns for name in column.split(" / ")],
            {cell: BY_NAME[cause].title for cell, causes in found.items() for cause in causes.values()})


def _question_row(question: Question) -> dict[str, Any]:
    """The question without the chunks, which a run does not keep with it."""
    chunks = ("given", "pool", "whole", "negatives", "table")
    return {key: value for key, value in asdict(question).items() if key not in chunks}


def _cell_row(id: str, label: str, record: Record | None, cause: str | None, question: Question,
              text: Text, prompts: bool) -> dict[str, Any]:
    """What a cell made of the question; `outcome` is None where it has no record yet."""
    if record is None:
        return {"cell": id, "name": label, "outcome": None}
    result = record.result
    passages = {passage.number: _passage_row(passage, text) for passage in result.evidence}
    return {"name": label, "cause": cause,
            **result.model_dump(mode="json", exclude={"evidence", "cited", "trace", "subs"}),
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
