"""Chunks by their size alone: of one size with an overlap, and of seeded random sizes as CReSt's."""
from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from documents.chunkers.spans import Piece, after, chunks_at, chunks_of, whole
from documents.types import Chunk, Document, Format, digest


class Fixed(BaseModel):
    """Chunks of `size` characters that begin `size - overlap` characters apart.

    In HTML a cut that would fall inside a tag or an entity moves before it, so a chunk may be a little
    shorter; a tag that is longer than `size` is a chunk of its own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["fixed"] = "fixed"
    size: int = Field(1_000, ge=1)
    overlap: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _advances(self) -> Fixed:
        if self.overlap >= self.size:
            raise ValueError("overlap must be below size")
        return self

    def chunk(self, document: Document, format: Format) -> list[Chunk]:
        """Return the chunks of that rendering, in order of their start; blank spans join their neighbour."""
        text = document.text(format)
        return chunks_of(document, format, self._pieces(text, format))

    def _pieces(self, text: str, format: Format) -> Iterator[Piece]:
        start = end = 0
        while end < len(text):
            end = self._end(text, start, format)
            yield start, end, ""
            start = self._next(text, start, end, format)

    def _next(self, text: str, start: int, end: int, format: Format) -> int:
        following = whole(text, end - self.overlap, format)
        return following if following > start and self._end(text, following, format) > end else end

    def _end(self, text: str, start: int, format: Format) -> int:
        end = whole(text, min(start + self.size, len(text)), format)
        return end if end > start else after(text, start + self.size, format)


class CrestSizes(BaseModel):
    """Consecutive chunks of random size, as CReSt's corpus was cut (section 3.1 of the paper).

    Sizes are uniform between `smallest` and `largest` characters; the last chunk takes what is left. A cut
    may fall inside a tag, as in the original. The sizes depend on the document's id, the format and the
    seed only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["crest"] = "crest"
    smallest: int = Field(2_048, ge=1)
    largest: int = Field(16_384, ge=1)
    seed: int = 0

    @model_validator(mode="after")
    def _ordered(self) -> CrestSizes:
        if self.smallest > self.largest:
            raise ValueError("smallest must not be above largest")
        return self

    def chunk(self, document: Document, format: Format) -> list[Chunk]:
        """Return the chunks of that rendering, in order; together they are the whole of it."""
        random = Random(digest("crest", document.id, format, str(self.seed)))
        end = len(document.text(format))
        cuts, position = [0], 0
        while position < end:
            position = min(position + random.randint(self.smallest, self.largest), end)
            cuts.append(position)
        return chunks_at(document, format, cuts)
