"""Write a run's complete records as JSON Lines, or a table of them as CSV or Parquet."""
from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal
from unicodedata import normalize

from ragbed.experiments.analysis.causes import find_causes
from ragbed.experiments.cells import FACTORS
from ragbed.experiments.metrics import may_refuse
from ragbed.experiments.metrics.aggregation import fill_unjudged, is_judge_score
from ragbed.experiments.metrics.metric import BY_SPLIT
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result, StoredStep
from ragbed.experiments.runs.finished import Finished


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """A finished run with the cause of each answer, if the benchmark defines right answers."""

    run: Finished
    causes: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, run: Finished) -> ExportedRun:
        """Find the causes of a run's answers."""
        return cls(run, find_causes(run.cells, run.folder.results(), run.questions, run.scheme.correctness_metrics,
                                    run.scoring))

    def cause(self, result: Result) -> str | None:
        """Return why the answer is wrong, or `right`."""
        return self.causes.get(result.cell, {}).get(result.question)

    def scores(self, result: Result) -> dict[str, float | None]:
        """Return the scores. Their means are the figures of the run's table. If answers of the run are unjudged, each
        judge score has two bounds too, such as `unified.least` and `unified.most` (`metrics.aggregation`)."""
        found = self.run.summary.get("unjudged")
        if not found:
            return result.scores
        ends = {f"{name}.{end}": score for end, value in (("least", 0.0), ("most", 1.0))
                for name, score in fill_unjudged([result], value)[0].scores.items() if is_judge_score(name)}
        return {name: None if is_judge_score(name) and result.cell in found["cells"] else score
                for name, score in result.scores.items()} | ends


_TEXTS = 10_000  # number of texts kept in memory, because consecutive records share passages and prompts


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
                    "cause": material.cause(result), **_result(result, text), "scores": material.scores(result),
                    "timing": record.timing.model_dump()}
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
# Lists, such as the cited numbers, are written as JSON text.
_OF_ANSWER: Mapping[str, Kind] = {
    "outcome": "text", "answer": "text", "refused": "truth", "answerable": "truth", "cited": "text",
    "invalid_citations": "text", "gold_in_view": "truth", "gold_total": "whole", "passages": "whole", "judge": "text",
    "grade": "text", "points": "whole", "judge_note": "text", "notes": "text", "failure": "text"}
_USED: Mapping[str, Kind] = {"prompt_tokens": "whole", "completion_tokens": "whole", "cached_tokens": "whole",
                             "calls": "whole", "price": "number"}
_TIMED: Mapping[str, Kind] = {"seconds": "number", "attempts": "whole", "retried": "whole", "replayed": "whole",
                              "paid": "number", "finished": "text"}


def columns(scores: Iterable[str]) -> dict[str, Kind]:
    """Return the columns of a run in order, with their types. The column of a score is `score.NAME`."""
    texts: dict[str, Kind] = dict.fromkeys(("run", "cell", "cell_name", *FACTORS, "question", "text", "gold", "tags"),
                                           "text")
    others = {f"{who}_{name}": kind for who in ("judge", "sub") for name, kind in _USED.items()}
    return {**texts, "repeat": "whole", **_OF_ANSWER, "cause": "text", "headline": "number",
            **{f"score.{name}": "number" for name in scores}, **_USED, **others, **_TIMED}


def rows(material: ExportedRun) -> Iterator[dict[str, Any]]:
    """Yield the rows in the run's order, as values by column. A missing value is None."""
    run = material.run
    factors = {row["id"]: {name: row.get(name) for name in FACTORS} for row in run.rows}
    part = _headlines(material)
    for record in run.folder.records():
        result = record.result
        question = run.questions[result.question]
        used = {who + name: getattr(usage, name) for name in _USED for who, usage in (
            ("", result.usage), ("judge_", result.judge_usage), ("sub_", result.sub_usage))}
        yield {"run": run.name, "cell": result.cell, "cell_name": run.labels[result.cell], **factors[result.cell],
               "question": question.id, "text": question.text, "gold": _list_as_json(question.answers),
               "tags": json.dumps(_lists(question), ensure_ascii=False, sort_keys=True),
               **_answer(result), "cause": material.cause(result), "headline": part(result),
               **{f"score.{name}": value for name, value in material.scores(result).items()}, **used,
               **record.timing.model_dump()}


def run_rows(run: Finished) -> Iterator[dict[str, Any]]:
    """Yield the rows of a finished run, for `Run.frame`."""
    return rows(ExportedRun.of(run))


def _headlines(material: ExportedRun) -> Callable[[Result], float | None]:
    """Return a function from a result to a value whose mean over a cell is the cell's headline figure. The value is
    the score, except for `unified`. It is None for metrics that are defined only for sets of questions."""
    run, sizes = material.run, Counter[tuple[str, bool]]()
    metric = run.scheme.headline
    if metric == BY_SPLIT:
        sizes.update((one.cell, one.answerable) for one in run.folder.results()
                     if material.scores(one).get(metric) is not None)
    halved = {cell.id for cell in run.cells if run.scoring == "as-published" and may_refuse(cell.rules)}

    def part(result: Result) -> float | None:
        score, own = material.scores(result).get(metric), [sizes[result.cell, kind] for kind in (True, False)]
        if score is None or metric != BY_SPLIT:
            return score
        return score * sum(own) / sizes[result.cell, result.answerable] / (
            2 if result.cell in halved else sum(map(bool, own)))
    return part


def _answer(result: Result) -> dict[str, Any]:
    verdict = result.verdict
    return {"outcome": result.outcome, "answer": result.text, "refused": result.refused,
            "answerable": result.answerable, "cited": _list_as_json(result.cited),
            "invalid_citations": _list_as_json(result.invalid_citations), "gold_in_view": result.gold_in_view,
            "gold_total": result.gold_total, "passages": len(result.in_view), "notes": _list_as_json(result.notes),
            "judge": verdict and verdict.judge, "grade": verdict and verdict.grade,
            "points": verdict and verdict.points, "judge_note": verdict and verdict.note,
            "failure": result.failure and f"{result.failure.kind}: {result.failure.message}"}


def _list_as_json(values: Sequence[object]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # control characters except tabs and newlines
_BATCH = 2_000  # rows per Parquet row group


def write_csv(material: ExportedRun, path: Path) -> None:
    """Write one row for each question in each cell. A text that a spreadsheet would run as a formula gets a leading
    `'`, and control characters are escaped, as `\\x1b`."""
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.DictWriter(file, _columns(material))
        writer.writeheader()
        for row in rows(material):
            writer.writerow({name: escape_formula(_CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", value))
                             if isinstance(value, str) else value for name, value in row.items()})


def write_parquet(material: ExportedRun, path: Path) -> None:
    """Write the same table with typed columns, in row groups, so that memory use does not grow with the run."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    header = _columns(material)
    kinds = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in header.items()])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        all_rows = rows(material)
        while batch := list(islice(all_rows, _BATCH)):
            writer.write_table(pa.table([[_typed(row.get(name), kind) for row in batch]
                                         for name, kind in header.items()], schema=schema))


def _columns(material: ExportedRun) -> dict[str, Kind]:
    return columns(name for result in material.run.folder.results() for name in material.scores(result))


def _typed(value: Any, kind: Kind) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return str(value) if kind == "text" and value is not None else value


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
_INVISIBLE = re.compile("[\\s\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f]")  # yet printable


def escape_formula(cell: str) -> str:
    """Prefix the cell with an apostrophe if a spreadsheet would run it as a formula. Leading blanks, line ends and
    invisible characters do not hide a formula."""
    first = next((one for one in cell if one.isprintable() and not _INVISIBLE.fullmatch(one)), "")
    return f"'{cell}" if cell.startswith(_FORMULA) or normalize("NFKC", first).startswith(_FORMULA) else cell
