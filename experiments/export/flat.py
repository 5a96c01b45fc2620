"""A run's records as flat rows, one for each question in each cell, with the same columns whatever they hold."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from experiments.cells import FACTORS
from experiments.export.material import Material
from experiments.question import Question
from experiments.record import Record
from strategies.types import Usage

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
    """All columns of a run, in order; each score's is `score.NAME`."""
    factors = (Column(name, "whole" if name == "repeat" else "text") for name in FACTORS)
    others = (Column(f"{who}_{column.name}", column.kind) for who in _OTHERS for column in _USED)
    return (Column("run"), Column("cell"), Column("cell_name"), *factors, Column("question"), Column("text"),
            Column("gold"), Column("tags"), *_OF_ANSWER, Column("cause"),
            *(Column(f"score.{name}", "number") for name in scores), *_USED, *others, *_TIMED)


def rows(material: Material) -> Iterator[dict[str, Any]]:
    """The rows by column, in the run's order; a column that a row lacks is None."""
    run = material.run
    factors = {row["id"]: {name: row.get(name) for name in FACTORS} for row in run.rows}
    for record in run.folder.records():
        result = record.result
        yield {"run": run.name, "cell": result.cell, "cell_name": run.labels[result.cell], **factors[result.cell],
               **_asked(run.questions[result.question]), **_answer(record),
               "cause": material.cause(result),
               **{f"score.{name}": value for name, value in result.scores.items()},
               **_used("", result.usage), **_used("judge_", result.judge_usage), **_used("sub_", result.sub_usage),
               **record.timing.model_dump()}


def _asked(question: Question) -> dict[str, Any]:
    return {"question": question.id, "text": question.text, "gold": _listed(question.answers),
            "tags": json.dumps(_plain(question.tags), ensure_ascii=False, sort_keys=True)}


def _plain(tags: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {name: list(values) for name, values in tags.items()}


def _answer(record: Record) -> dict[str, Any]:
    result, verdict = record.result, record.result.verdict
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
