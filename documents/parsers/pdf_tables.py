"""Find tables in the alignment of text, or in a grid of lines that the page draws.

Filings rarely draw lines around cells. On eight pages of Adobe's 10-K, MuPDF's `find_tables` finds no table; elsewhere
it mistakes shaded rows for cells, and takes up to 0.1 s a page. So it is used only on pages with a drawn grid.
"""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ragbed.documents.numbers import is_number, is_year
from ragbed.documents.parsers.clean_html import normalize_text
from ragbed.documents.parsers.pdf_lines import Box, PdfLine, bounding_box, turn_box
from ragbed.documents.parsers.pdf_rows import Extent, TextRow, find_table_regions, make_rows, merge_extents

_RULES = 3


@dataclass(frozen=True, slots=True)
class PdfCell:
    """A cell: its text, and how many columns and rows it spans."""

    text: str
    columns: int = 1
    rows: int = 1


@dataclass(frozen=True, slots=True)
class PdfTable:
    """A table. Its first `heads` rows are the header. `assumed` means that this is only a guess."""

    rows: list[list[PdfCell]]
    heads: int
    box: Box
    columns: tuple[Extent, ...]
    assumed: bool = False

    def continues(self, above: PdfTable) -> PdfTable:
        """Return this table, which begins a page, with the header of the table that ends the page before, if both have
        the same columns and this one has no header of its own."""
        header = above.rows[:above.heads]
        fits = len(self.columns) == len(above.columns) and all(
            max(left[0], right[0]) < min(left[1], right[1])
            for left, right in zip(self.columns, above.columns, strict=True))
        if not header or not fits:
            return self
        if _texts(self.rows[:above.heads]) == _texts(header):
            return replace(self, heads=above.heads, assumed=False)
        return replace(self, rows=header + self.rows, heads=above.heads, assumed=False) if (
            self.assumed or not self.heads) else self


def _texts(rows: Sequence[Sequence[PdfCell]]) -> list[list[str]]:
    return [[cell.text for cell in row] for row in rows]


@dataclass(frozen=True, slots=True)
class DrawnGrid:
    """A drawn table: the boxes of its cells by row, with the text that MuPDF finds in each."""

    cells: list[list[tuple[Box, str]]]
    box: Box

    def filled(self, lines: Sequence[PdfLine], join: Callable[[list[PdfLine]], str]) -> PdfTable:
        """Return the table with its text.
        
        The text comes from whole lines, since MuPDF joins Korean words and moves their commas. If a line crosses a
        border, MuPDF's text is used.
        """
        held = [(line.box, box) for line in lines for row in self.cells for box, _ in row if is_inside(line.box, box)]
        own = not any(line[2] > box[2] + 3 or line[0] < box[0] - 3 for line, box in held)
        lefts = sorted({round(box[0]) for row in self.cells for box, _ in row})
        tops = sorted({round(box[1]) for row in self.cells for box, _ in row})
        rows = [[PdfCell(join([line for line in lines if is_inside(line.box, box)]) if own else text,
                           _covered(lefts, box[0], box[2]), _covered(tops, box[1], box[3])) for box, text in row]
                for row in self.cells]
        held_rows = [[line for line in lines if any(is_inside(line.box, box) for box, _ in row)] for row in self.cells]
        ends = [*lefts[1:], self.box[2]]
        return PdfTable(rows, 1, self.box, tuple(zip(lefts, ends, strict=True)), not _stands_out(held_rows))

    def turned(self, turn: int, width: float, height: float) -> DrawnGrid:
        """Turn the table together with its page; see `turn_box`."""
        cells = [(turn_box(box, turn, width, height), "") for row in self.cells for box, _ in row]
        cells.sort(key=lambda cell: cell[0][1])
        rows = [sorted(row) for _, row in groupby(cells, lambda cell: round(cell[0][1]))]
        return DrawnGrid(rows, turn_box(self.box, turn, width, height))


    def crushes(self, lines: Sequence[PdfLine]) -> bool:
        """Return whether cells contain several rows of text, because only part of the grid is drawn."""
        held = [[line for line in lines if is_inside(line.box, box)] for row in self.cells for box, _ in row]
        return sum(len(row.cells) > 1 for cell in held for row in make_rows(cell)) > 1


def _stands_out(rows: Sequence[Sequence[PdfLine]]) -> bool:
    """Return whether the first row is a header: it alone is bold, or has no number where others have some."""
    bold = [all(line.bold for line in row) for row in rows if row]
    numbers = [any(is_number(line.value) for line in row) for row in rows if row]
    return any(first and 2 * sum(rest) < len(rest) for first, *rest in [bold] if rest) or any(
        not first and 2 * sum(rest) > len(rest) for first, *rest in [numbers] if rest)


def find_drawn_grids(page: Any, drawings: Iterable[dict[str, Any]]) -> list[DrawnGrid]:
    """Find the tables of a page that draws a grid of lines."""
    if not _has_grid(drawings):
        return []
    grids = []
    for raw in page.find_tables(strategy="lines_strict", use_layout=False).tables:
        texts = raw.extract()
        if len(texts) < 2 or raw.col_count < 2 or sum(bool(text) for line in texts for text in line) < 4:
            continue
        cells = [[(tuple(box), normalize_text(text or "").strip())
                  for box, text in zip(row.cells, line, strict=True) if box]
                 for row, line in zip(raw.rows, texts, strict=True)]
        grids.append(DrawnGrid([row for row in cells if row], tuple(raw.bbox)))
    return grids


def _has_grid(drawings: Iterable[dict[str, Any]]) -> bool:
    across: set[int] = set()
    down: set[int] = set()
    for drawing in drawings:
        x0, y0, x1, y1 = drawing["rect"]
        width, height = x1 - x0, y1 - y0
        stroked = drawing["type"] != "f"
        if height < 2 < width or (stroked and width > 10):
            across |= {round(y0), round(y1)} if stroked and height > 5 else {round(y0)}
        if width < 2 < height or (stroked and height > 5):
            down |= {round(x0), round(x1)} if stroked and width > 10 else {round(x0)}
    return len(across) >= _RULES and len(down) >= _RULES


def _covered(starts: list[int], low: float, high: float) -> int:
    return max(1, bisect_left(starts, round(high) - 1) - bisect_left(starts, round(low)))


def is_inside(box: Box, outer: Box) -> bool:
    """Return whether the middle of `box` is in `outer`."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return outer[0] <= x <= outer[2] and outer[1] <= y <= outer[3]


_SLACK = 1.5
_NEAR = 40.0
_LEAST = 0.12


def find_aligned_tables(lines: Sequence[PdfLine]) -> list[tuple[PdfTable, list[Box]]]:
    """Find tables by alignment. Return each with the boxes of its lines."""
    rows = make_rows(lines)
    result: list[tuple[PdfTable, list[Box]]] = []
    for head, start, end in find_table_regions(rows):
        columns = _columns(rows[start:end])
        if len(columns) < 2:
            continue
        body = start + _unnumbered(rows[start:end])
        cells = [_spread(row, columns) for row in rows[head:body]]
        cells += _unwrapped([(row.box, _placed(row, columns)) for row in rows[body:end]])
        taken = [cell.box for row in rows[head:end] for cell in row.cells]
        result.append((PdfTable(cells, body - head, bounding_box(taken), tuple(columns)), taken))
    return result


def _unnumbered(rows: Sequence[TextRow]) -> int:
    count = 0
    for row in rows[:4]:
        numbers = [cell.text for cell in row.cells[1:] if is_number(cell.value)]
        if any(not is_year(text) for text in numbers) or len(row.cells) == 1:
            break
        count += 1
    return count if count < len(rows) else 0


def _columns(rows: Sequence[TextRow]) -> list[Extent]:
    """Return the horizontal extents of the columns.
    
    Numbers define the columns. Text may add columns but not join two, since a label or title may span several.
    """
    cells = [cell for row in rows if len(row.cells) > 1 for cell in row.cells]
    columns = merge_extents(((_core(cell)[0], cell.box[2]) for cell in cells if is_number(cell.value)), _SLACK)
    texts = [(cell.box[0], _clipped(cell.box, columns)) for cell in cells if not is_number(cell.value)]
    for x0, x1 in sorted(texts, key=lambda extent: extent[1] - extent[0]):
        if not any(x0 < right - _SLACK and left < x1 - _SLACK for left, right in columns):
            columns = sorted([*columns, (x0, x1)])
    return _complemented(rows, columns)


def _complemented(rows: Sequence[TextRow], columns: Sequence[Extent]) -> list[Extent]:
    """Join neighbouring columns that are never filled in the same row, such as a centred year above its numbers."""
    filled: list[set[int]] = [set() for _ in columns]
    for number, row in enumerate(rows):
        for cell in row.cells if len(row.cells) > 1 else ():
            filled[_nearest(_core(cell), columns)].add(number)
    result: list[Extent] = []
    held: set[int] = set()
    for extent, at in zip(columns, filled, strict=True):
        if result and not held & at and extent[0] - result[-1][1] < _NEAR:
            result[-1] = (result[-1][0], extent[1])
            held |= at
        else:
            result.append(extent)
            held = set(at)
    return result


def _core(cell: PdfLine) -> Box:
    return cell.box[0] + cell.sign, cell.box[1], cell.box[2], cell.box[3]


def _clipped(box: Box, columns: Sequence[Extent]) -> float:
    return min([box[2], *(left for left, _ in columns if left > box[0])])


def _placed(row: TextRow, columns: Sequence[Extent]) -> list[PdfCell]:
    texts = [""] * len(columns)
    for number, cell in enumerate(row.cells):
        box = _core(cell) if number else (cell.box[0], cell.box[1], _clipped(cell.box, columns[1:]), cell.box[3])
        index = _nearest(box, columns)
        texts[index] = f"{texts[index]} {cell.text}".strip()
    return [PdfCell(text) for text in texts]


def _nearest(box: Box, columns: Sequence[Extent]) -> int:
    def distance(index: int) -> tuple[float, float]:
        x0, x1 = columns[index]
        return -max(0.0, min(x1, box[2]) - max(x0, box[0])), abs((x0 + x1) / 2 - (box[0] + box[2]) / 2)

    return min(range(len(columns)), key=distance)


def _spread(row: TextRow, columns: Sequence[Extent]) -> list[PdfCell]:
    values = columns[1:]
    first = row.cells[0]
    label = first.text if first.text.startswith("(") and first.box[0] <= columns[0][0] + 20 else ""
    titles = row.cells[1:] if label else row.cells
    count = len(titles)
    several = count > 1 or (count == 1 and _stands_over(titles[0], values))
    if several and titles[0].box[0] > columns[0][0] + 20 and count < len(values) and len(values) % count == 0:
        each = len(values) // count
        groups = [values[index * each:(index + 1) * each] for index in range(count)]
        if all(abs(cell.box[0] + cell.box[2] - group[0][0] - group[-1][1]) < 0.4 * (group[-1][1] - group[0][0])
               for cell, group in zip(titles, groups, strict=True)):
            return [PdfCell(label), *(PdfCell(cell.text, each) for cell in titles)]
    return _placed(row, columns)


def _stands_over(title: PdfLine, group: Sequence[Extent]) -> bool:
    wide = title.box[2] - title.box[0] > _LEAST * (group[-1][1] - group[0][0]) if group else False
    return wide or is_year(title.text) or title.text.startswith("(")


def _unwrapped(rows: Sequence[tuple[Box, list[PdfCell]]]) -> list[list[PdfCell]]:
    """Join a label of two lines into one row, if its numbers are next to the second line or between both."""
    result: list[list[PdfCell]] = []
    bottom = 0.0
    for box, row in rows:
        above = result[-1] if result else None
        label = row[0].text
        alone = above is not None and above[0].text and not any(cell.text for cell in above[1:])
        if above and alone and (label[:1].islower() or (not label and box[1] < bottom)):
            space = "" if above[0].text.endswith("-") else " "
            result[-1] = [PdfCell(f"{above[0].text}{space}{label}".strip()), *row[1:]]
        else:
            result.append(row)
        bottom = box[3]
    return result
