"""Cuts a document for an index: its chunks, and the windows that are embedded below a header."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ragbed.documents.types import Chunk, Document
from ragbed.retrieval.building.before import Arrival, Before
from ragbed.retrieval.embedders.prefixes import settings_of
from ragbed.retrieval.filters.metadata import Metadata
from ragbed.retrieval.settings import IndexSettings
from ragbed.retrieval.storage.cache import CachedEmbedder
from ragbed.retrieval.storage.manifest import EmbedderEntry, Manifest, ShardEntry, check_embedder
from ragbed.retrieval.types import Embedder, FieldValue, Matrix
from ragbed.retrieval.vector_settings import ChosenVectors, Flat, VectorKind


class LazyEmbedder:
    """An embedder that is opened when it is needed. Where the index in a folder is carried on, whose manifest is given,
    it has to be the one that the index was made with."""

    def __init__(self, opens: Callable[[], Embedder], manifest: Manifest | None, folder: Path) -> None:
        self._opens = opens
        self._manifest = manifest
        self._folder = folder

    @cached_property
    def opened(self) -> CachedEmbedder:
        """Raises ModelError where it is not on this machine, IndexFolderError where it is not the index's."""
        embedder = CachedEmbedder(self._opens())
        if self._manifest is not None:
            check_embedder(self._manifest, embedder, self._folder)
        return embedder

    @property
    def identity(self) -> str:
        return self.opened.identity if self._manifest is None else self._manifest.embedder.identity

    @property
    def dimension(self) -> int:
        return self.opened.dimension if self._manifest is None else self._manifest.embedder.dimension

    @property
    def embedded(self) -> int:
        """Texts that the model embedded."""
        return self.opened.embedded if "opened" in vars(self) else 0

    def entry(self) -> EmbedderEntry:
        """Return the entry of the manifest."""
        if self._manifest is not None:
            return self._manifest.embedder
        used = self.opened
        return EmbedderEntry(name=used.name, identity=used.identity, dimension=used.dimension, window=used.window,
                             choice=settings_of(used.inner))


@dataclass(frozen=True, slots=True)
class BuildJob:
    """A build: its place, settings and embedder, and the index before."""

    out: Path
    settings: IndexSettings
    before: Before | None  # the index that stands there; None where none can be used
    embedder: LazyEmbedder
    metadata: Metadata  # of each source
    carried: bool = False  # the index before is carried on: what it says of documents, and what it skipped, stays
    total: int | None = None  # how many documents will arrive; None where unknown
    windows: int | None = None  # how many are expected; None where unknown
    shard: ShardEntry | None = None  # None where it is a whole index

    @property
    def vectors(self) -> VectorKind:
        """How vectors are searched: those of a shard as they are, since the merged index has its own way."""
        return Flat() if self.shard else self.settings.vectors

    def choose(self, count: int, dimension: int) -> ChosenVectors:
        """Choose how so many vectors of so many dimensions are searched; raise SettingsError where they cannot be."""
        return self.vectors.choose(count, dimension)

    def metadata_of(self, source: str) -> Mapping[str, FieldValue]:
        """Return the fields of a source; of one without any, where the index is carried on, those of the index."""
        held = self.carried and self.before is not None and source in self.before.manifest.sources
        if source in self.metadata or not held or self.before is None:
            return self.metadata.get(source, {})
        return self.before.documents.metadata.get(self.before.manifest.sources[source].document, {})


TITLE_CHARACTERS = 120  # of a title, what is embedded in front of each chunk: some web pages put a paragraph there
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
    """A document, cut."""

    arrival: Arrival
    header: str  # embedded in front of each window
    metadata: Mapping[str, FieldValue]
    chunks: list[Chunk]
    windows: list[int]  # the number of vectors of each chunk
    texts: list[str]  # every window as it is embedded; empty where `vectors` are known
    vectors: Matrix | None = None  # of the windows, float32 (windows, dimension), where the index before has them


def cut(job: BuildJob, arrival: Arrival) -> Piece:
    """Cut a document; chunks and vectors that must be equal are taken out of the index before. Raises ModelError where
    the embedder is not on this machine, and something has to be embedded."""
    document, settings, metadata = arrival.document, job.settings, job.metadata_of(arrival.document.source)
    before = job.before if arrival.same else None
    made = None if before is None else before.manifest.settings
    if not settings.titled:
        header = ""
    elif before is not None and made is not None and made.titled and (
            before.manifest.embedder.identity == job.embedder.identity):
        header = before.documents.headers[document.id]
    else:
        header = fitting_header(document, job.embedder.opened)
    if before is not None and made is not None and (made.chunker, made.formats) == (settings.chunker, settings.formats):
        chunks = before.chunks(document.id)
    else:
        chunks = [chunk for format in settings.formats for chunk in settings.chunker.chunk(document, format)]
    if (before is not None and before.alike(settings, job.embedder.identity)
            and before.documents.headers[document.id] == header):
        vectors = before.vectors(document.id)
        if vectors is not None:
            return Piece(arrival, header, metadata, chunks, before.windows(document.id), [], vectors)
    contents = [chunk.content for chunk in chunks]
    spans = job.embedder.opened.windows(contents, header)
    texts = [header + content[start:end] for content, windows in zip(contents, spans, strict=True)
             for start, end in windows]
    return Piece(arrival, header, metadata, chunks, list(map(len, spans)), texts)
