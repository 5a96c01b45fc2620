"""Expand cells that span rows and columns, so that columns line up. The result has a maximum length."""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ragbed.documents.numbers import is_number, is_year

_WIDEST = 200
_REPEATED = 120
_BAR = 3
_SPARE = 500
_ITEM = re.compile(r"- |\d+\. ")
_NEXT_ITEM = re.compile(r"\n\s*(?:- |(?=\d+\. ))")


@dataclass(frozen=True, slots=True)
class HtmlCell:
    """A cell as written in HTML. `nested` tells whether it contains a table, and `listed` whether a long list."""

    blocks: list[str]
    header: bool = False
    columns: int = 1
    rows: int = 1
    nested: bool = False
    listed: bool = False

    def text(self) -> str:
        """Return the text on one line, with list items separated by semicolons."""
        blocks = (_NEXT_ITEM.sub("; ", block).removeprefix("- ") if _ITEM.match(block) else block
                  for block in self.blocks)
        return " ".join(" ".join(blocks).split()).replace("|", "\\|")


@dataclass(frozen=True, slots=True)
class HtmlRow:
    """A row of cells. `header` tells whether it is in a `thead`."""

    header: bool = False
    cells: list[HtmlCell] = field(default_factory=list)

    def heads(self) -> bool:
        """Return whether the row is part of the header: marked as such, or titles next to an empty corner cell."""
        if self.header or (bool(self.cells) and all(cell.header for cell in self.cells)):
            return True
        titles = [cell.text() for cell in self.cells[1:] if cell.blocks]
        return bool(titles) and not self.cells[0].blocks and all(
            is_year(title) or not is_number(title) for title in titles)


def max_padding(rows: Sequence[HtmlRow]) -> int:
    """Return the maximum length of the expanded table in characters, which depends on its text but not on spans."""
    return _SPARE + 3 * sum(len(block) + _BAR for row in rows for cell in row.cells for block in cell.blocks or [""])


Place = tuple[str, HtmlCell | None]
"""The text at a row and column, and the cell that covers it."""


def expand_cells(rows: Sequence[HtmlRow], heads: int) -> list[list[Place]]:
    """Return the text and cell at each row and column.

    The text of a spanning cell is repeated in each row and, in header rows, in each column. If the table then exceeds
    its maximum length, each text is written once and the rest of its span stays empty. If that is still too long, spans
    are ignored.
    """
    limit = max_padding(rows)
    for repeat in (True, False):
        grid = _Grid(rows, heads, repeat, limit).fill()
        if grid is not None:
            return grid
    return [[(cell.text(), cell) for cell in row.cells] for row in rows]


class _Grid:
    def __init__(self, rows: Sequence[HtmlRow], heads: int, repeat: bool, limit: int) -> None:
        self._rows, self._heads, self._repeat, self._left = rows, heads, repeat, limit
        widest = max((sum(min(cell.columns, _WIDEST) for cell in row.cells) for row in rows), default=0)
        self._width = min(widest, max(_WIDEST, max((len(row.cells) for row in rows), default=0)))
        self._below: dict[int, tuple[int, Place]] = {}

    def fill(self) -> list[list[Place]] | None:
        """Return the rows of the grid. None if they exceed the length limit."""
        grid: list[list[Place]] = []
        for index, row in enumerate(self._rows):
            line: list[Place] = []
            last = max(self._below, default=-1)
            for cell in row.cells:
                self._reach_down(line, until=None)
                self._place(cell, line, index < self._heads)
                if self._left < 0:
                    return None
            self._reach_down(line, until=last)
            if self._left < 0:
                return None
            grid.append(line)
        return grid

    def _reach_down(self, line: list[Place], until: int | None) -> None:
        """Continue the cells of rows above that span down: the next ones, or all up to column `until`."""
        while len(line) in self._below or (until is not None and len(line) <= until and self._left >= 0):
            column = len(line)
            left, place = self._below.pop(column, (0, ("", None)))
            if left > 1:
                self._below[column] = (left - 1, place)
            self._put(line, place)

    def _place(self, cell: HtmlCell, line: list[Place], head: bool) -> None:
        text = cell.text()
        again = text if self._repeat and len(text) <= _REPEATED else ""
        for offset in range(max(1, min(cell.columns, self._width))):
            shown = text if offset == 0 else again if head else ""
            if cell.rows > 1:
                self._below[len(line)] = (cell.rows - 1, (again if shown else "", cell))
            self._put(line, (shown, cell))
            if self._left < 0:
                return

    def _put(self, line: list[Place], place: Place) -> None:
        line.append(place)
        self._left -= len(place[0]) + _BAR
