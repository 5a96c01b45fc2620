"""Records as JSON Lines: everything that is stored of each, with its texts in place of their hashes."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from experiments.cells import FACTORS
from experiments.export.material import Material
from experiments.question import Question
from experiments.record import Record, StoredStep

_TEXTS = 10_000  # kept at hand: neighbouring records share their passages and most of their prompts


def write_jsonl(material: Material, path: Path) -> None:
    """One line for each question in each cell."""
    with path.open("w", encoding="utf-8") as file:
        for line in _lines(material):
            file.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n")


def _lines(material: Material) -> Iterator[dict[str, Any]]:
    run = material.run
    cells = {row["id"]: {"id": row["id"], "name": run.labels[row["id"]], **{name: row.get(name) for name in FACTORS}}
             for row in run.rows}
    text = lru_cache(_TEXTS)(run.folder.database.text)
    for record in run.folder.records(traces=True):
        result = record.result
        yield {"run": run.name, "cell": cells[result.cell], "question": _question(run.questions[result.question]),
               "cause": material.cause(result), **_result(record, text),
               "timing": record.timing.model_dump()}


def _question(question: Question) -> dict[str, Any]:
    return {"id": question.id, "text": question.text, "answers": list(question.answers),
            "options": [list(option) for option in question.options],
            "tags": {name: list(values) for name, values in question.tags.items()}}


def _result(record: Record, text: Callable[[str], str]) -> dict[str, Any]:
    """All of the stored result, but that hashes of texts are the texts."""
    stored = record.result.model_dump(mode="json", exclude={"cell", "question", "trace", "subs", "evidence"})
    result = record.result
    return {**stored,
            "evidence": [{**passage.model_dump(mode="json"), "text": text(passage.text)}
                         for passage in result.evidence],
            "subs": [{**sub.model_dump(mode="json", exclude={"trace"}),
                      "trace": [_step(step, text) for step in sub.trace]} for sub in result.subs],
            "trace": [_step(step, text) for step in result.trace]}


def _step(step: StoredStep, text: Callable[[str], str]) -> Mapping[str, Any]:
    return {**step.model_dump(mode="json", exclude={"messages"}),
            "messages": [{"role": message.role, "content": "".join(map(text, message.parts)),
                          **message.model_dump(mode="json", include={"tool_calls", "call_id"})}
                         for message in step.messages]}
