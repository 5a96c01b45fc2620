"""Find rows of aligned text: lines at the same height of a page, and regions where they form a table."""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragbed.documents.numbers import SIGNS, UNITS, is_number, join_unit
from ragbed.documents.parsers.pdf_lines import Box, PdfLine, bounding_box

Extent = tuple[float, float]

_SHORT = 30
_PROSE = 40
_ANNOUNCES = 70
_VERB = re.compile(r"\b(?:is|are|was|were|follows?|following)\b")
_GAP = 2.2
_SECTION = re.compile(r"[A-Z]?\d{0,2}(?:\.\d{1,2}){0,3}\.?")  # the number of a heading
_SECTION_GAP = 2.5
_HEADS = 4
_LABELS = 2


@dataclass(frozen=True, slots=True)
class TextRow:
    """Lines at one height, from left to right."""

    cells: tuple[PdfLine, ...]

    @property
    def box(self) -> Box:
        return bounding_box(cell.box for cell in self.cells)

    def numeric(self) -> bool:
        """Return whether a cell after the first is a number."""
        return any(is_number(cell.value) for cell in self.cells[1:])

    def tabular(self) -> bool:
        """Return whether this looks like a table row: several cells, numeric or short."""
        return len(self.cells) > 1 and (self.numeric() or all(len(cell.text) <= _SHORT for cell in self.cells))


def make_rows(lines: Sequence[PdfLine]) -> list[TextRow]:
    """Return the rows of a page from top to bottom. Separate currency signs and brackets join their number."""
    groups: list[list[PdfLine]] = []
    for line in sorted(lines, key=lambda line: (line.box[1] + line.box[3], line.box[0])):
        if groups and _level(groups[-1][0], line):
            groups[-1].append(line)
        else:
            groups.append([line])
    return [TextRow(tuple(_joined(sorted(group, key=lambda line: line.box[0])))) for group in groups]


def _level(first: PdfLine, line: PdfLine) -> bool:
    shared = min(first.box[3], line.box[3]) - max(first.box[1], line.box[1])
    return shared > 0.55 * min(first.height, line.height)


def _joined(cells: list[PdfLine]) -> list[PdfLine]:
    result: list[PdfLine] = []
    for cell in cells:
        last = result[-1] if result else None
        if last and ((last.text in SIGNS and (is_number(cell.value) or cell.text in SIGNS))
                     or (cell.text in UNITS and is_number(last.value))):
            sign = last.sign if cell.text in UNITS else cell.box[0] - last.box[0]
            result[-1] = replace(last, text=join_unit(last.text, cell.text),
                                 box=bounding_box((last.box, cell.box)), sign=sign)
        elif last and len(result) == 1 and last.bold and cell.bold and _SECTION.fullmatch(last.text) and (
                cell.box[0] - last.box[2] < _SECTION_GAP * cell.size):
            result[-1] = replace(last, text=f"{last.text} {cell.text}", box=bounding_box((last.box, cell.box)))
        else:
            result.append(cell)
    return result


def merge_extents(extents: Iterable[Extent], slack: float) -> list[Extent]:
    """Join horizontal extents that overlap by more than `slack`. A negative `slack` joins across smaller gaps."""
    merged: list[Extent] = []
    for x0, x1 in sorted(extents):
        if merged and x0 < merged[-1][1] - slack:
            merged[-1] = (merged[-1][0], max(merged[-1][1], x1))
        else:
            merged.append((x0, x1))
    return merged


def find_table_regions(rows: Sequence[TextRow]) -> list[tuple[int, int, int]]:
    """Return first header row, first body row and end of each table.
    
    A table is a run of tabular rows, with few single labels between them and usually two or more rows with numbers.
    Columns of prose are not tables.
    """
    regions: list[tuple[int, int, int]] = []
    start = 0
    while start < len(rows):
        end = _run(rows, start)
        if end - start >= 2 and _is_table(rows[start:end]):
            floor = regions[-1][2] if regions else 0
            regions.append((_heads(rows, start, end, floor), start, end))
            start = end
        else:
            start = max(start + 1, end)
    return regions


def _run(rows: Sequence[TextRow], start: int) -> int:
    if not rows[start].tabular():
        return start
    end = index = start + 1
    left = rows[start].cells[1].box[0]
    while index < len(rows) and _near(rows[index - 1], rows[index]):
        row = rows[index]
        if row.tabular():
            end = index + 1
            left = min(left, row.cells[1].box[0])
        elif len(row.cells) > 1 or not _labels(rows[end:index + 1]) or _sentence(row.cells[0], left):
            break
        index += 1
    return end


def _labels(rows: Sequence[TextRow]) -> bool:
    """Return whether single-cell rows can be labels within a table: at most `_LABELS`, or one more if all are short."""
    lengths = [len(row.cells[0].text) for row in rows]
    return max(lengths) <= 3 * _PROSE if len(rows) <= _LABELS else len(rows) == _LABELS + 1 and max(lengths) <= _SHORT


def _sentence(line: PdfLine, left: float) -> bool:
    """Return whether a line is text between tables: it announces a table, or is long and reaches the value columns."""
    length = len(line.text)
    announces = length > _ANNOUNCES and line.text.endswith(":") and _VERB.search(line.text) is not None
    return announces or (length > 2 * _PROSE and line.box[2] > left)


def _near(above: TextRow, below: TextRow) -> bool:
    return below.box[1] - above.box[3] < _GAP * max(above.box[3] - above.box[1], below.box[3] - below.box[1])


def _is_table(rows: Sequence[TextRow]) -> bool:
    several = [row for row in rows if len(row.cells) > 1]
    prose = sum(sum(len(cell.text) > _PROSE for cell in row.cells) > 1 for row in several)
    return _enough(several) and prose * 3 < len(several)


def _enough(rows: Sequence[TextRow]) -> bool:
    """Return whether two rows have numbers, or the last row has, below a row with about as many titles."""
    numeric = [row for row in rows if row.numeric()]
    titled = any(len(row.cells) >= len(numeric[-1].cells) - 1 >= 2 for row in rows[:-1]) if numeric else False
    return len(numeric) >= 2 or (titled and numeric[-1] is rows[-1])


def _heads(rows: Sequence[TextRow], start: int, end: int, floor: int) -> int:
    left = min(row.cells[1].box[0] for row in rows[start:end] if len(row.cells) > 1)
    while start > floor and end - start < 400 and _near(rows[start - 1], rows[start]):
        cells = rows[start - 1].cells
        beside = all(cell.box[2] > left and len(cell.text) <= 2 * _PROSE for cell in cells[1:] or cells)
        if not beside or (len(cells) == 1 and cells[0].box[0] < left - 40):
            break
        start -= 1
        floor = max(floor, start - _HEADS)
    return start
