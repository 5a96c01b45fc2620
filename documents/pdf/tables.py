"""Tables, and those of them that a page draws as a grid of lines.

Filings hardly ever rule their tables: on eight pages spread over Adobe's 10-K MuPDF's `find_tables` finds none, and
in others it takes shaded rows for cells, at up to 0.1 s a page. So it is asked only on pages with a drawn grid;
all other tables are found in the text itself, by `documents.pdf.aligned`.
"""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from documents.pdf.lines import Box, Line
from documents.pdf.rows import rows_of
from documents.renderings.events import normalised

_RULES = 3


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


    def crushes(self, lines: Sequence[Line]) -> bool:
        """Whether its cells hold rows of their own: then only part of the table's grid is drawn."""
        held = [[line for line in lines if inside(line.box, box)] for row in self.cells for box, _ in row]
        return sum(len(row.cells) > 1 for cell in held for row in rows_of(cell)) > 1


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


def inside(box: Box, outer: Box) -> bool:
    """Whether the middle of `box` lies in `outer`."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return outer[0] <= x <= outer[2] and outer[1] <= y <= outer[3]
