"""Find the tables of a document: header, rows and cells, with their spans in both renderings."""
from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragbed.documents.chunkers.spans import Span
from ragbed.documents.numbers import SIGNS, UNITS, is_number, is_year
from ragbed.documents.parsers.clean_html import CONTAINERS, HEADINGS, PHRASING, VOID, Close, Event, Open
from ragbed.documents.parsers.plain import PipeRow, arrange_columns, read_table_rows, write_table
from ragbed.documents.parsers.table_cells import HtmlRow
from ragbed.documents.types import Document


@dataclass(frozen=True, slots=True)
class TableCell:
    """A table cell with its spans in the document's renderings."""

    text: str  # on one line; joined with a sign or unit from a separate cell
    html: Span | None = None  # None if the row has no such cell
    plain: Span | None = None  # None if the cell is empty, or repeats a spanned cell


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table row: one cell per column, and the span of its line in the `plain` rendering."""

    cells: tuple[TableCell, ...]
    plain: Span | None = None


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table with its spans in the document's renderings."""

    document: str  # id of the document
    caption: str  # its own or the nearest heading above; may be empty
    header: tuple[str, ...]  # title of each column, may be empty; several title rows are joined by a space
    rows: tuple[TableRow, ...]  # below the header; a spanning cell is repeated in each row and column
    html: Span
    plain: Span | None  # None if it is indented, as in a list, or not found
    page: int | None  # page on which it begins; None if the document has no pages


def find_tables(document: Document) -> list[SourceTable]:
    """Return the tables of a document, in order. Layout tables are left out: they have one column, one row or no
    header, or contain another table."""
    found: list[SourceTable] = []
    after = 0
    for place in _places(document.html):
        rows = read_table_rows(place.events)
        cells = [cell for row in rows for cell in row.cells]
        if len(cells) != len(place.cells) or len(rows) < 2 or any(cell.nested for cell in cells):
            continue
        written = write_table(rows)[0]
        start = _find_block(document.plain, written, after)
        after = after if start is None else start + len(written)
        pages = document.pages_of("html", *place.span)
        spans = {id(cell): span for cell, span in zip(cells, place.cells, strict=True)}
        header, body = _read(rows, spans, None if start is None else (written, start))
        if header and body:
            found.append(SourceTable(document.id, place.caption, header, body, place.span,
                                     None if start is None else (start, after), pages[0] if pages else None))
    return found


def _find_block(plain: str, block: str, after: int) -> int | None:
    """Return where `block` is in `plain` as a separate block, after position `after`."""
    start = plain.find(f"{block}\n\n", after)
    while start > 0 and plain[start - 2:start] != "\n\n":
        start = plain.find(f"{block}\n\n", start + 1)
    return None if start < 0 else start


Line = tuple[Span, list[Span]]
"""The span of a line of a pipe table, and of each of its cells."""


def _lines(written: str, start: int, heads: int) -> list[Line]:
    """Return the spans of each line of a pipe table, except the line of dashes and an empty header."""
    lines: list[Line] = []
    for line in written.split("\n"):
        at = start + len("| ")
        cells: list[Span] = []
        for text in line[2:-2].split(" | "):
            cells.append((at, at + len(text)))
            at += len(text) + len(" | ")
        lines.append(((start, start + len(line)), cells))
        start += len(line) + 1
    return lines[:heads] + lines[max(heads, 1) + 1:]


def _read(rows: Sequence[HtmlRow], spans: dict[int, Span],
          plain: tuple[str, int] | None) -> tuple[tuple[str, ...], tuple[TableRow, ...]]:
    """Return the header and the rows of a table; `plain` is its plain text with its start position."""
    filled, columns = arrange_columns(rows)
    if len(columns) < 2:
        return (), ()
    heads = sum(row.head for row in filled)
    titled = filled[:_count_title_rows(filled, heads, columns)]
    titles = [[row.texts[column] if column < len(row.texts) else "" for row in titled] for column in columns]
    header = tuple(" ".join(dict.fromkeys(filter(None, title))).replace("\\|", "|") for title in titles)
    lines = [None] * len(filled) if plain is None else _lines(*plain, heads)
    return header if any(header) else (), tuple(
        _row(row, columns, spans, line) for row, line in list(zip(filled, lines, strict=True))[len(titled):])


def _count_title_rows(rows: Sequence[PipeRow], heads: int, columns: Sequence[int]) -> int:
    """Count the title rows.

    If no row is marked as header, a full first row without numbers is the title row, unless no row has numbers.
    Otherwise, count the marked rows, and rows directly below that have no numbers and add a title to an untitled
    column.
    """
    def texts(row: PipeRow) -> list[str]:
        return [row.texts[column] if column < len(row.texts) else "" for column in columns]

    def named(row: PipeRow) -> bool:
        return not any(is_number(text) and not is_year(text) for text in row.texts)

    if not heads and all(texts(rows[0])) and named(rows[0]) and not all(map(named, rows)):
        return 1
    titled = [any(title) for title in zip(*map(texts, rows[:heads]), strict=True)]
    for row in rows[heads:] if heads else ():
        if not named(row) or all(title or not text for title, text in list(zip(titled, texts(row), strict=True))[1:]):
            break
        titled = [title or bool(text) for title, text in zip(titled, texts(row), strict=True)]
        heads += 1
    return heads


def _row(row: PipeRow, columns: Sequence[int], spans: dict[int, Span], line: Line | None) -> TableRow:
    cells: list[TableCell] = []
    for number, column in enumerate(columns):
        shown, cell = row.places[column] if column < len(row.places) else ("", None)
        if cell is None:
            cells.append(TableCell(""))
            continue
        text = row.texts[column]
        plain = line[1][number] if line and number < len(line[1]) and text else None
        if not shown:  # part of a spanning cell
            text = text or cell.text()
        cells.append(TableCell(text.replace("\\|", "|"), _joined_span(row, column, spans), plain))
    return TableRow(tuple(cells), line and line[0])


def _joined_span(row: PipeRow, column: int, spans: dict[int, Span]) -> Span:
    """Return the span of a column's cell, including signs before and units after that were joined to it."""
    first = last = column
    while first and not row.texts[first - 1] and row.places[first - 1][0] in SIGNS and row.texts[column]:
        first -= 1
    while last + 1 < len(row.texts) and not row.texts[last + 1] and row.places[last + 1][0] in UNITS \
            and row.texts[column]:
        last += 1
    reached = [spans[id(cell)] for _, cell in row.places[first:last + 1] if cell is not None]
    return reached[0][0], reached[-1][1]


_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)([^<>]*)>")
_ATTRIBUTE = re.compile(r'(colspan|rowspan|start|value|alt)="([^"]*)"')
_WITHIN = {"tr": ("table", "thead", "tbody", "tfoot"), "td": ("tr",), "th": ("tr",)}


@dataclass(slots=True)
class _Place:
    """A table in the HTML: its events without the closing tag, and the spans of the table and its cells."""

    span: Span
    caption: str
    events: list[Event]
    cells: list[Span]


def _places(page: str) -> Iterator[_Place]:
    heading, start = "", -1
    for tag in _TAG.finditer(page):
        closing, name, _ = tag.groups()
        if name in HEADINGS and not closing:
            end = page.find(f"</{name}>", tag.end())
            heading = _text(page[tag.end():end]) if end >= 0 else heading
        elif name == "table" and not closing:
            start = tag.start()
        elif name == "table" and start >= 0:
            place = _place(page, (start, tag.end()), heading)
            if place is not None:
                yield place
            start = -1


def _place(page: str, span: Span, heading: str) -> _Place | None:
    place = _Place(span, heading, [], [])
    opened: list[tuple[str, int]] = []
    before = None
    for tag in _TAG.finditer(page, *span):
        closing, name, attributes = tag.groups()
        if before is not None:
            raw = page[before.end():tag.start()]
            if before[2] in CONTAINERS or (before[1] and before[2] in PHRASING):
                raw = raw.removeprefix("\n")  # added by the rendering
            if raw:
                place.events.append(html.unescape(raw))
        before = tag
        if not closing:
            if name in _WITHIN and not (opened and opened[-1][0] in _WITHIN[name]):
                return None
            if name not in VOID:
                opened.append((name, tag.end()))
            place.events.append(Open(name, tuple(
                (key, html.unescape(value)) for key, value in _ATTRIBUTE.findall(attributes)
                if key == "alt" or (value.isdecimal() and value.isascii() and len(value) <= 4))))
            continue
        if not opened or opened[-1][0] != name:
            return None
        _, start = opened.pop()
        if name in ("td", "th"):
            content = page[start:tag.start()]
            first = start + len(content) - len(content.lstrip())
            place.cells.append((first, max(first, start + len(content.rstrip()))))
        elif name == "caption":
            place.caption = _text(page[start:tag.start()]) or heading
        if name != "table":
            place.events.append(Close(name))
    return None if opened else place


def _text(markup: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", markup)).split())
