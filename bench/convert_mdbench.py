"""Convert tables to records in MDBench's format: a document for each row, and a question with a computed answer.

In MDBench a model edits the table, writes the documents and asks the question. No model is used here: each document is
one sentence and the answer is computed, so that documents and table say exactly the same.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conversion import Converter, Draw, Source, Sources, json_lines

from ragbed.documents import BenchmarkError
from ragbed.documents.rows import Row, read_json

_ROWS, _COLUMNS = 6, 4  # at most, the first ones: short prompts
_FEWEST = 5  # rows, as in MDBench
_LONGEST = 30  # characters of a cell


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question with its answer, and the `characteristic_breakdown` that says what it takes."""

    text: str
    answer: str
    hops: int
    aggregation: int


def _files(sources: Sources, draw: Draw) -> Mapping[str, str]:
    records: list[dict[str, Any]] = []
    for path in sources["tabfact"]:
        made = [record for row in _tables(path) if (record := _record(row, draw)) is not None]
        records += draw.limited(made, lambda record: str(record["example_id"]))
    return {"mdbench.jsonl": json_lines(records)}


def _tables(path: Path) -> Iterator[Row]:
    content = read_json(path)
    if not isinstance(content, list):
        raise BenchmarkError(f"{path}: expected a JSON list of tables")
    yield from (Row(path, 1, table) for table in content)


def _record(row: Row, draw: Draw) -> dict[str, Any] | None:
    """The record of a table; None where it is too small, has no title, or allows no question."""
    header, body = row.texts("header")[:_COLUMNS], [cells[:_COLUMNS] for cells in row.fields["rows"][:_ROWS]]
    fits = len(body) >= _FEWEST and len(set(header)) == len(header) and all(
        0 < len(cell) <= _LONGEST and "|" not in cell for cells in body for cell in cells)
    id = row.text("table_id").partition(".")[0]
    title = row.optional("title")
    asked = draw.ranked(_questions(title, header, body), lambda one: one.text, id) if fits and title else []
    if not asked:
        return None
    documents = [f"Document {number}: {_sentence(header, cells)}" for number, cells in enumerate(body, start=1)]
    table = "".join(f"|{'|'.join(cells)}|\n" for cells in (header, *body))
    return {"example_id": id, "question": asked[0].text, "ground_truth": asked[0].answer,
            "documents": "\n\n".join(documents), "table": table, "characteristic_breakdown": {
                "multi-hop": asked[0].hops, "temporal": 1, "numeric": 3,
                "information_aggregation": asked[0].aggregation, "soft_reasoning": 1}}


def _sentence(header: Sequence[str], cells: Sequence[str]) -> str:
    *said, last = (f"the {name} is {cell}" for name, cell in zip(header, cells, strict=True))
    return f"T{', '.join(said)[1:]}, and {last}."


def _questions(title: str, header: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[_Asked]:
    """Every question that the table allows: which entry has the most, what else that entry has, how many are alike."""
    columns = {name: [cells[place] for cells in body] for place, name in enumerate(header)}
    numbers = {name: [float(cell) for cell in cells] for name, cells in columns.items() if all(map(_is_number, cells))}
    names = {name: cells for name, cells in columns.items() if name not in numbers and len(set(cells)) == len(cells)}
    of = f"Of the entries on {title}: "
    for by, values in numbers.items():
        for word, best in (("highest", max(values)), ("lowest", min(values))):
            if values.count(best) == 1:
                at = values.index(best)
                for name, cells in names.items():
                    yield _Asked(f"{of}which {name} has the {word} {by}?", cells[at], 1, 3)
                yield from (_Asked(f"{of}what is the {other} of the entry with the {word} {by}?", cells[at], 3, 3)
                            for other, cells in columns.items() if other != by and other not in names)
    for name, cells in columns.items():
        for value in dict.fromkeys(cells):
            if name not in numbers and 1 < cells.count(value) < len(cells):
                yield _Asked(f"{of}in how many of them is the {name} {value}?", str(cells.count(value)), 1, 5)


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).isdecimal() and cell.isascii()


CONVERTER = Converter({
    "tabfact": Source(
        "TabFact (Chen et al. 2020), https://github.com/wenhuchen/Table-Fact-Checking, tables of Wikipedia", "MIT",
        "a JSON list of its tables with title, header and rows",
        f"The first {_ROWS} rows and {_COLUMNS} columns of each table that has {_FEWEST} rows; each row is a document "
        "of one sentence. One question a table, with a computed answer. MDBench's documents are written by a model, "
        "nine times as long as their rows, and its tables are edited so that rows depend on one another."),
}, _files)
