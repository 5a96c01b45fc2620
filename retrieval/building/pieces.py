"""What becomes of a document in an index: its chunks, the windows that are embedded, and their header."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from documents.types import Chunk, Document
from retrieval.building.arrivals import Arrival
from retrieval.building.before import Before
from retrieval.building.lazy import LazyEmbedder
from retrieval.building.titles import fitting_header
from retrieval.filters.metadata import Metadata
from retrieval.settings import IndexSettings
from retrieval.types import Value

if TYPE_CHECKING:
    from retrieval.embedder import Matrix

@dataclass(frozen=True, slots=True)
class Piece:
    """A document, cut.

    Attributes:
        header: embedded in front of each window.
        windows: the number of vectors of each chunk.
        texts: every window as it is embedded; empty where `vectors` are known.
        vectors: those of the windows, float32 of shape (windows, dimension), where the index before has them.
    """

    document: Document
    header: str
    metadata: Mapping[str, Value]
    chunks: list[Chunk]
    windows: list[int]
    texts: list[str]
    vectors: Matrix | None = None


class Cutter:
    """Cuts documents, and takes chunks and vectors out of the index before where they must be equal.

    Args:
        metadata: of each source.
        remember: whether a source without metadata has what the index before has of it.
    """

    def __init__(self, settings: IndexSettings, embedder: LazyEmbedder, before: Before | None,
                 metadata: Metadata, remember: bool = False) -> None:
        self._settings = settings
        self._embedder = embedder
        self._before = before
        self._metadata = metadata
        self._remember = remember

    def cut(self, arrival: Arrival) -> Piece:
        """Raises ModelError where the embedder is not on this machine, and something has to be embedded."""
        document = arrival.document
        before = self._before if arrival.same else None
        header = self._header(document, before)
        chunks = self._chunks(document, before)
        if (before is not None and before.alike(self._settings, self._embedder.identity)
                and before.header(document.id) in (None, header)):
            vectors = before.vectors(document.id)
            if vectors is not None:
                return Piece(document, header, self._said(document), chunks, before.windows(document.id), [], vectors)
        contents = [chunk.content for chunk in chunks]
        spans = self._embedder.opened.windows(contents, header)
        texts = [header + content[start:end] for content, windows in zip(contents, spans, strict=True)
                 for start, end in windows]
        return Piece(document, header, self._said(document), chunks, list(map(len, spans)), texts)

    def _chunks(self, document: Document, before: Before | None) -> list[Chunk]:
        settings = self._settings
        if before is not None and (before.manifest.settings.chunker, before.manifest.settings.formats) == (
                settings.chunker, settings.formats):
            return before.chunks(document.id)
        return [chunk for format in settings.formats for chunk in settings.chunker.chunk(document, format)]

    def _header(self, document: Document, before: Before | None) -> str:
        if not self._settings.titled:
            return ""
        if before is not None and before.manifest.settings.titled and (
                before.manifest.embedder.identity == self._embedder.identity):
            kept = before.header(document.id)
            if kept is not None:
                return kept
        return fitting_header(document, self._embedder.opened)

    def _said(self, document: Document) -> Mapping[str, Value]:
        entry = self._before.entry(document.source) if self._before is not None and self._remember else None
        if document.source in self._metadata or entry is None or self._before is None:
            return self._metadata.get(document.source, {})
        return self._before.metadata(entry.document)
