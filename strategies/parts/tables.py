"""Tables of facts that a model collected: read from its reply, checked against the documents, and shown again."""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from strategies.parts.quotes import Offered, found_quotes
from strategies.reading import fold, is_only_citations, read_answer, read_citations
from strategies.types import Evidence

_LONGEST_REPLY, _LONGEST_LINE, _LONGEST_CELL, _MOST_CELLS = 50_000, 4_000, 300, 8  # characters; cells
_HEADINGS = frozenset(("subject", "property", "value", "document", "what it is about"))
_RULE = re.compile(r"[\s:=-]*")
_NUMBER = re.compile(r"(?:document\s?)?\[?(\d{1,6})\]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FactRow:
    """A fact: its cells, of which the last is its value.

    Attributes:
        number: of the document that it is from; None where the row names none.
        found: whether its value stands in a document, word for word.
    """

    cells: tuple[str, ...]
    number: int | None = None
    found: bool = False


def read_rows(text: str, most: int, numbered: bool) -> list[FactRow]:
    """The rows of a reply, lines with cells between `|`, without headings and repeats.

    Args:
        numbered: whether the last cell of a row is to be the number of its document.
    """
    rows: dict[FactRow, None] = {}
    for line in read_answer(text)[0][:_LONGEST_REPLY].splitlines():
        if "|" not in line:
            continue
        cells = [" ".join(cell.split())[:_LONGEST_CELL] for cell in line[:_LONGEST_LINE].strip().strip("|").split("|")]
        row = _row(cells[:_MOST_CELLS], numbered)
        if len(row.cells) > 1 and not _HEADINGS.issuperset(map(fold, row.cells)):
            rows[row] = None
    return [row for row in rows if not all(map(_RULE.fullmatch, row.cells))][:most]


def _row(cells: Sequence[str], numbered: bool) -> FactRow:
    """Cells as a row; the document may stand in its own cell, `[2]` or `2`, or behind the value."""
    last = cells[-1]
    bare = _NUMBER.fullmatch(last.strip(" *."))
    if numbered and bare and (len(cells) > 3 or is_only_citations(last)):
        return FactRow(tuple(cells[:-1]), int(bare[1]))
    return FactRow(tuple(cells), next(iter(read_citations(last)), None) if numbered else None)


def checked(rows: Sequence[FactRow], evidence: Evidence) -> list[FactRow]:
    """The rows with whether their values stand in a document, and in which.

    A row that names a document that is none of the evidence, and whose value is in no other, is left out.
    """
    shown = {passage.number for passage in evidence}
    quotes = found_quotes([Offered(row.cells[-1], row.number) for row in rows], evidence, shortest=1)
    placed = [replace(row, number=quote.number if quote else row.number, found=quote is not None)
              for row, quote in zip(rows, quotes, strict=True)]
    return [row for row in placed if row.number is None or row.number in shown]


def shown_rows(rows: Sequence[FactRow], numbered: bool) -> str:
    """The table as prompts show it."""
    return "\n".join(f"| {' | '.join([*row.cells, *_named(row, numbered)])} |" for row in rows)


def _named(row: FactRow, numbered: bool) -> list[str]:
    return ([f"[{row.number}]"] if row.number is not None else ["-"]) if numbered else []
