"""Chunk a document for an index, and cut its chunks into windows. Each window is embedded with a header in front."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ragbed.documents.headers import plain_header
from ragbed.documents.types import Chunk, Document, FieldValue
from ragbed.retrieval.building.previous_index import Incoming, PreviousIndex
from ragbed.retrieval.embedders.opening import NoEmbedder
from ragbed.retrieval.embedders.prefixes import settings_of
from ragbed.retrieval.filters.metadata import Metadata
from ragbed.retrieval.index_settings import IndexSettings
from ragbed.retrieval.storage.cache import CachedEmbedder
from ragbed.retrieval.storage.manifest import EmbedderEntry, Manifest, ShardEntry, check_embedder
from ragbed.retrieval.types import Embedder, Matrix
from ragbed.retrieval.vector_index import Flat
from ragbed.retrieval.vectors import ChosenVectors, VectorKind


class LazyEmbedder:
    """An embedder that is opened on first use.

    Args:
        open: opens the embedder.
        manifest: manifest of the index to extend, which must have the same embedder; None for a new index.
        folder: folder of the index, for messages.
    """

    def __init__(self, open: Callable[[], Embedder], manifest: Manifest | None, folder: Path) -> None:
        self._open = open
        self._manifest = manifest
        self._folder = folder

    @cached_property
    def opened(self) -> CachedEmbedder:
        """Open the embedder. Raises ModelError if it is not here, and IndexFolderError if the index has a different
        one."""
        embedder = CachedEmbedder(self._open())
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
    def computes(self) -> bool:
        """Whether vectors are computed; False with `embedder: none`."""
        return self.identity != NoEmbedder.identity

    @property
    def embedded(self) -> int:
        """Number of texts that the model has embedded."""
        return self.opened.embedded if "opened" in vars(self) else 0

    def entry(self) -> EmbedderEntry:
        """Return the embedder's entry for the manifest."""
        if self._manifest is not None:
            return self._manifest.embedder
        used = self.opened
        return EmbedderEntry(name=used.name, identity=used.identity, dimension=used.dimension, window=used.window,
                             choice=settings_of(used.inner))


@dataclass(frozen=True, slots=True)
class BuildJob:
    """Everything that a build needs to know, except its sources."""

    out: Path
    settings: IndexSettings
    previous: PreviousIndex | None  # the existing index; None if there is no usable one
    embedder: LazyEmbedder
    metadata: Metadata  # fields by source
    extends: bool = False  # whether to keep the previous index's metadata and skipped sources
    total: int | None = None  # expected number of documents; None if unknown
    windows: int | None = None  # expected number of windows; None if unknown
    shard: ShardEntry | None = None  # which shard of an index this is; None for a whole index

    @property
    def vectors(self) -> VectorKind:
        """How vectors are searched. A shard keeps plain vectors, because merging chooses the kind."""
        return Flat() if self.shard else self.settings.vectors

    def choose(self, count: int, dimension: int) -> ChosenVectors:
        """Choose how vectors are searched. Raises SettingsError if a setting does not suit them."""
        return self.vectors.choose(count, dimension)

    def metadata_of(self, source: str) -> Mapping[str, FieldValue]:
        """Return the fields that the user gave for a source. If an extended index gets no new ones for it, the previous
        ones stay."""
        held = self.extends and self.previous is not None and source in self.previous.manifest.sources
        if source in self.metadata or not held or self.previous is None:
            return self.metadata.get(source, {})
        return self.previous.documents.given.get(self.previous.manifest.sources[source].document, {})


def fitting_header(document: Document, embedder: Embedder) -> str:
    """Return `plain_header` and a line feed, cut to a quarter of the window. The cut is needed for Korean, with up to
    three tokens per character."""
    header = plain_header(document.source, document.title)
    while header and len(embedder.windows([4 * f"{header}\n"])[0]) > 1:
        header = header[:len(header) * 7 // 8].strip()
    return f"{header}\n"


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document, its chunks and their windows.

    Attributes:
        header: text put in front of each window before embedding.
        metadata: fields that the user gave for the source.
        windows: number of vectors of each chunk.
        texts: embedded text of each window; empty if `vectors` are known.
        vectors: vectors of the windows, float32 of shape (windows, dimension), if the previous index has them.
    """

    incoming: Incoming
    header: str
    metadata: Mapping[str, FieldValue]
    chunks: list[Chunk]
    windows: list[int]
    texts: list[str]
    vectors: Matrix | None = None

    @property
    def fields(self) -> Mapping[str, FieldValue]:
        """Fields to filter by: those of the document itself, and those that the user gave, which win."""
        return {**self.incoming.document.fields, **self.metadata}


def chunk_document(job: BuildJob, incoming: Incoming) -> ChunkedDocument:
    """Chunk a document. Unchanged chunks and vectors are taken from the previous index. Raises ModelError if something
    must be embedded, and the embedder is not on this machine."""
    document, settings, metadata = incoming.document, job.settings, job.metadata_of(incoming.document.source)
    previous = job.previous if incoming.same else None
    made = None if previous is None else previous.manifest.settings
    if not settings.titled:
        header = ""
    elif previous is not None and made is not None and made.titled and (
            previous.manifest.embedder.identity == job.embedder.identity):
        header = previous.documents.headers[document.id]
    else:
        header = fitting_header(document, job.embedder.opened)
    if previous is not None and made is not None and (
            made.chunker, made.formats) == (settings.chunker, settings.formats):
        chunks = previous.chunks(document.id)
    else:
        chunks = [chunk for format in settings.formats for chunk in settings.chunker.chunk(document, format)]
    if (previous is not None and previous.same_windows(settings, job.embedder.identity)
            and previous.documents.headers[document.id] == header):
        vectors = previous.vectors(document.id, job.vectors)
        if vectors is not None:
            return ChunkedDocument(incoming, header, metadata, chunks, previous.windows(document.id), [], vectors)
    contents = [chunk.content for chunk in chunks]
    spans = job.embedder.opened.windows(contents, header)
    texts = [header + content[start:end] for content, windows in zip(contents, spans, strict=True)
             for start, end in windows]
    return ChunkedDocument(incoming, header, metadata, chunks, list(map(len, spans)), texts)
