"""RAGChecker (github.com/amazon-science/RAGChecker): one JSON object with `results`."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ragbed.documents.rows import Row, read_json
from ragbed.experiments.answer_files import Answer, AnswerFormat, Prediction
from ragbed.experiments.guests.pipelines.answer_files.conversion import json_line, prediction


def _read(file: Path) -> Iterator[Prediction]:
    content = read_json(file)
    results = Row(file, 1, content if isinstance(content, dict) else {}).parts("results")
    return (_read_result(Row(file, number, one.fields)) for number, one in enumerate(results, start=1))


def _read_result(row: Row) -> Prediction:
    contexts = row.parts("retrieved_context") if row.fields.get("retrieved_context") else []
    return prediction(row, row.id("query_id"), row.optional("query"),
                      {"answer": row.text("response") or None, "contexts": [one.fields for one in contexts]})


def _write(answers: Iterator[Answer], path: Path) -> None:
    path.write_text(json_line({"results": [{
        "query_id": one["id"], "query": one["question"], "gt_answer": next(iter(one["gold"]), ""),
        "response": one["answer"] or "", "retrieved_context": [
            {"doc_id": context["document"], "text": context["text"]} for context in one["contexts"]]}
        for one in answers]}), encoding="utf-8")


RAGCHECKER = AnswerFormat(_read, _write)
