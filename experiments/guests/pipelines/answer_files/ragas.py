"""ragas (docs.ragas.io): single-turn samples, as an EvaluationDataset's `to_jsonl` and `to_csv` write them."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from ragbed.documents.rows import Row, read_csv, read_rows
from ragbed.experiments.answer_files import Answer, AnswerFormat, Prediction
from ragbed.experiments.guests.pipelines.answer_files.conversion import line_writer, prediction

_LISTS = ("retrieved_contexts", "retrieved_context_ids")
_MAX_LIST = 1 << 22  # maximum characters of a list in a CSV file


def _read(file: Path) -> Iterator[Prediction]:
    return map(_read_sample, _read_csv(file) if file.suffix == ".csv" else read_rows(file))


def _read_csv(file: Path) -> Iterator[Row]:
    """Yield the rows of a CSV file, in which lists are written as Python literals."""
    for line in read_csv(file):
        row = Row(file, line.line, fields := {name: value for name, value in line.fields.items() if value != ""})
        for name in fields.keys() & set(_LISTS):
            try:
                fields[name] = ast.literal_eval(fields[name]) if len(fields[name]) <= _MAX_LIST else None
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                fields[name] = None
            if not isinstance(fields[name], list):
                row.fail(name, "a list", line.fields[name])
        yield row


def _read_sample(row: Row) -> Prediction:
    if not isinstance(row.fields.get("user_input"), str):
        row.fail("user_input", "the text of one question: samples of several turns are not supported", None)
    texts, ids = (row.fields.get(name) or [] for name in _LISTS)
    if not isinstance(texts, list) or not isinstance(ids, list) or (texts and ids and len(texts) != len(ids)):
        row.fail(_LISTS[1], f"a list as long as {_LISTS[0]}", ids)
    contexts = [{"text": text, "document": str(id)}
                for text, id in zip(texts or [""] * len(ids), ids or [""] * len(texts), strict=True)]
    return prediction(row, None, row.filled("user_input"), {"answer": row.fields.get("response"), "contexts": contexts})


def _write_sample(answer: Answer) -> Answer:
    return {"user_input": answer["question"], "retrieved_contexts": [context["text"] for context in answer["contexts"]],
            "retrieved_context_ids": [context["document"] for context in answer["contexts"]],
            "response": answer["answer"], "reference": next(iter(answer["gold"]), None)}


RAGAS = AnswerFormat(_read, line_writer(_write_sample))
