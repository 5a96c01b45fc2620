"""Structure-aware chunks: sections and whole tables."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from documents.chunkers.outline import Block, outline, rows
from documents.chunkers.spans import Piece, Span, after, chunks_of, merged, whole
from documents.types import Chunk, Document, Format

BREAKS = (re.compile(r"\n\s*\n|</(?:p|li|tr|dd|dt|pre)>\n|<br>"), re.compile(r"[.!?。…]['\"”’)\]]*\s+|[。！？]|\n"),
          re.compile(r"\s+"))
"""Where text is best cut, the first kind before the next: after a paragraph or row, a sentence or line, a word."""

_HEADING = re.compile(r"#{1,6} |<h[1-6]\b")
_SMALL = 8


class Sections(BaseModel):
    """Chunks along headings, whole tables and paragraphs.

    A section is a heading and what follows it. Sections are merged with their neighbours up to `target`
    characters; one above `largest` is split at paragraphs, then sentences, then words, towards `target`. A table
    stays whole up to `largest`; above, it is split by rows, and its header is repeated as the `prefix` of each
    further part (`largest` holds with the prefix). Only a single tag or a table row can make a chunk longer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["sections"] = "sections"
    target: int = Field(2_000, ge=1)
    largest: int = Field(4_000, ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> Sections:
        if self.target > self.largest:
            raise ValueError("target must not be above largest")
        return self

    def chunk(self, document: Document, format: Format) -> list[Chunk]:
        """The chunks of that rendering, in order; their spans are the whole of it."""
        text = document.text(format)
        pieces = [piece for section in _sections(outline(text, format)) for piece in self._fit(text, section, format)]
        return chunks_of(document, format, self._merged(text, pieces))

    def _fit(self, text: str, section: Sequence[Block], format: Format) -> Iterator[Piece]:
        """A section as one piece, or as several where it is too long."""
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
                yield from self._part(text, (start, end, ""), "", format)

    def _runs(self, section: Sequence[Block]) -> Iterator[list[Block]]:
        """Blocks packed up to `target`; a heading stays with what follows, a table with its heading."""
        run: list[Block] = []
        for block in section:
            size = block.end - run[0].start if run else 0
            fits = size <= (self.largest if block.kind == "table" else self.target)
            if run and not fits and not self._introduces(run, block):
                yield run
                run = []
            run.append(block)
        yield run

    def _introduces(self, run: Sequence[Block], block: Block) -> bool:
        """Whether the run is only the heading of what follows, or the few words before a table."""
        few = block.kind == "table" and block.start - run[0].start <= self.target // 2
        return few or all(held.kind == "heading" for held in run)

    def _table(self, text: str, start: int, table: Block, format: Format) -> Iterator[Piece]:
        """A table by rows; the first part begins with what stands before the table."""
        head, starts = rows(text, table, format)
        header = text[table.start:head] if head - table.start <= self.largest // 2 else ""
        prefix = ""
        for row, end in zip(starts, [*starts[1:], table.end], strict=False):
            if row > max(start, head) and end - start + len(prefix) > self.largest:
                yield from self._part(text, (start, row, prefix), header, format, head)
                start, prefix = row, header
        yield from self._part(text, (start, table.end, prefix), header, format, head)

    def _part(self, text: str, piece: Piece, header: str, format: Format, head: int = 0) -> Iterator[Piece]:
        """A piece, or several where it is too long; each after the first begins with the header that ends at `head`."""
        start, end, prefix = piece
        if end - start + len(prefix) <= self.largest:
            yield piece
            return
        for span in self._split(text, start, end, format, max(len(prefix), len(header)), head):
            yield (*span, prefix)
            prefix = header

    def _split(self, text: str, start: int, end: int, format: Format, prefix: int, head: int) -> Iterator[Span]:
        """Parts of at most `target` characters that end with a paragraph, else a sentence, else a word."""
        size = min(self.target, self.largest - prefix)
        while end - start > size:
            cut = self._cut(text, head if start < head < start + size else start, start + size, format)
            yield start, cut
            start = cut
        if start < end:
            yield start, end

    def _cut(self, text: str, start: int, limit: int, format: Format) -> int:
        for pattern in BREAKS:
            ends = [match.end() for match in pattern.finditer(text, (3 * start + limit) // 4, limit)]
            safe = [end for end in ends[-3:] if whole(text, end, format) == end]
            if safe:
                return safe[-1]
        cut = whole(text, limit, format)
        return cut if cut > start else after(text, limit, format)

    def _merged(self, text: str, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Neighbours joined up to `target`, and small ones, which say little alone, up to `largest`.

        A small piece that begins with a heading goes to what follows, if it can; any other to what is before.
        Pieces with a repeated header are joined only to what follows it.
        """
        def small(piece: Piece) -> bool:
            return piece[1] - piece[0] < self.target // _SMALL

        def together(held: Piece, piece: Piece) -> bool:
            introduces = small(held) and _HEADING.match(text, held[0]) is not None
            return _size(held, piece) <= (self.largest if introduces else self.target if not piece[2] else 0)

        def remainder(held: Piece, piece: Piece) -> bool:
            return (small(held) or small(piece)) and _size(held, piece) <= self.largest

        return merged(text, merged(text, pieces, together), remainder)


def _size(held: Piece, piece: Piece) -> int:
    return len(held[2]) + piece[1] - held[0]


def _sections(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """A heading begins a section, except right after another heading."""
    section: list[Block] = []
    for block in blocks:
        if section and block.kind == "heading" and section[-1].kind != "heading":
            yield section
            section = []
        section.append(block)
    if section:
        yield section
