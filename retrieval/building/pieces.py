"""Cuts a document for an index: its chunks, and the windows that are embedded below a header."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from documents.types import Chunk, Document
from retrieval.building.before import Arrival, Before
from retrieval.embedders.prefixes import choice_of
from retrieval.filters.metadata import Metadata
from retrieval.settings import IndexSettings
from retrieval.storage.cache import CachedEmbedder
from retrieval.storage.manifest import EmbedderEntry, Manifest, check_embedder
from retrieval.types import Embedder, FieldValue

if TYPE_CHECKING:
    from retrieval.types import Matrix

class LazyEmbedder:
    """An embedder that is there when it is needed.

    Args:
        opens: gives the embedder.
        manifest: of the index that is carried on with the embedder it was made with; None where any will do.
        folder: of that index.
    """

    def __init__(self, opens: Callable[[], Embedder], manifest: Manifest | None, folder: Path) -> None:
        self._opens = opens
        self._manifest = manifest
        self._folder = folder
        self._embedder: CachedEmbedder | None = None

    @cached_property
    def opened(self) -> CachedEmbedder:
        """Raises ModelError where it is not on this machine, IndexFolderError where it is not the index's."""
        self._embedder = CachedEmbedder(self._opens())
        if self._manifest is not None:
            check_embedder(self._manifest, self._embedder, self._folder)
        return self._embedder

    @property
    def identity(self) -> str:
        return self.opened.identity if self._manifest is None else self._manifest.embedder.identity

    @property
    def dimension(self) -> int:
        return self.opened.dimension if self._manifest is None else self._manifest.embedder.dimension

    @property
    def embedded(self) -> int:
        """Texts that the model embedded."""
        return self._embedder.embedded if self._embedder else 0

    def entry(self) -> EmbedderEntry:
        """Return the entry of the manifest."""
        if self._manifest is not None:
            return self._manifest.embedder
        used = self.opened
        return EmbedderEntry(name=used.name, identity=used.identity, dimension=used.dimension, window=used.window,
                             choice=choice_of(used.inner))


TITLE_CHARACTERS = 120
"""Of a title, what is embedded in front of each chunk: some web pages put a paragraph there."""

NAME_CHARACTERS = 60


def plain_header(source: str, title: str) -> str:
    """Return the file's name, as words, and the title: of many filings the title is a mere number, or their
    authority's name.

    On FinanceBench the gold page is among the first 10 for 18 of 22 questions; for 16 with the name only where the
    title has no words.
    """
    name = re.sub(r"[\W_]+", " ", Path(source).stem)[:NAME_CHARACTERS].strip()
    title = title[:TITLE_CHARACTERS].strip()
    return title if name.casefold() in title.casefold() else f"{name}: {title}"


def fitting_header(document: Document, embedder: Embedder) -> str:
    """`plain_header` and a line feed, cut to a quarter of the window: a Korean character alone can be three tokens."""
    header = plain_header(document.source, document.title)
    while header and len(embedder.windows([4 * f"{header}\n"])[0]) > 1:
        header = header[:len(header) * 7 // 8].strip()
    return f"{header}\n"


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
    metadata: Mapping[str, FieldValue]
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
                and before.header(document.id) == header):
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
            return before.header(document.id)
        return fitting_header(document, self._embedder.opened)

    def _said(self, document: Document) -> Mapping[str, FieldValue]:
        entry = self._before.entry(document.source) if self._before is not None and self._remember else None
        if document.source in self._metadata or entry is None or self._before is None:
            return self._metadata.get(document.source, {})
        return self._before.metadata(entry.document)
