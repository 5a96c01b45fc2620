"""Parse tables: CSV files, with commas, semicolons or tabs, and Excel workbooks."""
from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, time
from itertools import groupby
from typing import Any

from ragbed.documents.errors import DocumentError, MissingExtra
from ragbed.documents.numbers import is_number, is_year
from ragbed.documents.parse import Parsed, decode
from ragbed.documents.parsers.clean_html import Close, Event, Open, normalize_text, write_html
from ragbed.documents.parsers.office import open_archive
from ragbed.documents.parsers.plain import write_plain
from ragbed.documents.paths import keep_hidden_text

_MAX_CELLS = 1_000_000
_MAX_LENGTH = 131_072  # characters of a CSV field
_SAMPLE = 10_000
_SHARE = re.compile(r"0\.?(0*)%")


def parse_csv(data: bytes, source: str) -> Parsed:
    """Parse a CSV file, and detect its delimiter. Raises DocumentError if the data is binary or has too many cells."""
    text = normalize_text(decode(data, source))
    csv.field_size_limit(_MAX_LENGTH)  # for this process; other readers allow longer fields
    try:
        delimiter = csv.Sniffer().sniff(text[:_SAMPLE], ",;\t|").delimiter
    except csv.Error:
        delimiter = "\t" if source.lower().endswith(".tsv") else ","
    try:
        rows = list(_bounded(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), source))
    except csv.Error as error:
        raise DocumentError(source, f"cannot be read as a table: {error}") from error
    events = list(_table([[cell.strip() for cell in row] for row in rows if row]))
    return Parsed("", write_html(events), write_plain(events))


def parse_xlsx(data: bytes, source: str) -> Parsed:
    """Parse a workbook, with each sheet below its name. Empty rows separate tables, and formulas keep their stored
    values.
    
    Raises DocumentError if it is not a workbook, damaged or encrypted, or has too many cells; MissingExtra without
    openpyxl.
    """
    MissingExtra.check("office", "openpyxl")
    from openpyxl import load_workbook

    events: list[Event] = []
    hidden = 0
    with open_archive(data, source) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they concern styles and extensions, which are not read
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        left = _MAX_CELLS
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # the stated dimensions may be wrong
            rows = [[_value(cell) for cell in row] for row in _bounded(sheet.iter_rows(), source, left)]
            left -= sum(map(len, rows))
            if sheet.sheet_state != "visible" and not keep_hidden_text():
                hidden += sum(len(text) for row in rows for text in row)
            elif any(map(any, rows)):
                events += _sheet(sheet.title, rows)
    title = " ".join(normalize_text(book.properties.title or "").split())
    return Parsed(title, write_html(events), write_plain(events), hidden=hidden)


def _bounded(rows: Iterable[Sequence[Any]], source: str, left: int = _MAX_CELLS) -> Iterator[Sequence[Any]]:
    for row in rows:
        left -= max(len(row), 1)
        if left < 0:
            raise DocumentError(source, f"more than the limit of {_MAX_CELLS:,} cells")
        yield row


def _value(cell: Any) -> str:
    """Format a cell's value as the sheet shows it, except for the formats of dates and amounts."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "seconds")
    if isinstance(value, int | float):
        share = _SHARE.search(cell.number_format or "")
        return f"{value * 100:.{len(share[1])}f}%" if share else f"{value:.15g}"
    return " ".join(normalize_text(str(value)).split())


def _sheet(name: str, rows: Sequence[Sequence[str]]) -> Iterator[Event]:
    yield from (Open("h2"), normalize_text(name), Close("h2"))
    for filled, group in groupby(rows, key=any):
        if filled:
            yield from _table(list(group))


def _table(rows: Sequence[Sequence[str]]) -> Iterator[Event]:
    """Yield a table, or paragraphs if no row has two cells. The first row is the header if its only numbers are
    years."""
    if all(sum(map(bool, row)) < 2 for row in rows):
        for text in filter(None, (text for row in rows for text in row)):
            yield from (Open("p"), text, Close("p"))
        return
    titled = all(is_year(text) or not is_number(text) for text in rows[0])
    yield Open("table")
    for number, row in enumerate(rows):
        yield Open("tr")
        for text in row:
            tag = "th" if titled and number == 0 else "td"
            yield from (Open(tag), text, Close(tag)) if text else (Open(tag), Close(tag))
        yield Close("tr")
    yield Close("table")
