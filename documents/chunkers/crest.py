"""CReSt's chunker: chunks of seeded random size."""
from __future__ import annotations

from random import Random
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from documents.chunkers.spans import chunks_at
from documents.types import Chunk, Document, Format, digest


class Crest(BaseModel):
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
    def _ordered(self) -> Crest:
        if self.smallest > self.largest:
            raise ValueError("smallest must not be above largest")
        return self

    def chunk(self, document: Document, format: Format) -> list[Chunk]:
        """The chunks of that rendering, in order; together they are the whole of it."""
        random = Random(digest("crest", document.id, format, str(self.seed)))
        end = len(document.text(format))
        cuts, position = [0], 0
        while position < end:
            position = min(position + random.randint(self.smallest, self.largest), end)
            cuts.append(position)
        return chunks_at(document, format, cuts)
