"""Structure-aware chunks: sections and whole tables."""
from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from documents.chunkers.spans import chunks_at
from documents.types import Chunk, Document, Format


class Sections(BaseModel):
    """Chunks along headings, whole tables and paragraphs.

    Sections up to `target` characters are merged with their neighbours; one above `largest` is split at
    paragraphs, then sentences; a table above `largest` is split by rows, its header repeated in each part's
    `prefix`.
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
        end = len(document.text(format))
        return chunks_at(document, format, [*range(0, end, self.target), end])
