"""Plain JSON Lines: one answer per line. The pipeline's settings say where to find answer, contexts and citations."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ragbed.documents.rows import Row, read_rows
from ragbed.experiments.answer_files import AnswerFormat, Prediction
from ragbed.experiments.guests.pipelines.answer_files.conversion import line_writer, prediction


def _read(file: Path) -> Iterator[Prediction]:
    return map(_read_line, read_rows(file))


def _read_line(row: Row) -> Prediction:
    id, question = row.stated_id(), row.optional("question")
    if id is None and not question.strip():
        row.fail("id", "the id of a question, or its text in `question`", None)
    return prediction(row, id, question, row.fields, run=row.optional("run"), failure=row.optional("failure"))


JSONL = AnswerFormat(_read, line_writer(lambda answer: answer), several_runs=True)
