"""Chunk documents along headings, tables and paragraphs."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ragbed.documents.chunkers.spans import Piece, Span, make_chunks, merge, next_safe_cut, safe_cut
from ragbed.documents.numbers import is_number, is_year
from ragbed.documents.parsers.clean_html import VOID
from ragbed.documents.sentences import sentence_starts
from ragbed.documents.types import Chunk, Document, Format

BlockKind = Literal["heading", "table", "text"]

_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)\b[^<>]*>\n?")
_BLOCKS = frozenset({"p", "ul", "ol", "dl", "pre", "blockquote", "table", "h1", "h2", "h3", "h4", "h5", "h6"})
_PARAGRAPH = re.compile(r"\n(?:[^\S\n]*\n)+")
_HEADING = re.compile(r"#{1,6} \S")


@dataclass(frozen=True, slots=True)
class OutlineBlock:
    """A heading, table or other block of a text, with the white space after it."""

    start: int
    end: int
    kind: BlockKind


def outline(text: str, format: Format) -> list[OutlineBlock]:
    """Split a rendering completely into consecutive blocks."""
    return list(_html(text) if format == "html" else _plain(text))


def _plain(text: str) -> Iterator[OutlineBlock]:
    cuts = [0, *(match.end() for match in _PARAGRAPH.finditer(text)), len(text)]
    for start, end in pairwise(cuts):
        table = text.startswith("| ", start) and text.find("\n| --- |", start, end) >= 0
        if start < end:
            yield OutlineBlock(start, end, "heading" if _HEADING.match(text, start) else "table" if table else "text")


def _html(text: str) -> Iterator[OutlineBlock]:
    """Yield the outermost blocks. An unclosed tag extends to the end of the text."""
    start = depth = 0
    name = ""
    for match in _TAG.finditer(text):
        closing, tag = match[1], match[2]
        if tag in VOID or (depth and tag != name):
            continue
        if not depth and tag in _BLOCKS and not closing:
            if match.start() > start:
                yield OutlineBlock(start, match.start(), "text")
            start, depth, name = match.start(), 1, tag
        elif depth:
            depth += -1 if closing else 1
            if not depth:
                yield OutlineBlock(start, match.end(), _tag_kind(name))
                start = match.end()
    if start < len(text):
        yield OutlineBlock(start, len(text), _tag_kind(name) if depth else "text")


def _tag_kind(name: str) -> BlockKind:
    if name == "table":
        return "table"
    return "heading" if len(name) == 2 and name[0] == "h" and name[1].isdigit() else "text"


def _plain_row_starts(text: str, block: OutlineBlock) -> list[int]:
    starts = [match.start() + 1 for match in re.finditer(r"\n(?=\|)", text[block.start:block.end])]
    lines = [block.start, *(block.start + start for start in starts)]
    rule = next((index for index, line in enumerate(lines) if text.startswith("| --- |", line)), 0)
    return lines[rule + 1:]


def _html_row_starts(text: str, block: OutlineBlock) -> list[int]:
    """Return where each body row starts, ignoring nested tables and title rows."""
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
    if not heads and starts:
        cells = [_TAG.sub("", cell.partition(">")[2]).strip() for cell in text[starts[0]:ends[0]].split("<td")[1:]]
        heads = int(not any(is_number(cell) and not is_year(cell) for cell in cells))
    return starts[heads:]


_BREAKS = (re.compile(r"\n\s*\n|</(?:p|li|tr|dd|dt|pre)>\n|<br>"), re.compile(r"\n"), re.compile(r"\s+"))


def find_breaks(text: str, start: int, limit: int) -> Iterator[list[int]]:
    """Yield the places to cut, the best kind first: after a paragraph or row, a sentence or line, a word."""
    for kind, pattern in enumerate(_BREAKS):
        ends = [match.end() for match in pattern.finditer(text, start, limit)]
        yield sorted({*ends, *sentence_starts(text, start, limit)}) if kind == 1 else ends


def last_break(text: str, start: int, limit: int, format: Format) -> int:
    """Return where to cut a span: at its last break of the best kind, or else at the last safe position."""
    for ends in find_breaks(text, start, limit):
        for end in reversed(ends[-3:]):
            if safe_cut(text, end, format) == end:
                return end
    return safe_cut(text, limit, format)


_HEADING_LINE = re.compile(r"#{1,6} |<h[1-6]\b")
_SMALL = 8


class Sections(BaseModel):
    """Chunks along headings, whole tables and paragraphs.

    A section is a heading with the text below it. Sections are merged up to `target` characters. A section above
    `largest` is split at paragraphs, then sentences, then words, into parts of about `target`. A table above `largest`
    is split by rows, and every part after the first repeats its header as `prefix`. No part exceeds `largest`, prefix
    included, except a single tag or table row.

    Attributes:
        target: number of characters to aim for in a chunk.
        largest: largest number of characters of a chunk.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["sections"] = "sections"
    target: int = Field(2_000, ge=1)
    largest: int = Field(4_000, ge=1)

    @model_validator(mode="after")
    def _check_order(self) -> Sections:
        if self.target > self.largest:
            raise ValueError("target must not be above largest")
        return self

    def chunk(self, document: Document, format: Format) -> list[Chunk]:
        """Return the chunks of a rendering, in order. Their spans cover it completely."""
        text = document.text(format)
        pieces = [piece for section in _sections(outline(text, format)) for piece in self._fit(text, section, format)]
        return make_chunks(document, format, self._merge_small(text, pieces))

    def _fit(self, text: str, section: Sequence[OutlineBlock], format: Format) -> Iterator[Piece]:
        if section[-1].end - section[0].start <= self.largest:
            yield section[0].start, section[-1].end, ""
            return
        for run in self._runs(section):
            start, end = run[0].start, run[-1].end
            if end - start <= self.largest:
                yield start, end, ""
            elif run[-1].kind == "table":
                yield from self._table(text, start, run[-1], format)
            else:
                yield from self._split_piece(text, (start, end, ""), "", format)

    def _runs(self, section: Sequence[OutlineBlock]) -> Iterator[list[OutlineBlock]]:
        run: list[OutlineBlock] = []
        for block in section:
            size = block.end - run[0].start if run else 0
            fits = size <= (self.largest if block.kind == "table" else self.target)
            introduces = run and (all(held.kind == "heading" for held in run) or (
                block.kind == "table" and block.start - run[0].start <= self.target // 2))
            if run and not fits and not introduces:
                yield run
                run = []
            run.append(block)
        yield run

    def _table(self, text: str, start: int, table: OutlineBlock, format: Format) -> Iterator[Piece]:
        starts = _html_row_starts(text, table) if format == "html" else _plain_row_starts(text, table)
        head = starts[0] if starts else table.end
        header = text[table.start:head] if head - table.start <= self.largest // 2 else ""
        prefix = ""
        for row, end in zip(starts, [*starts[1:], table.end], strict=False):
            if row > max(start, head) and end - start + len(prefix) > self.largest:
                yield from self._split_piece(text, (start, row, prefix), header, format, head)
                start, prefix = row, header
        yield from self._split_piece(text, (start, table.end, prefix), header, format, head)

    def _split_piece(self, text: str, piece: Piece, header: str, format: Format, head: int = 0) -> Iterator[Piece]:
        """Yield a piece, or several if it is too long. Later pieces repeat the table header, which ends at `head`."""
        start, end, prefix = piece
        if end - start + len(prefix) <= self.largest:
            yield piece
            return
        for span in self._split(text, start, end, format, max(len(prefix), len(header)), head):
            yield (*span, prefix)
            prefix = header

    def _split(self, text: str, start: int, end: int, format: Format, prefix: int, head: int) -> Iterator[Span]:
        size = min(self.target, self.largest - prefix)
        while end - start > size:
            cut = self._cut(text, head if start < head < start + size else start, start + size, format)
            yield start, cut
            start = cut
        if start < end:
            yield start, end

    def _cut(self, text: str, start: int, limit: int, format: Format) -> int:
        cut = last_break(text, (3 * start + limit) // 4, limit, format)
        return cut if cut > start else next_safe_cut(text, limit, format)

    def _merge_small(self, text: str, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Join neighbours up to `target` characters, and small pieces even up to `largest`.

        A small piece that begins with a heading joins the next piece if possible. Other small pieces join the previous
        one. A piece with a repeated header joins only the next piece.
        """
        def is_small(piece: Piece) -> bool:
            return piece[1] - piece[0] < self.target // _SMALL

        def fits(held: Piece, piece: Piece, limit: int) -> bool:
            return len(held[2]) + piece[1] - held[0] <= limit

        def can_join(held: Piece, piece: Piece) -> bool:
            introduces = is_small(held) and _HEADING_LINE.match(text, held[0]) is not None
            return fits(held, piece, self.largest if introduces else self.target if not piece[2] else 0)

        return merge(text, merge(text, pieces, can_join), lambda held, piece: (
            (is_small(held) or is_small(piece)) and fits(held, piece, self.largest)))


def _sections(blocks: Sequence[OutlineBlock]) -> Iterator[list[OutlineBlock]]:
    section: list[OutlineBlock] = []
    for block in blocks:
        if section and block.kind == "heading" and section[-1].kind != "heading":
            yield section
            section = []
        section.append(block)
    if section:
        yield section
