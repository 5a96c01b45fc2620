"""Apply a writer's plan of edits to a table by program, so that the edited table is known exactly."""
from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.numbers import find_values, is_number, is_year
from ragbed.experiments.guests.construct.stages import Dropped
from ragbed.experiments.guests.formats.document_tables import SourceTable
from ragbed.experiments.metrics.matching import contains_answer
from ragbed.strategies.normalizing import normalize_values


class TableEdit(BaseModel):
    """One edit of a plan.

    Attributes:
        row: counted from 1, for `relate` and `reword`.
        other: for `relate`, the row whose value the new text refers to.
        digits: for `round`, number of digits after the decimal point.
        text: for `reword`, the new text.
    """

    action: Literal["drop", "round", "relate", "reword"]
    skill: Literal["multi-hop", "numeric", "temporal", "information_aggregation", "soft_reasoning"]
    column: str
    row: int = 0
    other: int = 0
    digits: int = Field(default=0, ge=0, le=6)
    text: str = ""


_MAX_DIGITS = 20  # maximum characters of a number to round
_ORDER = ("drop", "round", "relate", "reword")


class Hidden(BaseModel):
    """A value that an edit hides, and the texts that a document must have instead. Rows are counted from 0."""

    row: int
    column: str
    value: str
    replaced_by: tuple[str, ...]


class Grid(BaseModel):
    """A table during the edits. `named` is the column that names the rows."""

    model_config = ConfigDict(frozen=True)

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    named: str
    hidden: tuple[Hidden, ...] = ()

    def cell(self, row: int, column: str) -> str:
        """Return the text of a cell; rows are counted from 0."""
        return self.rows[row][self.header.index(column)]

    def pipes(self) -> str:
        """Return the table as text, with bars between cells and row numbers from 1."""
        lines = [("index", *self.header), *((str(number), *row) for number, row in enumerate(self.rows, 1))]
        return "\n".join(f"|{'|'.join(line)}|" for line in lines)


def make_grid(table: SourceTable) -> Grid | None:
    """Return a document's table without rows of a single cell. The column with the most distinct texts names the rows.
    Return None if no column can, or if two columns have the same title."""
    header = tuple(_clean_cell(title) or f"column {number}" for number, title in enumerate(table.header, 1))
    rows = tuple(row for source in table.rows if sum(map(bool, row := tuple(
        _clean_cell(cell.text) for cell in source.cells))) > 1)
    columns = [column for column in zip(*rows, strict=True) if all(column) and not any(map(is_number, column))]
    if not columns or len(set(header)) < len(header):
        return None
    named = list(zip(*rows, strict=True)).index(max(columns, key=lambda column: len(set(column))))
    return Grid(header=header, rows=rows, named=header[named])


def _clean_cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def parse_number(text: str) -> Decimal | None:
    """Return the value of a text that consists of one number, or None."""
    found = find_values(text)
    return found[0].number if len(found) == 1 and found[0].start == 0 and found[0].end == len(text) else None


def apply_plan(grid: Grid, edits: Sequence[TableEdit]) -> Grid:
    """Apply the edits of a plan: drop columns, round numbers, express values relative to other rows, and reword. Raises
    Dropped if an edit does not fit the table, or nothing changes."""
    before = grid
    for edit in sorted(edits, key=lambda one: _ORDER.index(one.action)):
        if edit.column not in grid.header:
            raise Dropped("an edit names a column that does not exist")
        if edit.action in ("relate", "reword") and not 1 <= edit.row <= len(grid.rows):
            raise Dropped("an edit names a row that does not exist")
        grid = _APPLY[edit.action](grid, edit)
    if grid == before:
        raise Dropped("its edits change nothing")
    return grid


def _drop(grid: Grid, edit: TableEdit) -> Grid:
    if edit.column == grid.named or len(grid.header) == 2:
        raise Dropped("an edit drops the column that names the rows")
    at = grid.header.index(edit.column)
    return grid.model_copy(update={"header": (*grid.header[:at], *grid.header[at + 1:]),
                                   "rows": tuple((*row[:at], *row[at + 1:]) for row in grid.rows)})


def _round(grid: Grid, edit: TableEdit) -> Grid:
    at = grid.header.index(edit.column)
    if edit.column == grid.named or not any(map(parse_number, (row[at] for row in grid.rows))):
        raise Dropped("an edit rounds a column without numbers")
    for place, row in enumerate(grid.rows):
        value = parse_number(row[at])
        if value is not None and f"{value:f}" == row[at].replace(",", "") and len(row[at]) <= _MAX_DIGITS:
            rounded = value.quantize(Decimal(1).scaleb(-edit.digits), ROUND_HALF_UP)
            grid = grid if rounded == value else _set_cell(grid, place, edit.column, f"{rounded:f}")
    return grid


def _relate(grid: Grid, edit: TableEdit) -> Grid:
    if not 1 <= edit.other <= len(grid.rows) or edit.other == edit.row:
        raise Dropped("an edit names a row that does not exist")
    own, other = (grid.cell(row - 1, edit.column) for row in (edit.row, edit.other))
    ours, theirs = parse_number(own), parse_number(other)
    if ours is None or theirs is None:
        raise Dropped("an edit relates a value that is not a number")
    name = grid.cell(edit.other - 1, grid.named)
    if sum(row[grid.header.index(grid.named)] == name for row in grid.rows) > 1:
        raise Dropped("an edit relates to a row whose name another row has")
    apart = f"{abs(ours - theirs):f}"
    if ours == theirs:
        return _hide(grid, edit, f"the same as that of {name}", (name,))
    if is_year(own) and is_year(other):
        text = f"{apart} years {'later' if ours > theirs else 'earlier'} than that of {name}"
    else:
        text = f"{apart} {'more' if ours > theirs else 'less'} than that of {name}"
    return _hide(grid, edit, text, (apart, name))


def _reword(grid: Grid, edit: TableEdit) -> Grid:
    text, own = _clean_cell(edit.text), grid.cell(edit.row - 1, edit.column)
    if not text or contains_value(own, text):
        raise Dropped("an edit's new text contains the value that it hides")
    return _hide(grid, edit, text, ())


def _hide(grid: Grid, edit: TableEdit, text: str, replaced_by: tuple[str, ...]) -> Grid:
    row, value = edit.row - 1, grid.cell(edit.row - 1, edit.column)
    if any((one.row, one.column) == (row, edit.column) for one in grid.hidden):
        raise Dropped("two edits change the same value")
    hidden = Hidden(row=row, column=edit.column, value=value, replaced_by=replaced_by)
    return _set_cell(grid, row, edit.column, text).model_copy(update={"hidden": (*grid.hidden, hidden)})


def _set_cell(grid: Grid, row: int, column: str, text: str) -> Grid:
    at = grid.header.index(column)
    changed = (*grid.rows[row][:at], text, *grid.rows[row][at + 1:])
    return grid.model_copy(update={"rows": (*grid.rows[:row], changed, *grid.rows[row + 1:])})


_APPLY = {"drop": _drop, "round": _round, "relate": _relate, "reword": _reword}


def describe_plan(edits: Sequence[TableEdit], edited: Grid) -> str:
    """Return a description of the edits, one per line."""
    return "\n".join(f"{number}. {_describe_edit(edit, edited)}" for number, edit in enumerate(edits, 1))


def _describe_edit(edit: TableEdit, edited: Grid) -> str:
    if edit.action == "drop":
        return f"The column {edit.column} is left out."
    if edit.action == "round":
        return f"The numbers of {edit.column} are rounded to {edit.digits} digits behind the point."
    return f"In row {edit.row}, {edit.column} is written as: {edited.cell(edit.row - 1, edit.column)}"


def contains_value(value: str, text: str) -> bool:
    """Return whether a text contains a value. Numbers and dates compare by value. Punctuation alone always matches."""
    wanted = normalize_values(value)
    return not wanted or contains_answer(normalize_values(text), wanted)


def missing_values(grid: Grid, row: int, text: str) -> list[str]:
    """Return the values of a row that its document lacks. The texts that replace a hidden value count instead of it."""
    hidden = {one.column: one.replaced_by for one in grid.hidden if one.row == row}
    wanted = [part for column, value in zip(grid.header, grid.rows[row], strict=True)
              for part in hidden.get(column, (value,))]
    return [value for value in dict.fromkeys(wanted) if not contains_value(value, text)]


def reveals_hidden(grid: Grid, row: int, text: str) -> bool:
    """Return whether the document of a row contains a hidden value that no other cell of the row has."""
    return any(contains_value(one.value, text) and not any(contains_value(one.value, other) for other in grid.rows[row])
               for one in grid.hidden if one.row == row)
