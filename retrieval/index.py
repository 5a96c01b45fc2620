"""Index: a folder of chunks and their vectors, opened and searched."""
from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.errors import IndexFolderError
from ragbed.documents.types import Chunk, Document, digest
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.retrievers.dense import DenseRetriever, nearest_chunks, windows_of
from ragbed.retrieval.storage.cache import CachedEmbedder, check_fit
from ragbed.retrieval.storage.folder import settled
from ragbed.retrieval.storage.manifest import (
    CHUNKS,
    DOCUMENTS,
    MANIFEST,
    Manifest,
    check_embedder,
    check_files,
    read_manifest,
)
from ragbed.retrieval.storage.parquet import ChunkTable, DocumentTable
from ragbed.retrieval.types import Embedder, FieldValue, Hit, Matrix

_REPLACED = 20  # how often an index is read anew that was replaced while being read


class Index:
    """Chunks and their vectors. Searching is thread-safe.

    Attributes:
        folder: where the content was read from.
        chunks: in the order of documents, formats and offsets; each is read when asked for.
        among: None, for all of them may be found.
    """

    among: None = None

    def __init__(self, folder: Path, manifest: Manifest, embedder: Embedder | None) -> None:
        self.folder = folder
        self.manifest = manifest
        self.chunks = ChunkTable(folder / CHUNKS)
        self._documents = DocumentTable(folder / DOCUMENTS)
        self._vectors = manifest.kind.open(folder, manifest.embedder.dimension)
        self._searching = embedder
        self._lock = threading.Lock()
        self._place, self._state = folder, _state(folder)
        windows = self.chunks.windows()
        if not ((windows > 0).all() and windows.sum(dtype=np.int64) == len(self._vectors)
                and self.chunks.documents() <= self._documents.sources.keys()):
            raise IndexFolderError(f"{folder} is damaged: its chunks, documents and vectors are not of one index; "
                                   "build it anew")

    @classmethod
    def open(cls, path: str | Path, embedder: Embedder | None = None, verify: bool = False) -> Index:
        """Return the index in a folder, after every file was compared with its hash; read again if replaced meanwhile.

        A large file that was compared before, and that the system says was not touched since, is not read for it again
        (`retrieval.storage.files.unchanged_sha256`). Chunks, documents and vectors are read when they are asked for.

        Args:
            embedder: embeds the queries; if None, the one that the manifest names, looked up at the first
                search.
            verify: compare every byte, whatever the system says.

        Raises:
            IndexFolderError: the folder is missing, damaged, of another version or of another embedder.
        """
        for _ in range(_REPLACED):
            folder = settled(Path(path))
            state = _state(folder)
            try:
                manifest = read_manifest(folder)
                if embedder is not None:
                    check_embedder(manifest, embedder, folder)
                check_files(manifest, folder, verify)
                opened = cls(folder, manifest, embedder)
            except (IndexFolderError, OSError) as error:
                if _state(settled(Path(path))) == state:
                    if isinstance(error, OSError):
                        raise IndexFolderError(f"{folder} cannot be read: {error.strerror or error}") from error
                    raise
            else:
                if _state(settled(Path(path))) == state:
                    opened._place, opened._state = Path(path), state
                    return opened
        raise IndexFolderError(f"{path} is being replaced again and again: wait for those who build it")

    @property
    def replaced(self) -> bool:
        """Whether another index is in its place by now; what this one has open stays as it was."""
        return _state(settled(self._place)) not in (None, self._state)

    @property
    def content(self) -> str:
        """A hash of the chunks of the index and of their vectors' embedder."""
        return content_of_index(self.manifest)

    @property
    def text_hash(self) -> str:
        """A hash of what the chunks are searched by."""
        return self.manifest.content

    @property
    def embedder(self) -> Embedder:
        """Return the embedder that made the index; raise ModelError where it is not on this machine, and
        IndexFolderError where what has its name there is another."""
        with self._lock:
            if self._searching is None:
                embedder = open_embedder(self.manifest.embedder.choice or self.manifest.embedder.name, self.folder)
                check_embedder(self.manifest, embedder, self.folder)
                self._searching = CachedEmbedder(embedder)
            return self._searching

    def texts(self) -> Iterator[str]:
        """Return the content of each chunk, below the header of its document."""
        return self.chunks.texts(self._documents.headers)

    def nearest(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
        """Return for each unit vector at most `k` rows of chunks with the cosine of their nearest window, best first;
        of the mask `among`, shape (chunks,), None lets all be found. Raises ModelError where a query has another number
        of numbers than the index, or one that is not finite."""
        check_fit(queries, self._vectors.dimension, self.manifest.embedder.name)
        return nearest_chunks(self._vectors, self._owners, queries, k, among)

    def vectors(self, chunks: Sequence[Chunk]) -> tuple[Matrix, NDArray[np.intp]]:
        """Return the windows of chunks; those that the index keeps only nearly as they were are embedded anew."""
        return windows_of(chunks, self._stored, lambda document: self._documents.headers.get(document, ""),
                          lambda: self.embedder)

    def metadata(self) -> Iterator[Mapping[str, FieldValue]]:
        """Give of each chunk its document, source, the document's title, format, first page, and the user's fields."""
        sources, titles, said = self._documents.sources, self._documents.titles, self._documents.metadata
        for document, format, page in self.chunks.fields():
            yield {**said.get(document, {}), "document": document, "source": sources[document],
                   "title": titles[document], "format": format, "page": page}

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Dense search; other retrievers are opened over an index by their settings (`retrieval.retrievers`)."""
        return DenseRetriever(self).search(queries, k)

    def check_embedder(self) -> None:
        """Raise now what the first search would raise."""
        _ = self.embedder

    def chunk(self, id: str) -> Chunk:
        """Return the chunk of that id; KeyError if there is none."""
        return self.chunks[self.chunks.row(id)]

    def document(self, id: str) -> Document:
        """Return the document of that id, with both renderings; KeyError if there is none."""
        return self._documents[id]

    def documents(self) -> list[Document]:
        """Return all documents, in the order of the index."""
        return list(self._documents)

    def source_of(self, document: str) -> str:
        """Return the path, relative to what was indexed, of the document of that id; KeyError if there is none."""
        return self._documents.sources[document]

    def _stored(self, chunk: Chunk) -> Matrix | None:
        try:
            row = self.chunks.row(chunk.id)
        except KeyError:
            return None
        first, end = np.searchsorted(self._owners, [row, row + 1]).tolist()
        return self._vectors.stored(first, end)

    @cached_property
    def _owners(self) -> NDArray[np.intp]:
        return np.repeat(np.arange(len(self.chunks)), self.chunks.windows())


def content_of_index(manifest: Manifest) -> str:
    """Return a hash of what can be found in an index: its chunks, what they are searched by, and how their vectors are.
    An exact index finds what any other exact one finds. Of an approximate one, the settings are a part of it."""
    return digest(manifest.content, manifest.embedder.identity, *filter(None, [manifest.kind.content_key()]))


def allow_servers(manifest: Manifest) -> None:
    """Note that the user trusts the servers that an index names with queries and their keys."""
    open_embedder(manifest.embedder.choice or manifest.embedder.name)
    manifest.kind.allow_server()


def _state(folder: Path) -> tuple[Path, int, int] | None:
    """A state that is another after the folder was replaced or moved, even if its content is the same."""
    try:
        found = (folder / MANIFEST).stat()
    except OSError:
        return None
    return folder, found.st_ino, found.st_mtime_ns
