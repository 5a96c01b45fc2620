"""Your own questions from tables, hub data sets, and other tools' files."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ragbed.documents.errors import BenchmarkError
from ragbed.documents.paths import expand_path
from ragbed.documents.rows import Row, convert_records
from ragbed.documents.types import Chunk, Document, digest
from ragbed.experiments.benchmarks.base import About, Loaded, collect_questions
from ragbed.experiments.benchmarks.fields import gold_chunk
from ragbed.experiments.benchmarks.jsonl import OwnQuestions, to_question
from ragbed.experiments.formatting import plural
from ragbed.experiments.guests.question_files.columns import Columns, Empty, Role
from ragbed.experiments.guests.question_files.table_files import (
    find_blank,
    find_files,
    is_blank,
    read_table,
    unwrap,
)
from ragbed.experiments.guests.question_files.traces import GIVEN, read_foreign
from ragbed.experiments.question import Benchmark

_MAX_ROWS = 1_000_000
_SHOWN = 5  # places of blank rows


def _many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class QuestionFile(OwnQuestions):
    """Your own questions from a table, a data set on the hub, or another tool's file.

    Attributes:
        path: a CSV, TSV, Excel, Parquet, JSON Lines, JSON or YAML file, a folder, or `hub:OWNER/NAME/SPLIT`.
        columns: the columns of the file, by what they hold: question, answer (several: accepted answers),
            answerable, unanswerable, document, page, evidence, context, id or tags. Other columns are recognised by
            their usual names.
        sheet: the sheet of an Excel file with several.
        empty_answer: what a blank answer means: nothing, so that the file is refused, or that the question is
            `unanswerable`, or that its answer is `ungraded`.
        corpus: folder of documents to search, unless the retriever names an index.
    """

    about = About(paper="none: your own questions", licence="yours", size="one question per row",
                  get="a table that you write, a data set on the hub, or a file of another tool",
                  settings={"conditions": "retrieved"})

    kind: Literal["questions"] = "questions"  # type: ignore[assignment]
    columns: dict[Role, Annotated[list[str], BeforeValidator(_many)]] = Field(default_factory=dict)
    sheet: str | None = None
    empty_answer: Empty = "refuse"

    @classmethod
    def run_as(cls, fields: Mapping[str, Any], run: Mapping[str, Any] = MappingProxyType({})) -> Mapping[str, Any]:
        """Return the default condition: `retrieved` if there is a corpus or an index, otherwise `provided`."""
        retrievers = run.get("retriever")
        named = any(isinstance(one, Mapping) and one.get("index") for one in (
            retrievers if isinstance(retrievers, list) else [retrievers]))
        return {"conditions": "retrieved" if fields.get("corpus") or named else "provided"}

    def whole(self) -> Benchmark:
        """Return all questions of the file."""
        rows, columns, blank = self._read()
        find, seen = DocumentNames(self.corpus).find, dict[str, Row]()

        def made(row: Row) -> Loaded:
            question, documents = read_question(row, columns, self.empty_answer, find)
            if (first := seen.setdefault(question.id, row)) is not row:
                what = f"the id {question.id} of line" if "id" in columns.roles else "the question of line"
                raise BenchmarkError(f"{row.file}, line {row.line}: has {what} {first.line} again; remove one, or give "
                                     "each an id of its own")
            return question, documents

        questions, documents = collect_questions(convert_records(made, rows))
        if not questions:
            raise BenchmarkError(f"{self.path}: contains no questions")
        note = f"{plural(len(questions), 'question')} from {Path(self.path).name}: {columns.describe()}{blank}"
        return Benchmark(Path(self.path).stem, questions, documents, corpus=self.corpus, notes=(note,))

    def _read(self) -> tuple[list[Row], Columns, str]:
        """Return the rows that hold something, what their columns mean, and which blank rows were skipped."""
        files = find_files(self.path)
        rows = list(islice(chain.from_iterable(read_table(file, self.sheet) for file in files), _MAX_ROWS + 1))
        if len(rows) > _MAX_ROWS:
            raise BenchmarkError(f"{self.path}: more than the limit of {_MAX_ROWS:,} rows; divide the file")
        blank, rows = _describe_blank(rows), [row for row in rows if row.fields]
        foreign = read_foreign(rows) if rows else None
        if foreign is not None:  # several answers to one question are one question
            rows = list({str(one.fields): one for one in (Row(row.file, row.line, {
                name: value for name, value in row.fields.items() if name not in (GIVEN, "run", "retrieved")})
                for row in foreign)}.values())
        rows = [row for one in rows for row in (unwrap(one) if len(rows) == 1 else [one])]
        filled = [row for row in rows if not is_blank(row)]
        if not filled:
            raise BenchmarkError(f"{self.path}: contains no questions")
        names = list(dict.fromkeys(name for row in filled for name in row.fields))
        return filled, Columns.of(names, self.columns, Path(self.path).name), blank


def _describe_blank(rows: Sequence[Row]) -> str:
    """Describe the blank rows, as in `; skipped 3 blank rows: line 3, lines 5 to 6`; return no text without any."""
    found = find_blank(rows)
    if not found:
        return ""
    several = len({row.file for row in rows}) > 1
    names = [(f"{file.name}, " if several else "") + (
        f"line {lines.start}" if len(lines) == 1 else f"lines {lines.start} to {lines[-1]}") for file, lines in found]
    more = f" and {len(names) - _SHOWN} more places" if len(names) > _SHOWN else ""
    skipped = plural(sum(len(lines) for _, lines in found), "blank row")
    return f"; skipped {skipped}: {', '.join(names[:_SHOWN])}{more}"


def read_question(row: Row, columns: Columns, empty: Empty, find: Callable[[Row, str], str]) -> Loaded:
    """Return the question of a row, and its passages. `find` returns the path of a document that a cell names."""
    record = columns.convert(row, empty)
    evidence, contexts = record.pop("evidence"), record.pop("context")
    named = record.get("gold_documents", [])
    for item in named:
        if isinstance(item, dict) and isinstance(item.get("document"), str):
            item["document"] = find(row, item["document"])
    question = to_question(Row(row.file, row.line, record))
    sources = [item["document"] for item in named if isinstance(item, dict)]
    passages = [*contexts, *(text for text in evidence if not named and not any(text in one for one in contexts))]
    paired = sources if len(sources) == len(passages) else sources * len(passages) if len(sources) == 1 else []
    documents = [_passage(text, paired[at] if paired else "") for at, text in enumerate(passages)]
    chunks = tuple(Chunk.of(document, "plain", 0, len(document.plain)) for document in documents)
    gold = question.gold or tuple(gold_chunk(chunk) for chunk in chunks if any(
        text in chunk.content for text in evidence))
    return replace(question, provided=chunks, gold=gold), documents


def _passage(text: str, source: str) -> Document:
    id = digest("passage", source, text)[:16]
    return Document(id, source or id, "", "", text)


class DocumentNames:
    """Finds the documents that a table names in a folder, whatever their case, folder or suffix."""

    def __init__(self, corpus: str | None) -> None:
        folder = None if corpus is None else expand_path(corpus)
        self._corpus, self._paths = corpus, [] if folder is None or not folder.is_dir() else sorted(
            file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
        self._by_end: dict[str, list[str]] = defaultdict(list)
        for path in self._paths:
            parts = path.casefold().split("/")
            for at in range(len(parts)):
                end = "/".join(parts[at:])
                for name in {end, PurePosixPath(end).with_suffix("").as_posix()}:
                    self._by_end[name].append(path)

    def find(self, row: Row, name: str) -> str:
        """Return the path of a document in the folder; the name itself if there is none. Raises BenchmarkError if
        several documents have the name."""
        if name in self._paths:
            return name
        parts = name.replace("\\", "/").casefold().split("/")
        found = next((some for at in range(len(parts)) if (some := self._by_end.get("/".join(parts[at:])))), [name])
        if len(found) > 1:
            row.fail("document", f"the path of one document in {self._corpus}, such as {' or '.join(found[:3])}", name)
        return found[0]
