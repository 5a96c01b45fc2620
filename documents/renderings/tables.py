"""Table cells to pipe tables that stay readable, or to paragraphs where a table only lays out a page."""
from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby, takewhile

_WIDEST = 200
_REPEATED = 120
_CURRENCY = frozenset({"$", "€", "£", "¥", "₩", "US$", "(", "$(", "($"})
_UNITS = frozenset({")", "%", ")%", "%)", "bps", "pts"})


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as it was written.

    Attributes:
        nested: whether it holds a table or a long list of its own.
    """

    blocks: list[str]
    header: bool = False
    columns: int = 1
    rows: int = 1
    nested: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A row's cells; `header` for rows of a `thead`."""

    header: bool = False
    cells: list[Cell] = field(default_factory=list)

    def heads(self) -> bool:
        """Whether the row is part of the table's header."""
        return self.header or (bool(self.cells) and all(cell.header for cell in self.cells))


def write_table(rows: list[Row]) -> list[str]:
    """The table as blocks of text: one pipe table, or the cells in order if it is used for layout.

    A spanned cell is written in each row that it spans and, in header rows, in each column. Columns and rows
    without text are left out; a lone currency sign, bracket or per cent sign joins its number. A row that
    holds a table or a long list in a cell is written as its blocks.
    """
    blocks: list[str] = []
    for nested, group in groupby((row for row in rows if row.cells), lambda row: any(c.nested for c in row.cells)):
        if nested:
            blocks += [block for row in group for cell in row.cells for block in cell.blocks]
        else:
            blocks += _pipes(list(group))
    return blocks


def _pipes(rows: list[Row]) -> list[str]:
    heads = len(list(takewhile(Row.heads, rows)))
    written = [(index < heads, _joined(line)) for index, line in enumerate(_grid(rows, heads))]
    written = _without_empty([(head, line) for head, line in written if any(line)])
    if not written:
        return []
    if len(written[0][1]) == 1:
        return [line[0] for _, line in written]
    return ["\n".join(_lines(written))]


def _grid(rows: list[Row], heads: int) -> list[list[str]]:
    """Texts by row and column, with spans expanded."""
    width = min(max((sum(min(cell.columns, _WIDEST) for cell in row.cells if cell.columns) for row in rows),
                    default=0), max(_WIDEST, max((len(row.cells) for row in rows), default=0)))
    below: dict[int, tuple[int, str]] = {}
    grid: list[list[str]] = []
    for index, row in enumerate(rows):
        line: list[str] = []
        cells = iter(row.cells)
        while True:
            left, text = below.pop(len(line), (0, ""))
            if left:
                if left > 1:
                    below[len(line)] = (left - 1, text)
                line.append(text)
                continue
            cell = next(cells, None)
            if cell is None:
                if any(column > len(line) for column in below):
                    line.append("")
                    continue
                break
            _place(cell, line, below, index < heads, width)
        grid.append(line)
    return grid


def _place(cell: Cell, line: list[str], below: dict[int, tuple[int, str]], head: bool, width: int) -> None:
    text = " ".join(" ".join(cell.blocks).split()).replace("|", "\\|")
    for offset in range(max(1, min(cell.columns, width))):
        shown = text if offset == 0 or (head and len(text) <= _REPEATED) else ""
        if cell.rows > 1:
            below[len(line)] = (cell.rows - 1, shown if len(text) <= _REPEATED else "")
        line.append(shown)


def _joined(line: list[str]) -> list[str]:
    """Lone signs joined to the number that they belong to."""
    line = list(line)
    for index in range(len(line) - 1):
        if line[index] in _CURRENCY and line[index + 1]:
            line[index + 1] = line[index] + line[index + 1]
            line[index] = ""
    for index in range(len(line) - 1, 0, -1):
        if line[index] in _UNITS and line[index - 1]:
            line[index - 1] += line[index]
            line[index] = ""
    return line


def _without_empty(rows: list[tuple[bool, list[str]]]) -> list[tuple[bool, list[str]]]:
    width = max((len(line) for _, line in rows), default=0)
    padded = [(head, line + [""] * (width - len(line))) for head, line in rows]
    kept: list[int] = []
    for column in range(width):
        beside = [other for other in [*kept[-1:], column + 1] if other < width]
        if not _redundant(padded, column, beside):
            kept.append(column)
    return [(head, [line[column] for column in kept]) for head, line in padded]


def _redundant(rows: list[tuple[bool, list[str]]], column: int, beside: list[int]) -> bool:
    """Whether a column has no text but a title that a neighbour repeats."""
    if any(line[column] for head, line in rows if not head):
        return False
    titles = [line for head, line in rows if head and line[column]]
    return not titles or any(all(line[other] == line[column] for line in titles) for other in beside)


def _lines(rows: list[tuple[bool, list[str]]]) -> list[str]:
    lines = ["| " + " | ".join(line) + " |" for _, line in rows]
    heads = max(1, sum(head for head, _ in rows))
    lines.insert(heads, "|" + " --- |" * len(rows[0][1]))
    return lines
