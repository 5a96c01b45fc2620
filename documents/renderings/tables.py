"""Table cells to pipe tables that stay readable, or to paragraphs where a table only lays out a page."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby, takewhile

from documents.numbers import with_signs
from documents.renderings.grid import Row, allowance, expanded

Line = tuple[bool, list[str]]


def write_table(rows: Sequence[Row]) -> list[str]:
    """The table as blocks of text: one pipe table, or the cells in order if it is used for layout.

    Columns and rows without text are left out; a lone currency sign, bracket or per cent sign joins its number.
    A row that holds a table in a cell, and the only row of a table with a long list in it, is written as its
    blocks. A table without a header gets an empty one, since pipe tables must have one.
    """
    filled = [row for row in rows if row.cells]
    blocks: list[str] = []
    for layout, group in groupby(filled, lambda row: _lays_out(row, len(filled))):
        if layout:
            blocks += [block for row in group for cell in row.cells for block in cell.blocks]
        else:
            blocks += _pipes(list(group))
    return blocks


def _lays_out(row: Row, rows: int) -> bool:
    return any(cell.nested or (rows == 1 and cell.listed) for cell in row.cells)


def _pipes(rows: list[Row]) -> list[str]:
    heads = len(list(takewhile(Row.heads, rows)))
    written = [(index < heads, line if index < heads else with_signs(line))
               for index, line in enumerate(expanded(rows, heads))]
    lines, width = _without_empty([(head, line) for head, line in written if any(line)])
    if width < 2:
        return [line[0] for _, line in lines]
    return ["\n".join(_lines(lines, width, allowance(rows)))]


def _without_empty(rows: list[Line]) -> tuple[list[Line], int]:
    """The rows without the columns that have no text but a title that a neighbour repeats, and their width."""
    width = max((len(line) for _, line in rows), default=0)
    filled = {column for head, line in rows if not head for column, text in enumerate(line) if text}
    titles: dict[int, dict[int, str]] = defaultdict(dict)
    for number, (head, line) in enumerate(rows):
        for column, text in enumerate(line if head else ()):
            if text:
                titles[column][number] = text
    kept: list[int] = []
    for column in range(width):
        beside = [*kept[-1:], column + 1]
        if column in filled or (column in titles and not any(
                titles[column].items() <= titles[other].items() for other in beside)):
            kept.append(column)
    keeping = set(kept)
    return [(head, [text for column, text in enumerate(line) if column in keeping]) for head, line in rows], len(kept)


def _lines(rows: list[Line], width: int, limit: int) -> list[str]:
    """Short rows are filled up with empty cells, as long as that does not swell the table."""
    heads = [line for head, line in rows if head] or [[""] * width]
    body = [line for head, line in rows if not head]
    fill = sum(width - len(line) for _, line in rows) * 3 <= limit
    lines = ["| " + " | ".join(line + [""] * (width - len(line) if fill else 0)) + " |" for line in [*heads, *body]]
    lines.insert(len(heads), "|" + " --- |" * width)
    return lines
