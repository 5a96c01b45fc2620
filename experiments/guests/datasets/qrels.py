"""Read BEIR folders and TREC test collections: relevance judgements (qrels), topics and a corpus of passages."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from ragbed.documents.errors import BenchmarkError
from ragbed.documents.rows import Row, convert_records, read_rows, read_text
from ragbed.documents.types import Chunk, Document
from ragbed.experiments.benchmarks.base import files_below
from ragbed.experiments.benchmarks.fields import passage
from ragbed.experiments.question import Gold, Question

Qrels = dict[str, dict[str, int]]
_RELEVANCE = re.compile(r"-?\d{1,9}")
_HEADER = frozenset({"query-id", "query_id", "qid", "corpus-id", "doc_id", "docno", "score", "relevance", "rel"})
RECORDS = (".jsonl", ".json", ".parquet")


def read_corpus(files: Iterable[Path]) -> tuple[dict[str, Document], tuple[Chunk, ...]]:
    """Read records `{"_id", "title", "text"}` as documents under their ids, one chunk each. Raises BenchmarkError if a
    record does not fit, or an id appears twice."""
    documents: dict[str, Document] = {}

    def made(row: Row) -> Chunk:
        document, chunk = passage(row.text("text"), row.optional("title"), row.id("_id", "id"))
        if documents.setdefault(document.id, document) is not document:
            row.fail("_id", "an id that no other document has", document.id)
        return chunk

    chunks = tuple(convert_records(made, chain.from_iterable(map(read_rows, files))))
    return documents, chunks


def read_topics(files: Iterable[Path]) -> dict[str, str]:
    """Read queries by id: records `{"_id", "text"}`, or lines of id, tab and text. Raises BenchmarkError."""
    topics: dict[str, str] = {}

    def keep(row: Row) -> None:
        _once(topics, row.id("_id", "id"), row.filled("text"), f"{row.file}, line {row.line}: the query")

    for file in files:
        _read(file, keep, _topic)
    return topics


def _once(known: dict[str, Any], id: str, value: Any, what: str) -> None:
    """Store the value under its id. Raises BenchmarkError if the id already has a different value."""
    if known.setdefault(id, value) != value:
        raise BenchmarkError(f"{what} {id} appears twice, as {str(known[id])[:60]!r} and as {str(value)[:60]!r}; "
                             "keep one")


def read_qrels(file: Path) -> Qrels:
    """Read relevance by query and document, in the file's order.

    A file has three columns (query, document and relevance) with or without a header, TREC's four columns (the second
    is ignored), or records `{"query-id", "corpus-id", "score"}`. Raises BenchmarkError if a line does not fit.
    """
    qrels: Qrels = {}

    def keep(row: Row) -> None:
        query, document, relevance = row.id("query-id"), row.id("corpus-id"), row.number("score")
        _once(qrels.setdefault(query, {}), document, relevance, f"{file}: for the query {query} the document")

    _read(file, keep, _judgement)
    if not qrels:
        raise BenchmarkError(f"{file}: has no judgements; expected query, document and relevance in each line")
    return qrels


def judged_questions(qrels: Qrels, topics: Mapping[str, str], where: Path) -> tuple[Question, ...]:
    """Return every judged query. Documents of relevance above 0 become graded gold, those of relevance 0 `irrelevant`.
    Those with a negative relevance become `junk`, which is unjudged for trec_eval's metrics. Raises BenchmarkError if a
    query has no text."""
    def made(judged: tuple[str, dict[str, int]]) -> Question:
        query, grades = judged
        if query not in topics:
            raise BenchmarkError(f"{where}: the query {query} is judged, but no topic or query has that id")
        return Question(id=query, text=topics[query], answers=(), answerable=True, gold=tuple(
            Gold(document, relevance=grade) for document, grade in grades.items() if grade > 0), irrelevant=tuple(
                document for document, grade in grades.items() if grade == 0), junk={
                document: grade for document, grade in grades.items() if grade < 0})

    return tuple(convert_records(made, qrels.items()))


def collection_files(folder: Path, name: str, suffixes: tuple[str, ...] = RECORDS) -> list[Path]:
    """List the file `name` with one of the suffixes, or the files in the folder `name`. Raises BenchmarkError."""
    if (folder / name).is_dir():
        return files_below(folder / name, suffixes)
    found = [file for suffix in suffixes if (file := folder / f"{name}{suffix}").is_file()]
    if not found:
        raise BenchmarkError(f"{folder}: no {' or '.join(name + suffix for suffix in suffixes)} in it")
    return found[:1]


def _read(file: Path, keep: Callable[[Row], None], row: Callable[[Path, tuple[int, str]], Row | None]) -> None:
    """Pass each record of a file to `keep`. If it is not a file of records, `row` parses its numbered lines."""
    if file.suffix in RECORDS:
        rows: Iterable[Row | None] = read_rows(file)
    else:
        lines = enumerate(read_text(file).split("\n"), start=1)
        rows = convert_records(partial(row, file), (one for one in lines if one[1].strip()))
    for _ in convert_records(keep, filter(None, rows)):
        pass


def _topic(file: Path, numbered: tuple[int, str]) -> Row:
    number, line = numbered
    id, tab, text = line.partition("\t")
    if not tab or not text.strip():
        raise BenchmarkError(f"{file}, line {number}: expected an id, a tab and the query, found {line[:60]!r}")
    return Row(file, number, {"id": id.strip(), "text": text.strip()})


def _judgement(file: Path, numbered: tuple[int, str]) -> Row | None:
    number, line = numbered
    columns = [column.strip() for column in (line.split("\t") if "\t" in line else line.split())]
    if len(columns) in (3, 4) and _RELEVANCE.fullmatch(columns[-1]):
        return Row(file, number, {"query-id": columns[0], "corpus-id": columns[-2], "score": int(columns[-1])})
    if number == 1 and {column.lower() for column in columns} & _HEADER:
        return None
    raise BenchmarkError(f"{file}, line {number}: expected query, document and relevance in three columns, or in "
                         f"TREC's four, found {line[:60]!r}")
