"""A table laid out for a width: columns stand in as many blocks as it asks for, and cells break between words."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells

_GAP = 2  # between columns
_SHORT = 12  # characters of a cell that no column is too narrow for
_PIECES = re.compile(r"\[[^\[\]]{,24}\]\S*|\S+")  # an interval stays whole
_PARTS = re.compile(r"[^_/#:=@-]*[_/#:=@-]+|[^_/#:=@-]+")  # of a name that is longer than its column


@dataclass(frozen=True, slots=True)
class Block:
    """Columns that stand side by side; a cell's lines are at most as wide as its column."""

    widths: tuple[int, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self) -> Iterator[tuple[str, bool]]:
        """Each line, and whether it is of the header."""
        for place, cells in enumerate((self.header, *self.rows)):
            wrapped = [wrap(cell, width) for cell, width in zip(cells, self.widths, strict=True)]
            for at in range(max(map(len, wrapped), default=0)):
                parts = (lines[at] if at < len(lines) else "" for lines in wrapped)
                yield "".join(part + " " * (width + _GAP - cell_len(part))
                              for part, width in zip(parts, self.widths, strict=True)).rstrip(), place == 0


@dataclass(frozen=True, slots=True)
class _Column:
    """What a column asks for.

    Attributes:
        least: the width at which no word, number or interval in it breaks that need not.
        whole: at which every cell stands on as many lines as it has; `full`, its header too.
        figures: whether its cells are figures with intervals.
    """

    least: int
    whole: int
    full: int
    figures: bool

    @classmethod
    def of(cls, header: str, cells: Sequence[str], most: int) -> _Column:
        lines = [line for cell in cells for line in cell.split("\n")]
        whole, title = max(map(cell_len, lines), default=0), _longest(header)
        least = max([title, *(max(_longest(line), min(cell_len(line), max(_SHORT, cell_len(line) // 3)))
                              for line in lines)])
        return cls(min(least, most), max(whole, min(title, most)), max(whole, *map(cell_len, header.split("\n"))),
                   any(" [" in line for line in lines))


def _longest(text: str) -> int:
    return max(map(cell_len, _PIECES.findall(text)), default=0)


def blocks(header: Sequence[str], rows: Sequence[Sequence[str]], keys: int, width: int) -> list[Block]:
    """The table in blocks that are at most so wide, each with the first `keys` columns, which tell rows apart."""
    columns = [_Column.of(name, [row[at] for row in rows], max(_SHORT, width // 3)) for at, name in enumerate(header)]
    if _taken([one.full for one in columns]) <= width:
        return [_block(header, rows, range(len(header)), [one.full for one in columns])]
    whole, least = [one.whole for one in columns[:keys]], [one.least for one in columns[keys:]]
    names = _narrowed(whole, 2 * width // 5)
    groups = _groups(names, least, width)
    if len(_groups(whole, least, width)) == len(groups) and _taken([*whole, *sorted(least)[-1:]]) <= width:
        names, groups = whole, _groups(whole, least, width)
    return [_block(header, rows, [*range(keys), *(keys + at for at in group)],
                   _widened([*names, *(least[at] for at in group)],
                            [*columns[:keys], *(columns[keys + at] for at in group)], width)) for group in groups]


def _groups(names: Sequence[int], widths: Sequence[int], width: int) -> list[list[int]]:
    """Which columns stand together beside the names: in as few blocks as can be, which are about equally wide."""
    def filled(limit: int) -> list[list[int]]:
        found: list[list[int]] = [[]]
        for at, one in enumerate(widths):
            if found[-1] and _taken([*names, *(widths[other] for other in found[-1]), one]) > limit:
                found.append([])
            found[-1].append(at)
        return found

    fewest = len(filled(width))
    return next(found for limit in range(1, width + 1) if len(found := filled(limit)) == fewest)


def _block(header: Sequence[str], rows: Sequence[Sequence[str]], places: Sequence[int],
           widths: Sequence[int]) -> Block:
    return Block(tuple(widths), tuple(header[at] for at in places),
                 tuple(tuple(row[at] for at in places) for row in rows))


def _taken(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _narrowed(widths: Sequence[int], most: int) -> list[int]:
    """The widest of the widths cut alike, until they take no more than that."""
    limit = next((cap for cap in range(max(widths, default=0), _SHORT, -1)
                  if _taken([min(one, cap) for one in widths]) <= most), _SHORT)
    return [min(one, limit) for one in widths]


def _widened(widths: Sequence[int], columns: Sequence[_Column], width: int) -> list[int]:
    """With the room that is left: for figures, which all have their intervals beside them or none, then for the other
    cells, then for the headers."""
    made = list(widths)
    beside = [one.whole if one.figures else taken for taken, one in zip(made, columns, strict=True)]
    made = beside if _taken(beside) <= width else made
    for wanted in ([taken if one.figures else one.whole for taken, one in zip(made, columns, strict=True)],
                   [taken if one.figures else one.full for taken, one in zip(made, columns, strict=True)]):
        for at, most in enumerate(wanted):
            made[at] += max(0, min(most - made[at], width - _taken(made)))
    return made


def wrap(text: str, width: int) -> list[str]:
    """The text in lines that are at most so wide: broken at blanks, in what is longer after a mark such as `_`, and
    anywhere only where there is none."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines.append("")
        for piece in _PIECES.findall(line) if cell_len(line) > width else [line]:
            if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(piece) <= width:
                lines[-1] += f" {piece}"
                continue
            if lines[-1]:
                lines.append("")
            for part in [piece] if cell_len(piece) <= width else _parts(piece, width):
                if lines[-1] and cell_len(lines[-1] + part) > width:
                    lines.append("")
                lines[-1] += part
    return lines


def _parts(piece: str, width: int) -> Iterator[str]:
    for blank, words in enumerate(piece.split(" ")):
        for part in _PARTS.findall(f" {words}" if blank else words):
            yield from chop_cells(part, width) if cell_len(part) > width else [part]
