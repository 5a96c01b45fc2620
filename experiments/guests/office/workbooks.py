"""Parse Excel workbooks: values as the sheets show them."""
from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from zipfile import ZipFile

from ragbed.documents.errors import DocumentError, MissingExtra
from ragbed.documents.parsers.clean_html import Close, Event, Open, normalize_text, write_html
from ragbed.documents.parsers.plain import write_plain
from ragbed.documents.paths import keep_hidden_text
from ragbed.documents.types import Document, new_document
from ragbed.experiments.guests.office.drawings import C, R, parse_xml, read_chart, read_paragraphs, read_relations
from ragbed.experiments.guests.office.number_formats import format_general, format_number, format_text
from ragbed.experiments.guests.office.slides import open_archive
from ragbed.experiments.guests.office.spreadsheets import MAX_CELLS, Cell, Row, write_table

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_EMPTY_CELL = re.compile(rb"""<c\s(?=[^<>]*\br=)[^<>]*(?:/>|>\s*</c>)""")
_EMPTY_ROW = re.compile(rb"""<row\s(?=[^<>]*\br=)[^<>]*(?:/>|>\s*</row>)\s*""")
_BLOCK = 1 << 20  # bytes
_ESCAPED = re.compile("_x([0-9A-F]{4})_")
_PLACE = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")


def parse_xlsx(data: bytes, source: str) -> Document:
    """Parse a workbook: each sheet follows its name, and its text boxes and charts follow its cells.

    Values have their number formats, formulas give their stored values, and empty rows separate tables. Hidden sheets,
    rows, columns and values are left out and counted.

    Raises DocumentError if it is not a valid workbook or has too many cells, and MissingExtra without openpyxl.
    """
    MissingExtra.check("office", "openpyxl")
    events: list[Event] = []
    hidden, left = 0, MAX_CELLS
    with open_archive(data, source) as file:
        book = _open_book(file)
        strings = _read_strings(book)
        for sheet, relation in book.parser.find_sheets():
            if relation.target not in book.archive.NameToInfo:
                continue
            reader = _SheetReader(book.wb, strings, source, left)
            with book.archive.open(relation.target) as opened:
                tables = reader.read(opened)
            left = reader.left
            hidden += reader.hidden
            drawn = list(_read_drawings(book.archive, relation.target))
            if sheet.state != "visible" and not keep_hidden_text():
                hidden += sum(len(cell.text) for rows in tables for row in rows for cell in row.values())
                continue
            if tables or drawn:
                events += (Open("h2"), normalize_text(sheet.name), Close("h2"))
                events += [event for rows in tables for event in write_table(rows)]
                events += drawn
        title = " ".join(normalize_text(book.wb.properties.title or "").split())
    return new_document(title, write_html(events), write_plain(events), hidden=hidden)


def read_sheets(data: bytes, source: str) -> dict[str, dict[int, dict[int, str]]]:
    """Return the texts of each visible sheet's cells by row and column, with their line breaks. Raises DocumentError if
    it is not a valid workbook, has too many cells, or has a formula without its result."""
    sheets: dict[str, dict[int, dict[int, str]]] = {}
    left = MAX_CELLS
    with open_archive(data, source) as file:
        book = _open_book(file)
        strings = _read_strings(book)
        for sheet, relation in book.parser.find_sheets():
            if sheet.state == "visible" and relation.target in book.archive.NameToInfo:
                reader = _SheetReader(book.wb, strings, source, left, whole=True)
                with book.archive.open(relation.target) as opened:
                    reader.read(opened)
                left = reader.left
                sheets[sheet.name] = {number: {column: cell.text for column, cell in cells.items()}
                                      for number, cells in reader.rows.items()}
    return sheets


def _open_book(file: io.BytesIO) -> Any:
    """Read what concerns the whole workbook: its sheets' names, styles and properties."""
    from openpyxl.reader.excel import ExcelReader
    from openpyxl.styles.stylesheet import apply_stylesheet

    book = ExcelReader(file, read_only=True, keep_links=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and extensions, which are not read
        book.read_manifest()
        book.read_workbook()
        book.read_properties()
        apply_stylesheet(book.archive, book.wb)
    return book


def _read_strings(book: Any) -> list[str]:
    """Return the texts that the cells of a workbook share."""
    from lxml import etree
    from openpyxl.xml.constants import SHARED_STRINGS

    part = book.package.find(SHARED_STRINGS)
    if part is None:
        return []
    strings: list[str] = []
    with book.archive.open(part.PartName[1:]) as file:
        for _, element in etree.iterparse(file, tag=f"{_MAIN}si", resolve_entities=False, no_network=True):
            strings.append(_join_runs(element))
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
    return strings


def _join_runs(element: Any) -> str:
    """Return a text as it is shown, with superscripts as in 10^3. Readings of Japanese words are left out."""
    parts: list[str] = []
    for child in element.iterchildren(f"{_MAIN}t", f"{_MAIN}r"):
        text = child.text if child.tag == f"{_MAIN}t" else child.findtext(f"{_MAIN}t")
        place = child.find(f"{_MAIN}rPr/{_MAIN}vertAlign")
        raised = place is not None and place.get("val") == "superscript"
        parts.append(f"^{text}" if raised and text else text or "")
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), "".join(parts))


class _FilledRows:
    """Reads the XML of a sheet without its empty cells and rows, of which a sheet may have millions."""

    def __init__(self, file: Any) -> None:
        self._file, self._rest = file, b""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; empty at the end."""
        while block := self._file.read(_BLOCK):
            cut = (self._rest + block).rfind(b">") + 1
            block, self._rest = (self._rest + block)[:cut], (self._rest + block)[cut:]
            if block := _EMPTY_ROW.sub(b"", _EMPTY_CELL.sub(b"", block)):
                return block
        block, self._rest = self._rest, b""
        return block


@dataclass
class _SheetReader:
    """Reads the cells of a sheet that hold something, in one pass.

    Attributes:
        left: how many more cells the workbook may have.
        hidden: characters in hidden rows and columns, and in values whose number format shows nothing.
        whole: whether texts keep their line breaks, and a formula without its result is an error.
    """

    book: Any
    strings: Sequence[str]
    source: str
    left: int
    hidden: int = 0
    whole: bool = False
    rows: dict[int, dict[int, Cell]] = field(default_factory=dict)
    _formats: dict[int, str] = field(default_factory=dict)
    _unseen: list[tuple[int, int]] = field(default_factory=list)  # hidden columns
    _passed: set[int] = field(default_factory=set)  # rows with hidden cells only

    def read(self, file: Any) -> list[list[Row]]:
        """Return the tables of a sheet. Empty rows separate them."""
        from lxml import etree

        merged: list[tuple[int, int, int, int]] = []
        number = 0
        tags = [f"{_MAIN}{tag}" for tag in ("row", "col", "mergeCell")]
        for _, element in etree.iterparse(_FilledRows(file), tag=tags, resolve_entities=False, no_network=True):
            if element.tag == f"{_MAIN}row":
                number = _to_int(element.get("r"), number + 1)
                if len(element):
                    self._read_row(element, number)
            elif element.tag == f"{_MAIN}col":
                if element.get("hidden") in ("1", "true"):
                    self._unseen.append((_to_int(element.get("min"), 0), _to_int(element.get("max"), 0)))
            elif span := _read_range(element.get("ref", "")):
                merged.append(span)
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
        return self._tables(merged)

    def _read_row(self, element: Any, number: int) -> None:
        column = 0
        hides = element.get("hidden") in ("1", "true") and not keep_hidden_text()
        for cell in element.iterchildren(f"{_MAIN}c"):
            place = _PLACE.fullmatch(cell.get("r", ""))
            column = _column_number(place[1]) if place else column + 1
            text = normalize_text(self._value(cell)).strip() if len(cell) else ""
            if not text:
                if self.whole and cell.find(f"{_MAIN}f") is not None and not cell.findtext(f"{_MAIN}v"):
                    raise DocumentError(self.source, f"cell {cell.get('r')} has a formula without its result; open "
                                                     "the file in a spreadsheet program and save it")
                continue
            text = text if self.whole else " ".join(text.split())
            if hides or (not keep_hidden_text() and any(first <= column <= last for first, last in self._unseen)):
                self.hidden += len(text)
                self._passed.add(number)
                continue
            self.left -= 1
            if self.left < 0:
                raise DocumentError(self.source, f"more than the limit of {MAX_CELLS:,} cells")
            self.rows.setdefault(number, {})[column] = Cell(text)

    def _value(self, cell: Any) -> str:
        """Return the value of a cell as the sheet shows it."""
        kind, value = cell.get("t", "n"), cell.findtext(f"{_MAIN}v") or ""
        code = self._format(cell.get("s", "0"))
        if kind == "inlineStr":
            inside = cell.find(f"{_MAIN}is")
            return "" if inside is None else format_text(_join_runs(inside), code)
        if kind == "s" and value:
            return format_text(self.strings[int(value)], code)
        if kind == "b":
            return {"1": "TRUE", "0": "FALSE"}.get(value, value)
        if kind != "n" or not value:
            return format_text(value, code) if kind == "str" else value.replace("T", " ") if kind == "d" else value
        shown = format_number(float(value), code, self._year_1904)
        self.hidden += 0 if shown else len(format_general(float(value)))
        return shown or (format_general(float(value)) if keep_hidden_text() else "")

    @property
    def _year_1904(self) -> bool:
        return bool(self.book.epoch.year == 1904)

    def _format(self, style: str) -> str:
        from openpyxl.styles.numbers import BUILTIN_FORMATS

        number = _to_int(style, 0)
        if number not in self._formats:
            styles, own = self.book._cell_styles, self.book._number_formats
            id = styles[number].numFmtId if number or styles else 0  # an unknown style is an error
            stated = own[id - 164] if 0 <= id - 164 < len(own) else "General"
            self._formats[number] = BUILTIN_FORMATS.get(id, stated)
        return self._formats[number]

    def _tables(self, merged: Sequence[tuple[int, int, int, int]]) -> list[list[Row]]:
        """Divide the rows where one is empty, and let merged cells cover the rows and columns that hold something."""
        numbers = sorted(self.rows)
        joined: set[int] = set()
        spans = [(span, cell) for span in merged if (cell := self.rows.get(span[1], {}).get(span[0])) is not None]
        for (_, first, _, last), _ in spans:
            joined.update(range(first, min(last, first + 1_000)))  # rows that the next one continues
        tables: list[list[int]] = []
        for before, number in zip([-1, *numbers], numbers, strict=False):
            gap = range(before + 1, number)
            if tables and (before in joined or (len(gap) <= len(self._passed) and self._passed.issuperset(gap))):
                tables[-1].append(number)
            else:
                tables.append([number])
        made: list[list[Row]] = []
        area = MAX_CELLS
        for table in tables:
            columns = sorted({column for number in table for column in self.rows[number]})
            for (left, top, right, bottom), cell in spans:
                if table[0] <= top <= table[-1]:
                    cell.columns = max(1, sum(left <= column <= right for column in columns))
                    cell.rows = max(1, sum(top <= number <= bottom for number in table))
                    area -= cell.columns * cell.rows
                    if area < 0:
                        cell.columns = cell.rows = 1
            place = {column: index for index, column in enumerate(columns)}
            made.append([{place[column]: cell for column, cell in self.rows[number].items()} for number in table])
            if len(columns) * len(table) > 2 * MAX_CELLS:
                raise DocumentError(self.source, f"a table of {len(table):,} rows and {len(columns):,} columns; its "
                                                 "cells are too far apart")
        return made


def _read_drawings(archive: ZipFile, part: str) -> Iterator[Event]:
    """Yield the text boxes and charts of a sheet."""
    for kind, name in read_relations(archive, part).values():
        if kind == "drawing" and name in archive.NameToInfo:
            root = parse_xml(archive.read(name))
            for text in read_paragraphs(root):
                yield from (Open("p"), normalize_text(text), Close("p"))
            related = read_relations(archive, name)
            for chart in root.iter(f"{C}chart"):
                _, target = related.get(chart.get(f"{R}id", ""), ("", ""))
                if target in archive.NameToInfo:
                    titles, rows = read_chart(parse_xml(archive.read(target)))
                    for text in titles:
                        yield from (Open("p"), normalize_text(text), Close("p"))
                    yield from write_table([{at: Cell(normalize_text(text)) for at, text in enumerate(row) if text}
                                             for row in rows])


def _read_range(text: str) -> tuple[int, int, int, int] | None:
    """Return first column, first row, last column and last row of a range, as in `B1:D2`."""
    first, _, last = text.partition(":")
    begin, end = _PLACE.fullmatch(first), _PLACE.fullmatch(last or first)
    return (_column_number(begin[1]), int(begin[2]), _column_number(end[1]), int(end[2])) if begin and end else None


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number


def _to_int(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 9 else otherwise
