"""Chunkers that cut by size: fixed, at separators as in LangChain, at sentences, or random as in CReSt."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ragbed.documents.chunkers.spans import Span, make_chunks, next_safe_cut, pack, safe_cut, safe_cuts
from ragbed.documents.sentences import sentence_starts
from ragbed.documents.types import Chunk, Document, Format, digest


class Overlapping(BaseModel):
    """Chunks of about `size` characters that repeat up to `overlap` characters of the previous chunk."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    size: int = Field(1_000, ge=1)
    overlap: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _check_overlap(self) -> Overlapping:
        if self.overlap >= self.size:
            raise ValueError("overlap must be below size")
        return self

    def chunk(self, document: Document, format: Format) -> list[Chunk]:
        """Return the chunks of a rendering, in order of their start. Blank spans are merged into a neighbour."""
        spans = self.spans(document.text(format), format)
        return make_chunks(document, format, ((start, end, "") for start, end in spans))

    def spans(self, text: str, format: Format) -> Iterator[Span]:
        """Yield the spans of a text's chunks."""
        raise NotImplementedError


class Fixed(Overlapping):
    """Chunks of `size` characters that begin `size - overlap` characters apart.

    In HTML, a cut inside a tag or entity moves to its start, so a chunk may be a little shorter. A tag longer than
    `size` becomes a separate chunk.

    Attributes:
        size: characters of a chunk.
        overlap: characters that neighbouring chunks share.
    """

    kind: Literal["fixed"] = "fixed"

    def spans(self, text: str, format: Format) -> Iterator[Span]:
        start = end = 0
        while end < len(text):
            end = self._end(text, start, format)
            yield start, end
            following = safe_cut(text, end - self.overlap, format)
            start = following if following > start and self._end(text, following, format) > end else end

    def _end(self, text: str, start: int, format: Format) -> int:
        end = safe_cut(text, min(start + self.size, len(text)), format)
        return end if end > start else next_safe_cut(text, start + self.size, format)


class Recursive(Overlapping):
    """Chunks of at most `size` characters, cut after separators.

    The text is cut after the first separator that occurs in it. Longer pieces are cut after the next separator, and so
    on, and finally at any character. Neighbouring pieces are joined up to `size`, but not across a piece that had to be
    cut further. Each chunk repeats as many whole pieces of the previous one as fit into `overlap`. Only an HTML tag can
    exceed `size`.

    Attributes:
        size: largest number of characters of a chunk.
        overlap: largest number of characters that neighbouring chunks share.
        separators: where the text is cut, in order of preference.
    """

    kind: Literal["recursive"] = "recursive"
    separators: tuple[str, ...] = ("\n\n", "\n", ". ", "? ", "! ", " ")

    @model_validator(mode="after")
    def _check_separators(self) -> Recursive:
        if not all(self.separators):
            raise ValueError("a separator must not be empty")
        return self

    def spans(self, text: str, format: Format) -> Iterator[Span]:
        return self.split_span(text, (0, len(text)), self.separators, format)

    def split_span(self, text: str, span: Span, separators: Sequence[str], format: Format) -> Iterator[Span]:
        """Yield the chunks of a span, cut after these separators."""
        pieces, rest = self._pieces(text, span, separators, format)
        small: list[Span] = []
        for piece in pieces:
            if piece[1] - piece[0] <= self.size or piece == span:
                small.append(piece)
                continue
            yield from pack(small, self.size, self.overlap)
            small = []
            yield from self.split_span(text, piece, rest, format)
        yield from pack(small, self.size, self.overlap)

    def _pieces(self, text: str, span: Span, separators: Sequence[str], format: Format) -> tuple[
            list[Span], Sequence[str]]:
        start, end = span
        if end - start <= self.size:
            return [span], ()
        for place, separator in enumerate(separators):
            behind = (match.end() for match in re.compile(re.escape(separator)).finditer(text, start, end))
            if cuts := safe_cuts(text, span, (at for at in behind if at < end), format):
                return list(pairwise([start, *cuts, end])), separators[place + 1:]
        anywhere: list[Span] = []
        while start < end:
            cut = safe_cut(text, min(start + self.size, end), format)
            cut = cut if cut > start else min(next_safe_cut(text, start + self.size, format), end)
            anywhere.append((start, cut))
            start = cut
        return anywhere, ()


_END = re.compile(r"\n\s*\n|</(?:p|li|tr|dd|dt|pre|h[1-6])>\n?|<br>")


class Sentences(Overlapping):
    """Chunks of as many sentences as fit into `size` characters. A longer sentence is cut between words.

    A sentence ends as `documents.sentences` describes, or with its paragraph. Each chunk repeats as many sentences of
    the previous one as fit into `overlap` characters.

    Attributes:
        size: largest number of characters of a chunk.
        overlap: largest number of characters that neighbouring chunks share.
    """

    kind: Literal["sentences"] = "sentences"

    def spans(self, text: str, format: Format) -> Iterator[Span]:
        words = Recursive(size=self.size, separators=(" ",))
        ends = {*sentence_starts(text, 0, len(text)), *(match.end() for match in _END.finditer(text))}
        cuts = safe_cuts(text, (0, len(text)), sorted(ends - {len(text)}), format)
        sentences = pairwise([0, *cuts, len(text)])
        return pack((part for span in sentences for part in words.split_span(text, span, words.separators, format)),
                      self.size, self.overlap)


class CrestSizes(BaseModel):
    """Consecutive chunks of random size, as in CReSt's corpus (section 3.1 of the paper).

    Sizes are drawn uniformly between `smallest` and `largest` characters. The last chunk is the rest. A cut may fall
    inside a tag, as in the original. Sizes depend only on the document's id, the format and the seed.

    Attributes:
        smallest, largest: bounds of a chunk's length in characters.
        seed: seed of the sizes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["crest"] = "crest"
    smallest: int = Field(2_048, ge=1)
    largest: int = Field(16_384, ge=1)
    seed: int = 0

    @model_validator(mode="after")
    def _check_order(self) -> CrestSizes:
        if self.smallest > self.largest:
            raise ValueError("smallest must not be above largest")
        return self

    def chunk(self, document: Document, format: Format) -> list[Chunk]:
        """Return the chunks of a rendering, in order. They cover it completely."""
        random = Random(digest("crest", document.id, format, str(self.seed)))
        end = len(document.text(format))
        cuts = [0]
        while cuts[-1] < end:
            cuts.append(min(cuts[-1] + random.randint(self.smallest, self.largest), end))
        return make_chunks(document, format, ((start, stop, "") for start, stop in pairwise(cuts)))
