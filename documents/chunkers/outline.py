"""The blocks of a rendering: headings, tables and the rest, found in the text itself.

The renderings are our own, so a few marks are enough: tags in HTML, `#` and `|` at the start of a line in plain
text. Whatever the text, the blocks cover all of it.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from documents.numbers import is_number, is_year
from documents.types import Format

Kind = Literal["heading", "table", "text"]

_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)\b[^<>]*>\n?")
_BLOCKS = frozenset({"p", "ul", "ol", "dl", "pre", "blockquote", "table", "h1", "h2", "h3", "h4", "h5", "h6"})
_VOID = frozenset({"br", "hr", "img"})
_PARAGRAPH = re.compile(r"\n(?:[^\S\n]*\n)+")
_HEADING = re.compile(r"#{1,6} \S")


@dataclass(frozen=True, slots=True)
class Block:
    """A span of the text, with the white space that follows it."""

    start: int
    end: int
    kind: Kind


def outline(text: str, format: Format) -> list[Block]:
    """The blocks of a rendering, in order; together they are the whole of it."""
    return list(_html(text) if format == "html" else _plain(text))


def _plain(text: str) -> Iterator[Block]:
    start = 0
    for match in _PARAGRAPH.finditer(text):
        yield Block(start, match.end(), _kind(text, start, match.end()))
        start = match.end()
    if start < len(text):
        yield Block(start, len(text), _kind(text, start, len(text)))


def _kind(text: str, start: int, end: int) -> Kind:
    if _HEADING.match(text, start):
        return "heading"
    return "table" if text.startswith("| ", start) and text.find("\n| --- |", start, end) >= 0 else "text"


def _html(text: str) -> Iterator[Block]:
    """Blocks of the outermost level; a tag that is never closed holds the rest of the text."""
    start = depth = 0
    name = ""
    for match in _TAG.finditer(text):
        closing, tag = match[1], match[2]
        if tag in _VOID or (depth and tag != name):
            continue
        if not depth and tag in _BLOCKS and not closing:
            if match.start() > start:
                yield Block(start, match.start(), "text")
            start, depth, name = match.start(), 1, tag
        elif depth:
            depth += -1 if closing else 1
            if not depth:
                yield Block(start, match.end(), _tag_kind(name))
                start = match.end()
    if start < len(text):
        yield Block(start, len(text), _tag_kind(name) if depth else "text")


def _tag_kind(name: str) -> Kind:
    if name == "table":
        return "table"
    return "heading" if len(name) == 2 and name[0] == "h" and name[1].isdigit() else "text"


def rows(text: str, block: Block, format: Format) -> tuple[int, list[int]]:
    """Where a table's header ends, and where each of its body rows begins; without rows, its end."""
    starts = _html_rows(text, block) if format == "html" else _plain_rows(text, block)
    return starts[0] if starts else block.end, starts


def _plain_rows(text: str, block: Block) -> list[int]:
    starts = [match.start() + 1 for match in re.finditer(r"\n(?=\|)", text[block.start:block.end])]
    lines = [block.start, *(block.start + start for start in starts)]
    rule = next((index for index, line in enumerate(lines) if text.startswith("| --- |", line)), 0)
    return lines[rule + 1:]


def _html_rows(text: str, block: Block) -> list[int]:
    """The rows of the table itself, not of tables in its cells; those at the top that hold titles left out."""
    starts: list[int] = []
    depth = 0
    for match in _TAG.finditer(text, block.start, block.end):
        if match[2] == "table":
            depth += -1 if match[1] else 1
        elif match[2] == "tr" and depth == 1 and not match[1]:
            starts.append(match.start())
    ends = [*starts[1:], block.end]
    heads = 0
    while heads < len(starts) and "<td" not in text[starts[heads]:ends[heads]]:
        heads += 1
    if not heads and starts and _titles(text[starts[0]:ends[0]]):
        heads = 1
    return starts[heads:]


def _titles(row: str) -> bool:
    """Whether a row that the page does not call a header holds no numbers but years."""
    texts = [_TAG.sub("", cell.partition(">")[2]).strip() for cell in row.split("<td")[1:]]
    return not any(is_number(text) and not is_year(text) for text in texts)
