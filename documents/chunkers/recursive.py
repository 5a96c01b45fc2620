"""Chunks along the largest separators that leave them small enough, as LangChain's splitter; and of whole sentences."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from documents.chunkers.spans import Span, after, chunks_of, packed, whole, whole_ones
from documents.types import Chunk, Document, Format


class Recursive(BaseModel):
    """Chunks of at most `size` characters. The text is cut behind the first separator that it holds; what is still too
    long, behind the next one; and so on, at last anywhere. Neighbouring pieces are joined again up to `size`, but never
    with those of a piece that had to be cut further.

    Each chunk begins with as many whole pieces of the one before as fit into `overlap` characters. Only a single
    tag of HTML can make a chunk longer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["recursive"] = "recursive"
    size: int = Field(1_000, ge=1)
    overlap: int = Field(0, ge=0)
    separators: tuple[str, ...] = ("\n\n", "\n", ". ", "? ", "! ", " ")

    @model_validator(mode="after")
    def _consistent(self) -> Recursive:
        if self.overlap >= self.size:
            raise ValueError("overlap must be below size")
        if not all(self.separators):
            raise ValueError("a separator must not be empty")
        return self

    def chunk(self, document: Document, format: Format) -> list[Chunk]:
        """Return the chunks of that rendering, in order of their start; blank spans join their neighbour."""
        text = document.text(format)
        spans = self.spans(text, (0, len(text)), self.separators, format)
        return chunks_of(document, format, ((start, end, "") for start, end in spans))

    def spans(self, text: str, span: Span, separators: Sequence[str], format: Format) -> Iterator[Span]:
        """Return the chunks of a part of a text, with these separators."""
        pieces, rest = self._pieces(text, span, separators, format)
        small: list[Span] = []
        for piece in pieces:
            if piece[1] - piece[0] <= self.size or piece == span:
                small.append(piece)
                continue
            yield from packed(small, self.size, self.overlap)
            small = []
            yield from self.spans(text, piece, rest, format)
        yield from packed(small, self.size, self.overlap)

    def _pieces(self, text: str, span: Span, separators: Sequence[str], format: Format) -> tuple[
            list[Span], Sequence[str]]:
        if span[1] - span[0] <= self.size:
            return [span], ()
        for place, separator in enumerate(separators):
            if cuts := whole_ones(text, span, _behind(text, span, separator), format):
                return list(pairwise([span[0], *cuts, span[1]])), separators[place + 1:]
        return list(self._anywhere(text, span, format)), ()

    def _anywhere(self, text: str, span: Span, format: Format) -> Iterator[Span]:
        start, end = span
        while start < end:
            cut = whole(text, min(start + self.size, end), format)
            cut = cut if cut > start else min(after(text, start + self.size, format), end)
            yield start, cut
            start = cut


def _behind(text: str, span: Span, separator: str) -> Iterator[int]:
    """The places behind each of the separators in a part, except its end."""
    at = text.find(separator, *span)
    while at >= 0:
        at += len(separator)
        if at < span[1]:
            yield at
        at = text.find(separator, at, span[1])


# A full stop before a small letter is of an abbreviation.
_END = re.compile(r"[.!?…]['\"”’)\]]*\s+(?![a-z])|[。！？]['\"”’」』）\]]*|\n\s*\n"
                  r"|</(?:p|li|tr|dd|dt|pre|h[1-6])>\n?|<br>")


class Sentences(BaseModel):
    """Chunks of as many sentences as fit into `size` characters; a longer one is cut between words.

    A sentence ends with a full stop, a question or an exclamation mark and space, or with its paragraph. Each chunk
    begins with as many sentences of the one before as fit into `overlap` characters.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["sentences"] = "sentences"
    size: int = Field(1_000, ge=1)
    overlap: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _advances(self) -> Sentences:
        if self.overlap >= self.size:
            raise ValueError("overlap must be below size")
        return self

    def chunk(self, document: Document, format: Format) -> list[Chunk]:
        """Return the chunks of that rendering, in order of their start; blank spans join their neighbour."""
        text = document.text(format)
        spans = packed(self._sentences(text, format), self.size, self.overlap)
        return chunks_of(document, format, ((start, end, "") for start, end in spans))

    def _sentences(self, text: str, format: Format) -> Iterator[Span]:
        words = Recursive(size=self.size, separators=(" ",))
        ends = (match.end() for match in _END.finditer(text) if match.end() < len(text))
        for span in pairwise([0, *whole_ones(text, (0, len(text)), ends, format), len(text)]):
            yield from words.spans(text, span, words.separators, format)
