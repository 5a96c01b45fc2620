"""Tables of PDF pages: from ruling lines where there is a grid, else from aligned text.

Filings hardly ever rule their tables: over eight pages of Adobe's 10-K MuPDF's `find_tables` finds none, and on
others it takes shaded rows for cells, at up to 0.1 s a page. So it is asked only on pages with a drawn grid; all
other tables are found in the text itself, by `rows.table_regions`.
"""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from documents.pdf.lines import Box, Line, bounds
from documents.pdf.rows import TextRow, is_number, rows_of, table_regions
from documents.renderings.events import normalised

_RULES = 3
_SLACK = 1.5


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell's text and how many columns and rows it covers."""

    text: str
    columns: int = 1
    rows: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `heads` of its rows are its header."""

    rows: list[list[TableCell]]
    heads: int
    box: Box


@dataclass(frozen=True, slots=True)
class Grid:
    """A drawn table: the boxes of its cells by row, and MuPDF's own text for them."""

    cells: list[list[tuple[Box, str]]]
    box: Box

    def filled(self, lines: Sequence[Line], join: Callable[[list[Line]], str]) -> Table:
        """The table with its text.

        The text is taken from whole lines, since MuPDF's joins Korean words and moves their commas; where a line
        runs across a border, MuPDF's is right.
        """
        own = not any(_crosses(line.box, box) for line in lines for row in self.cells for box, _ in row
                      if inside(line.box, box))
        lefts = sorted({round(box[0]) for row in self.cells for box, _ in row})
        tops = sorted({round(box[1]) for row in self.cells for box, _ in row})
        rows = [[TableCell(join([line for line in lines if inside(line.box, box)]) if own else text,
                           _covered(lefts, box[0], box[2]), _covered(tops, box[1], box[3])) for box, text in row]
                for row in self.cells]
        return Table(rows, 1, self.box)


def _crosses(line: Box, cell: Box) -> bool:
    return line[2] > cell[2] + 3 or line[0] < cell[0] - 3


def drawn_grids(page: Any) -> list[Grid]:
    """Tables of a page that draws a grid of lines."""
    if not _has_grid(page.get_drawings()):
        return []
    found = page.find_tables(strategy="lines_strict", use_layout=False).tables
    return [grid for raw in found if (grid := _grid(raw)) is not None]


def _has_grid(drawings: Iterable[dict[str, Any]]) -> bool:
    across: set[int] = set()
    down: set[int] = set()
    for drawing in drawings:
        rect = drawing["rect"]
        width, height = rect.x1 - rect.x0, rect.y1 - rect.y0
        stroked = drawing["type"] != "f"
        if height < 2 < width or (stroked and width > 10):
            across.add(round(rect.y0))
        if width < 2 < height or (stroked and height > 5):
            down.add(round(rect.x0))
    return len(across) >= _RULES and len(down) >= _RULES


def _grid(raw: Any) -> Grid | None:
    texts = raw.extract()
    if len(texts) < 2 or raw.col_count < 2 or sum(bool(text) for line in texts for text in line) < 4:
        return None
    cells = [[(tuple(box), normalised(text or "").strip()) for box, text in zip(row.cells, line, strict=True) if box]
             for row, line in zip(raw.rows, texts, strict=True)]
    return Grid([row for row in cells if row], tuple(raw.bbox))


def _covered(starts: list[int], low: float, high: float) -> int:
    return max(1, bisect_left(starts, round(high) - 1) - bisect_left(starts, round(low)))


def aligned_tables(lines: Sequence[Line]) -> list[tuple[Table, list[Box]]]:
    """Tables that only their alignment shows, each with the boxes of the lines that it took."""
    rows = rows_of(lines)
    result: list[tuple[Table, list[Box]]] = []
    for head, start, end in table_regions(rows):
        columns = _columns(rows[start:end])
        if len(columns) < 2:
            continue
        cells = [_spread(row, columns) for row in rows[head:start]]
        cells += _unwrapped([_placed(row, columns) for row in rows[start:end]])
        heads = start - head or _unnumbered(rows[start:end])
        taken = [cell.box for row in rows[head:end] for cell in row.cells]
        result.append((Table(cells, heads, bounds(taken)), taken))
    return result


def _unnumbered(rows: Sequence[TextRow]) -> int:
    """Rows at the top that hold titles: no numbers but years."""
    count = 0
    for row in rows[:4]:
        numbers = [cell.text for cell in row.cells[1:] if is_number(cell.text)]
        if any(not _year(text) for text in numbers) or (len(row.cells) == 1 and count):
            break
        count += 1
    return count if count < len(rows) else 0


def _year(text: str) -> bool:
    return text.isdecimal() and 1900 <= int(text) <= 2100


def _columns(rows: Sequence[TextRow]) -> list[tuple[float, float]]:
    """The horizontal extents of the columns: what the cells of rows with several cells cover together."""
    extents = sorted((cell.box[0], cell.box[2]) for row in rows if len(row.cells) > 1 for cell in row.cells)
    merged: list[tuple[float, float]] = []
    for x0, x1 in extents:
        if merged and x0 < merged[-1][1] - _SLACK:
            merged[-1] = (merged[-1][0], max(merged[-1][1], x1))
        else:
            merged.append((x0, x1))
    return merged


def _placed(row: TextRow, columns: list[tuple[float, float]]) -> list[TableCell]:
    texts = [""] * len(columns)
    for cell in row.cells:
        index = _nearest(cell.box, columns)
        texts[index] = f"{texts[index]} {cell.text}".strip()
    return [TableCell(text) for text in texts]


def _nearest(box: Box, columns: list[tuple[float, float]]) -> int:
    def distance(index: int) -> tuple[float, float]:
        x0, x1 = columns[index]
        return -max(0.0, min(x1, box[2]) - max(x0, box[0])), abs((x0 + x1) / 2 - (box[0] + box[2]) / 2)

    return min(range(len(columns)), key=distance)


def _spread(row: TextRow, columns: list[tuple[float, float]]) -> list[TableCell]:
    """A header row; titles that stand over several columns each cover them."""
    values = columns[1:]
    count = len(row.cells)
    if count < len(values) and len(values) % count == 0 and row.cells[0].box[0] > columns[0][0] + 20:
        each = len(values) // count
        groups = [values[index * each:(index + 1) * each] for index in range(count)]
        if all(_over(cell.box, group) for cell, group in zip(row.cells, groups, strict=True)):
            return [TableCell(""), *(TableCell(cell.text, each) for cell in row.cells)]
    return _placed(row, columns)


def _over(box: Box, group: list[tuple[float, float]]) -> bool:
    low, high = group[0][0], group[-1][1]
    return abs((box[0] + box[2]) / 2 - (low + high) / 2) < 0.2 * (high - low)


def _unwrapped(rows: list[list[TableCell]]) -> list[list[TableCell]]:
    """Labels of two lines, whose numbers stand beside the second, in one row."""
    result: list[list[TableCell]] = []
    for row in rows:
        above = result[-1] if result else None
        label = row[0].text
        if above and label[:1].islower() and above[0].text and not any(cell.text for cell in above[1:]):
            result[-1] = [TableCell(_spaced(above[0].text, label)), *row[1:]]
        else:
            result.append(row)
    return result


def _spaced(above: str, below: str) -> str:
    return above + below if above.endswith("-") else f"{above} {below}"


def inside(box: Box, outer: Box) -> bool:
    """Whether the middle of `box` lies in `outer`."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return outer[0] <= x <= outer[2] and outer[1] <= y <= outer[3]
