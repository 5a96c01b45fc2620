"""A run's records as JSON Lines, with everything that is stored, and as a flat table in CSV or Parquet."""
from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from experiments.cells import FACTORS
from experiments.question import Question
from experiments.record import Result, StoredStep
from experiments.running.rejudge import guarded
from experiments.runs.finished import Finished
from strategies.types import Usage


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """A finished run with the cause of every answer.

    Attributes:
        causes: by cell's id, then by question: why an answer is wrong, or `right`; empty where the benchmark has no
            notion of a right answer.
    """

    run: Finished
    causes: Mapping[str, Mapping[str, str]]

    def cause(self, result: Result) -> str | None:
        """Return why the answer is wrong, or `right`."""
        return self.causes.get(result.cell, {}).get(result.question)


_TEXTS = 10_000  # kept in memory: neighbouring records share their passages and most of their prompts


def write_jsonl(material: ExportedRun, path: Path) -> None:
    """Write one line for each question in each cell."""
    run = material.run
    cells = {row["id"]: {"id": row["id"], "name": run.labels[row["id"]], **{name: row.get(name) for name in FACTORS}}
             for row in run.rows}
    text = lru_cache(_TEXTS)(run.folder.database.text)
    with path.open("w", encoding="utf-8") as file:
        for record in run.folder.records(traces=True):
            result, question = record.result, run.questions[record.result.question]
            line = {"run": run.name, "cell": cells[result.cell],
                    "question": {"id": question.id, "text": question.text, "answers": list(question.answers),
                                 "options": [list(option) for option in question.options], "tags": _lists(question)},
                    "cause": material.cause(result), **_result(result, text), "timing": record.timing.model_dump()}
            file.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n")


def _lists(question: Question) -> dict[str, list[str]]:
    return {name: list(values) for name, values in question.tags.items()}


def _result(result: Result, text: Callable[[str], str]) -> dict[str, Any]:
    return {**result.model_dump(mode="json", exclude={"cell", "question", "trace", "subs", "evidence"}),
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


Kind = Literal["text", "whole", "number", "truth"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column. A list, such as that of the cited numbers, is text: JSON."""

    name: str
    kind: Kind = "text"


_OF_ANSWER = (
    Column("outcome"), Column("answer"), Column("refused", "truth"), Column("answerable", "truth"), Column("cited"),
    Column("invalid_citations"), Column("gold_in_view", "truth"), Column("gold_total", "whole"),
    Column("passages", "whole"), Column("judge"), Column("grade"), Column("points", "whole"), Column("judge_note"),
    Column("notes"), Column("failure"))
_USED = (Column("prompt_tokens", "whole"), Column("completion_tokens", "whole"), Column("cached_tokens", "whole"),
         Column("calls", "whole"), Column("price", "number"))
_OTHERS = ("judge", "sub")  # whose calls are not among the answer's own: the judge's, those of sub-questions
_TIMED = (Column("seconds", "number"), Column("attempts", "whole"), Column("retried", "whole"),
          Column("replayed", "whole"), Column("paid", "number"), Column("finished"))


def columns(scores: Sequence[str]) -> tuple[Column, ...]:
    """Return all columns of a run, in order; each score's is `score.NAME`."""
    factors = (Column(name, "whole" if name == "repeat" else "text") for name in FACTORS)
    others = (Column(f"{who}_{column.name}", column.kind) for who in _OTHERS for column in _USED)
    return (Column("run"), Column("cell"), Column("cell_name"), *factors, Column("question"), Column("text"),
            Column("gold"), Column("tags"), *_OF_ANSWER, Column("cause"),
            *(Column(f"score.{name}", "number") for name in scores), *_USED, *others, *_TIMED)


def rows(material: ExportedRun) -> Iterator[dict[str, Any]]:
    """Yield the rows by column, in the run's order; a column that a row lacks is None."""
    run = material.run
    factors = {row["id"]: {name: row.get(name) for name in FACTORS} for row in run.rows}
    for record in run.folder.records():
        result = record.result
        yield {"run": run.name, "cell": result.cell, "cell_name": run.labels[result.cell], **factors[result.cell],
               **_question(run.questions[result.question]), **_answer(result), "cause": material.cause(result),
               **{f"score.{name}": value for name, value in result.scores.items()},
               **_used("", result.usage), **_used("judge_", result.judge_usage), **_used("sub_", result.sub_usage),
               **record.timing.model_dump()}


def _question(question: Question) -> dict[str, Any]:
    return {"question": question.id, "text": question.text, "gold": _listed(question.answers),
            "tags": json.dumps(_lists(question), ensure_ascii=False, sort_keys=True)}


def _answer(result: Result) -> dict[str, Any]:
    verdict = result.verdict
    return {"outcome": result.outcome, "answer": result.text, "refused": result.refused,
            "answerable": result.answerable, "cited": _listed(result.cited),
            "invalid_citations": _listed(result.invalid_citations), "gold_in_view": result.gold_in_view,
            "gold_total": result.gold_total, "passages": len(result.in_view), "notes": _listed(result.notes),
            "judge": verdict and verdict.judge, "grade": verdict and verdict.grade,
            "points": verdict and verdict.points, "judge_note": verdict and verdict.note,
            "failure": result.failure and f"{result.failure.kind}: {result.failure.message}"}


def _used(who: str, usage: Usage) -> dict[str, Any]:
    return {who + column.name: getattr(usage, column.name) for column in _USED}


def _listed(values: Sequence[object]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # but tabs and new lines
_BATCH = 2_000  # rows of a Parquet row group


def write_csv(material: ExportedRun, path: Path) -> None:
    """Write one row for each question in each cell; a text that a spreadsheet would run as a formula begins with `'`,
    and what could steer a terminal is escaped, as `\\x1b`."""
    header = columns(_scores(material))
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([column.name for column in header])
        for row in rows(material):
            values = (row.get(column.name) for column in header)
            writer.writerow([guarded(_CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", value))
                             if isinstance(value, str) else value for value in values])


def write_parquet(material: ExportedRun, path: Path) -> None:
    """Write the same table, typed, in row groups, so that memory does not grow with the run."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    header = columns(_scores(material))
    kinds = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
    schema = pa.schema([(column.name, kinds[column.kind]) for column in header])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        all_rows = rows(material)
        while batch := list(islice(all_rows, _BATCH)):
            writer.write_table(pa.table([[_typed(row.get(column.name), column) for row in batch] for column in header],
                                        schema=schema))


def _scores(material: ExportedRun) -> list[str]:
    return list(dict.fromkeys(name for result in material.run.folder.results() for name in result.scores))


def _typed(value: Any, column: Column) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return str(value) if column.kind == "text" and value is not None else value
