"""Parse CSV files, with commas, semicolons or tabs, and write tables of cells."""
from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragbed.documents.decoding import SEPARATOR_LINE, decode
from ragbed.documents.errors import DocumentError
from ragbed.documents.numbers import is_number, is_year
from ragbed.documents.parsers.clean_html import Close, Event, Open, normalize_text, write_html
from ragbed.documents.parsers.plain import write_plain
from ragbed.documents.types import Document, new_document

MAX_CELLS = 1_000_000
_MAX_LENGTH = 131_072  # characters of a CSV field
_SAMPLE = 10_000


def parse_csv(data: bytes, source: str) -> Document:
    """Parse a CSV file, and detect its delimiter. Raises DocumentError if the data is binary or has too many cells."""
    text = normalize_text(decode(data, source))
    csv.field_size_limit(_MAX_LENGTH)  # set for each file, because readers of other files allow longer fields
    if named := SEPARATOR_LINE.match(text):
        delimiter, text = named[1], text[named.end():]
    try:
        if not named:
            delimiter = max(",;\t|", key=lambda one: _count_alike(text[:_SAMPLE], one))
        rows = list(_limit_cells(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), source))
    except csv.Error as error:
        raise DocumentError(source, f"cannot be read as a table: {error}") from error
    events = list(write_table([{column: Cell(text) for column, cell in enumerate(row) if (text := cell.strip())}
                                for row in rows if row], max(map(len, rows), default=0)))
    return new_document("", write_html(events), write_plain(events))


def _count_alike(text: str, delimiter: str) -> tuple[int, int]:
    """Return how many rows have the most frequent number of cells, from two, and that number. A title or a remark above
    the table does not matter."""
    widths = Counter(len(row) for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if len(row) > 1)
    return max(((rows, width) for width, rows in widths.items()), default=(0, 0))


def _limit_cells(rows: Iterable[Sequence[Any]], source: str) -> Iterator[Sequence[Any]]:
    left = MAX_CELLS
    for row in rows:
        left -= max(len(row), 1)
        if left < 0:
            raise DocumentError(source, f"more than the limit of {MAX_CELLS:,} cells")
        yield row


@dataclass(slots=True)
class Cell:
    """A cell that holds something, and how many columns and rows it covers."""

    text: str
    columns: int = 1
    rows: int = 1


Row = Mapping[int, Cell]  # cells by column


def write_table(rows: Sequence[Row], width: int = 0) -> Iterator[Event]:
    """Yield a table, or paragraphs if no row has two cells. The first rows without numbers, except years, are the
    header: one row, and the next ones below a merged cell."""
    if all(len(row) < 2 for row in rows):
        for text in (cell.text for row in rows for cell in row.values()):
            yield from (Open("p"), text, Close("p"))
        return
    width = max(width, *(column + cell.columns for row in rows for column, cell in row.items()))
    heads = _count_heads(rows)
    covered: dict[int, int] = {}  # for each column, the first row below a merged cell
    yield Open("table")
    for number, row in enumerate(rows):
        yield Open("tr")
        tag = "th" if number < heads else "td"
        after = 0
        for column in range(width):
            if column < after or covered.get(column, 0) > number:
                continue
            if (cell := row.get(column)) is None:
                yield from (Open(tag), Close(tag))
                continue
            after = column + cell.columns
            covered |= dict.fromkeys(range(column, after), number + cell.rows) if cell.rows > 1 else {}
            yield from (Open(tag, tuple((name, str(count)) for name, count in (
                ("colspan", cell.columns), ("rowspan", cell.rows)) if count > 1)), cell.text, Close(tag))
        yield Close("tr")
    yield Close("table")


def _count_heads(rows: Sequence[Row]) -> int:
    def named(row: Row) -> bool:
        return all(is_year(cell.text) or not is_number(cell.text) for cell in row.values())

    heads = int(named(rows[0]))
    while 0 < heads < len(rows) - 1 and named(rows[heads]) and any(
            cell.columns > 1 for cell in rows[heads - 1].values()):
        heads += 1
    return heads
