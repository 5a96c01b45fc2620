"""Chunks of whole sentences."""
from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from documents.chunkers.recursive import Recursive
from documents.chunkers.spans import Span, chunks_of, packed, whole_ones
from documents.types import Chunk, Document, Format

# A full stop before a small letter is of an abbreviation.
_END = re.compile(r"[.!?…]['\"”’)\]]*\s+(?![a-z])|[。！？]['\"”’」』）\]]*|\n\s*\n"
                  r"|</(?:p|li|tr|dd|dt|pre|h[1-6])>\n?|<br>")


class Sentences(BaseModel):
    """As many sentences to a chunk as fit into `size` characters; a longer one is cut between words.

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
        """The chunks of that rendering, in order of their start; blank spans join their neighbour."""
        text = document.text(format)
        spans = packed(self._sentences(text, format), self.size, self.overlap)
        return chunks_of(document, format, ((start, end, "") for start, end in spans))

    def _sentences(self, text: str, format: Format) -> Iterator[Span]:
        words = Recursive(size=self.size, separators=(" ",))
        ends = (match.end() for match in _END.finditer(text) if match.end() < len(text))
        for span in pairwise([0, *whole_ones(text, (0, len(text)), ends, format), len(text)]):
            yield from words.spans(text, span, words.separators, format)
