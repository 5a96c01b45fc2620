"""Write clean events as readable text, in the style of html2text: `#` headings, `-` and `1.` items, pipe tables."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, takewhile

from ragbed.documents.numbers import join_signs
from ragbed.documents.parsers.clean_html import HEADINGS, Event, Open, write_html
from ragbed.documents.parsers.table_cells import HtmlCell, HtmlRow, Place, expand_cells, max_padding
from ragbed.documents.types import Page


def write_table(rows: Sequence[HtmlRow]) -> list[str]:
    """Write a table as blocks of text: one pipe table, or only its cells, in order, if the table is used for layout.

    Empty columns and rows are left out, and signs and units in separate cells join their number. A row is written as
    blocks if it has a nested table, or is the table's only row and has a long list. Pipe tables require a header, so an
    empty one is added if there is none.
    """
    filled = [row for row in rows if row.cells]
    blocks: list[str] = []
    for layout, group in groupby(filled, lambda row: any(cell.nested or (len(filled) == 1 and cell.listed)
                                                    for cell in row.cells)):
        if layout:
            blocks += [block for row in group for cell in row.cells for block in cell.blocks]
        else:
            blocks += _pipes(list(group))
    return blocks


@dataclass(frozen=True, slots=True)
class PipeRow:
    """A row of a pipe table: whether it is in the header, and the position and text of each column."""

    head: bool
    places: list[Place]
    texts: list[str]


def arrange_columns(rows: Sequence[HtmlRow]) -> tuple[list[PipeRow], list[int]]:
    """Return the rows with text, and the numbers of the columns to write."""
    heads = len(list(takewhile(HtmlRow.heads, rows)))
    filled: list[PipeRow] = []
    for index, places in enumerate(expand_cells(rows, heads)):
        line = [text for text, _ in places]
        if any(line):
            filled.append(PipeRow(index < heads, places, line if index < heads else join_signs(line)))
    return filled, _columns_to_write(filled)


def _pipes(rows: list[HtmlRow]) -> list[str]:
    filled, columns = arrange_columns(rows)
    keeping, width = set(columns), len(columns)
    lines = [(row.head, [text for column, text in enumerate(row.texts) if column in keeping]) for row in filled]
    if width < 2:
        return [line[0] for _, line in lines]
    heads_of = [line for head, line in lines if head] or [[""] * width]
    fill = sum(width - len(line) for _, line in lines) * 3 <= max_padding(rows)
    written_lines = ["| " + " | ".join(line + [""] * (width - len(line) if fill else 0)) + " |"
                     for line in [*heads_of, *(line for head, line in lines if not head)]]
    written_lines.insert(len(heads_of), "|" + " --- |" * width)
    return ["\n".join(written_lines)]


def _columns_to_write(rows: Sequence[PipeRow]) -> list[int]:
    filled = {column for row in rows if not row.head for column, text in enumerate(row.texts) if text}
    titles: dict[int, dict[int, str]] = defaultdict(dict)
    for number, row in enumerate(rows):
        for column, text in enumerate(row.texts if row.head else ()):
            if text:
                titles[column][number] = text
    kept: list[int] = []
    for column in range(max((len(row.texts) for row in rows), default=0)):
        beside = [*kept[-1:], column + 1]
        if column in filled or (column in titles and not any(
                titles[column].items() <= titles[other].items() for other in beside)):
            kept.append(column)
    return kept


_FLOWS = frozenset({"li", "dt", "dd", "td", "th", "caption", "blockquote"})
_LEAVES = frozenset({*HEADINGS, "p"})


@dataclass(slots=True)
class _Flow:
    """A container being filled: its finished blocks, and the text of the current block."""

    tag: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    blocks: list[str] = field(default_factory=list)
    inline: list[str] = field(default_factory=list)
    rows: list[HtmlRow] = field(default_factory=list)
    number: int = 0
    nested: bool = False
    listed: bool = False

    def flush(self, prefix: str = "") -> None:
        """Turn the current text into a block."""
        text = "".join(self.inline)
        self.inline.clear()
        text = text.rstrip() if self.tag == "pre" else text.strip()
        if text:
            self.blocks.append(prefix + text)


def write_plain(events: Iterable[Event]) -> str:
    """Write a balanced stream of clean events as readable text, with blank lines between blocks."""
    writer = _Writer()
    for event in events:
        writer.write(event)
    writer.flow.flush()
    return "".join(block + "\n\n" for block in writer.flow.blocks)


def write_pages(events: Iterable[Sequence[Event]]) -> tuple[str, str, tuple[Page, ...]]:
    """Write pages one after the other. Return the HTML, the readable text, and where each page begins."""
    html: list[str] = []
    plain: list[str] = []
    pages: list[Page] = []
    at = (0, 0)
    for number, page in enumerate(events, 1):
        pages.append(Page(number, *at))
        html.append(write_html(page))
        plain.append(write_plain(page))
        at = at[0] + len(html[-1]), at[1] + len(plain[-1])
    return "".join(html), "".join(plain), tuple(pages)


def read_table_rows(events: Iterable[Event]) -> list[HtmlRow]:
    """Return the rows of a table from its events, which lack its closing tag."""
    writer = _Writer()
    for event in events:
        writer.write(event)
    return [row for row in writer.rows if row.cells]


class _Writer:
    def __init__(self) -> None:
        self._stack = [_Flow()]
        self._shifted = False  # whether a subscript or superscript has just ended

    @property
    def flow(self) -> _Flow:
        return self._stack[-1]

    @property
    def rows(self) -> list[HtmlRow]:
        return self._table().rows

    def write(self, event: Event) -> None:
        if isinstance(event, str):
            apart = self._shifted and self._after_digit() and event[:1].isdigit()
            self.flow.inline += [" ", event] if apart else [event]
            self._shifted = False
        elif isinstance(event, Open):
            self._open(event.tag, dict(event.attributes))
        else:
            self._close(event.tag)

    def _open(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "br":
            self.flow.inline.append("\n")
        elif tag == "img":
            self.flow.inline.append(f"![{attributes.get('alt', '')}]")
        elif tag == "sup":
            self.flow.inline.append("^")
        elif tag == "sub" and self._after_digit():
            self.flow.inline.append("_")
        elif tag == "tr":
            self.rows.append(HtmlRow(header=self._stack[-1].tag == "thead"))
        elif tag == "thead" or tag in _FLOWS or tag in ("table", "ul", "ol", "dl", "pre"):
            self.flow.flush()
            self._stack.append(_Flow(tag, attributes, number=int(attributes.get("start", 1)) - 1))
        elif tag in _LEAVES or tag == "hr":
            self.flow.flush()

    def _after_digit(self) -> bool:
        return "".join(self.flow.inline[-1:])[-1:].isdigit()

    def _close(self, tag: str) -> None:
        self._shifted = tag in ("sub", "sup")
        if tag in HEADINGS:
            self.flow.inline = [" ".join("".join(self.flow.inline).split())]
            self.flow.flush("#" * int(tag[1]) + " ")
        elif tag == "p":
            self.flow.flush()
        elif tag == "hr":
            self.flow.blocks.append("* * *")
        elif self.flow.tag == tag:
            done = self._stack.pop()
            done.flush()
            self._finish(done)

    def _finish(self, done: _Flow) -> None:
        parent = self.flow
        if done.tag in ("td", "th"):
            self.rows[-1].cells.append(HtmlCell(
                done.blocks, done.tag == "th", int(done.attributes.get("colspan", 1)),
                int(done.attributes.get("rowspan", 1)) or _ALL_ROWS, done.nested, done.listed))
        elif done.tag == "caption":
            self._table().blocks.append("\n".join(done.blocks))
        elif done.tag == "thead":
            parent.blocks += done.blocks
        elif done.tag == "li":
            parent.number = int(done.attributes.get("value", parent.number + 1))
            marker = f"{parent.number}. " if parent.tag == "ol" else "- "
            parent.blocks.append(_indent("\n".join(done.blocks), marker, " " * len(marker)))
        elif done.blocks or done.rows:
            self._block(done, parent)

    def _block(self, done: _Flow, parent: _Flow) -> None:
        if done.tag == "table":
            parent.nested = True
            parent.blocks.extend(done.blocks + write_table(done.rows))
        elif done.tag in ("ul", "ol", "dl"):
            parent.listed = parent.listed or len("".join(done.blocks)) > _LONG
            parent.blocks.append("\n".join(done.blocks))
        elif done.tag == "pre":
            parent.blocks.append("```\n" + "\n".join(done.blocks).strip("\n") + "\n```")
        elif done.tag == "dd":
            parent.blocks.append(_indent("\n".join(done.blocks), "    ", "    "))
        elif done.tag == "dt":
            parent.blocks.append(" ".join(done.blocks))
        elif done.tag == "blockquote":
            parent.blocks.append(_indent("\n\n".join(done.blocks), "> ", "> "))

    def _table(self) -> _Flow:
        return next(flow for flow in reversed(self._stack) if flow.tag == "table")


_LONG = 300
_ALL_ROWS = 9_999


def _indent(text: str, first: str, rest: str) -> str:
    lines = text.split("\n")
    return "\n".join([first + lines[0], *(rest + line if line else rest.rstrip() for line in lines[1:])])
