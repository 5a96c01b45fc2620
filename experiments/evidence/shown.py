"""What stands among a question's chunks already: no text comes twice, nor a part of one."""
from __future__ import annotations

from collections.abc import Iterable

from documents.types import Chunk


class Shown:
    """Chunks that are shown, and whether another would say anything new."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._texts: set[str] = set()
        self._spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for chunk in chunks:
            self.add(chunk)

    def lacks(self, chunk: Chunk) -> bool:
        """Whether neither the chunk's text nor any part of its span is there."""
        spans = self._spans.get((chunk.document, chunk.format), ())
        return chunk.content not in self._texts and not any(
            chunk.start < end and start < chunk.end for start, end in spans)

    def add(self, chunk: Chunk) -> None:
        self._texts.add(chunk.content)
        self._spans.setdefault((chunk.document, chunk.format), []).append((chunk.start, chunk.end))
