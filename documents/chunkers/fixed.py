"""Chunks of one size, with an overlap."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from documents.chunkers.spans import Piece, after, chunks_of, whole
from documents.types import Chunk, Document, Format


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
        """The chunks of that rendering, in order of their start; blank spans join their neighbour."""
        text = document.text(format)
        return chunks_of(document, format, self._pieces(text, format))

    def _pieces(self, text: str, format: Format) -> Iterator[Piece]:
        start = end = 0
        while end < len(text):
            end = self._end(text, start, format)
            yield start, end, ""
            start = self._next(text, start, end, format)

    def _next(self, text: str, start: int, end: int, format: Format) -> int:
        """Where the next chunk begins; without an overlap where a tag would leave it nothing new."""
        following = whole(text, end - self.overlap, format)
        return following if following > start and self._end(text, following, format) > end else end

    def _end(self, text: str, start: int, format: Format) -> int:
        end = whole(text, min(start + self.size, len(text)), format)
        return end if end > start else after(text, start + self.size, format)
