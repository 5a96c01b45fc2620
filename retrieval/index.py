"""Open and search an index: a folder of chunks and their vectors."""
from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.errors import IndexFolderError
from ragbed.documents.types import Chunk, Document, FieldValue, digest
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.filters.filtered_collection import filter_collection
from ragbed.retrieval.filters.parser import normalise_filter
from ragbed.retrieval.retrievers.dense import DenseRetriever, nearest_chunks, window_vectors
from ragbed.retrieval.storage.cache import CachedEmbedder, check_fit
from ragbed.retrieval.storage.folder import current_folder
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
from ragbed.retrieval.types import Embedder, Hit, Matrix

_MAX_RETRIES = 20  # attempts to open an index that another process keeps replacing


class Index:
    """Chunks and their vectors. Searching is thread-safe.

        index = Index.open("idx")
        (hits,) = index.search(["How long is the warranty?"], k=5)

    Attributes:
        folder: folder that the content was read from.
        chunks: chunks ordered by document, format and offset. Each is read when needed.
        among: None, because all chunks may be found.
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
            raise IndexFolderError(f"{folder} is damaged: its chunks, documents and vectors do not belong together; "
                                   "rebuild it")

    @classmethod
    def open(cls, path: str | Path, embedder: Embedder | None = None, verify: bool = False) -> Index:
        """Open an index folder after comparing every file with its hash. Tries again if another process replaces it.

        Large files that have not changed since the last comparison are not compared again
        (`retrieval.storage.files.unchanged_sha256`).

        Args:
            embedder: embeds the queries. Default: the one in the manifest, opened at the first search.
            verify: compare every file, even if it has not changed.

        Raises:
            IndexFolderError: the folder is missing or damaged, or was made by another version or embedder.
        """
        for _ in range(_MAX_RETRIES):
            folder = current_folder(Path(path))
            state = _state(folder)
            try:
                manifest = read_manifest(folder)
                if embedder is not None:
                    check_embedder(manifest, embedder, folder)
                check_files(manifest, folder, verify)
                opened = cls(folder, manifest, embedder)
            except (IndexFolderError, OSError) as error:
                if _state(current_folder(Path(path))) == state:
                    if isinstance(error, OSError):
                        raise IndexFolderError(f"{folder} cannot be read: {error.strerror or error}") from error
                    raise
            else:
                if _state(current_folder(Path(path))) == state:
                    opened._place, opened._state = Path(path), state
                    return opened
        raise IndexFolderError(f"{path} was replaced several times while it was read; wait until the other build ends")

    @property
    def replaced(self) -> bool:
        """Whether another index has replaced this one on disk. This object keeps the old content."""
        return _state(current_folder(self._place)) not in (None, self._state)

    @property
    def content(self) -> str:
        """Hash of the chunks and of the embedder's identity."""
        return content_of_index(self.manifest)

    @property
    def text_hash(self) -> str:
        """Hash of the searched texts of the chunks."""
        return self.manifest.content

    @property
    def embedder(self) -> Embedder:
        """The embedder that made the index. Raises ModelError if it is not on this machine. Raises IndexFolderError if
        this name now refers to a different model."""
        with self._lock:
            if self._searching is None:
                embedder = open_embedder(self.manifest.embedder.choice or self.manifest.embedder.name, self.folder)
                check_embedder(self.manifest, embedder, self.folder)
                self._searching = CachedEmbedder(embedder)
            return self._searching

    def texts(self) -> Iterator[str]:
        """Yield the searched text of each chunk: the header of its document, and its content."""
        return self.chunks.texts(self._documents.headers)

    def nearest(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None) -> list[list[tuple[int, float]]]:
        """Return for each unit vector at most `k` rows of chunks with the cosine of their nearest window, best first.
        The mask `among`, of shape (chunks,), restricts the search; None allows all. Raises ModelError if a query's
        dimension differs from the index's, or its numbers are not finite."""
        check_fit(queries, self._vectors.dimension, self.manifest.embedder.name)
        return nearest_chunks(self._vectors, self._owners, queries, k, among)

    def vectors(self, chunks: Sequence[Chunk]) -> tuple[Matrix, NDArray[np.intp]]:
        """Return the vectors of the chunks' windows. They are embedded again if the index stores only codes."""
        return window_vectors(chunks, self._stored_vectors, lambda document: self._documents.headers.get(document, ""),
                          lambda: self.embedder)

    def metadata(self) -> Iterator[Mapping[str, FieldValue]]:
        """Yield each chunk's metadata: `document`, `source`, `title`, `format`, `page` (the first) and the user's
        fields."""
        sources, titles, fields = self._documents.sources, self._documents.titles, self._documents.metadata
        for document, format, page in self.chunks.fields():
            yield {**fields.get(document, {}), "document": document, "source": sources[document],
                   "title": titles[document], "format": format, "page": page}

    def search(self, queries: Sequence[str], k: int, where: Any = ()) -> list[list[Hit]]:
        """Search by vectors, and return the hits of each query. For other retrievers, open their settings over the
        index (`retrieval.retrievers`).

        Args:
            where: filter on chunks, such as `year in (2022, 2023)` or `{"year": ">= 2022"}`; it decides before the
                search what can be found.

        Raises:
            SettingsError: `queries` is a text instead of a list, or the filter is invalid or names an unknown field.
        """
        return DenseRetriever(filter_collection(self, normalise_filter(where))).search(queries, k)

    def check_embedder(self) -> None:
        """Load the embedder, so that its errors are raised now and not at the first search."""
        _ = self.embedder

    def chunk(self, id: str) -> Chunk:
        """Return the chunk of an id. Raises KeyError if it is unknown."""
        return self.chunks[self.chunks.row(id)]

    def document(self, id: str) -> Document:
        """Return the document of an id, with both renderings. Raises KeyError if it is unknown."""
        return self._documents[id]

    def documents(self) -> list[Document]:
        """Return all documents in the order of the index."""
        return list(self._documents)

    def source_of(self, document: str) -> str:
        """Return the relative path of a document's source. Raises KeyError if the id is unknown."""
        return self._documents.sources[document]

    def _stored_vectors(self, chunk: Chunk) -> Matrix | None:
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
    """Return a hash of everything that determines the hits: the chunks, their searched texts, the embedder, and, for
    approximate search, the settings of the vectors."""
    return digest(manifest.content, manifest.embedder.identity, *filter(None, [manifest.kind.content_key()]))


def allow_servers(manifest: Manifest) -> None:
    """Remember that the user allows sending queries and keys to the servers that an index names."""
    open_embedder(manifest.embedder.choice or manifest.embedder.name)
    manifest.kind.allow_server()


def _state(folder: Path) -> tuple[Path, int, int] | None:
    """Return a value that changes when the folder is replaced or moved, even by equal content."""
    try:
        found = (folder / MANIFEST).stat()
    except OSError:
        return None
    return folder, found.st_ino, found.st_mtime_ns
