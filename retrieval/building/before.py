"""The index that stands in the folder before it is built anew: what is still true of it is not done again."""
from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from documents.errors import IndexFolderError
from documents.types import Chunk, Document
from retrieval.settings import IndexSettings
from retrieval.storage.manifest import CHUNKS, DOCUMENTS, VECTORS, Manifest, SourceEntry, check_files, read_manifest
from retrieval.storage.tables import ChunkTable, DocumentTable
from retrieval.types import Value
from retrieval.vectors import VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from retrieval.embedder import Matrix


class Before:
    """An index whose files are what they should be."""

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        self.manifest = manifest
        self.documents = DocumentTable(folder / DOCUMENTS)
        self._chunks = ChunkTable(folder / CHUNKS)
        self._folder = folder

    @classmethod
    def there(cls, folder: Path) -> Before | None:
        """The index in a folder; None where there is none, or none to be trusted: it will be replaced."""
        try:
            return cls.checked(folder)
        except IndexFolderError:
            return None

    @classmethod
    def checked(cls, folder: Path) -> Before:
        """The index in a folder.

        Raises:
            IndexFolderError: there is none, or it is damaged.
        """
        try:
            manifest = read_manifest(folder)
            check_files(manifest, folder)
            return cls(manifest, folder)
        except OSError as error:
            raise IndexFolderError(f"{folder} cannot be read: {error.strerror or error}") from error

    def alike(self, settings: IndexSettings, embedder: str) -> bool:
        """Whether what stays the same is cut and embedded as it is here; `embedder` is the identity of one."""
        made = self.manifest.settings
        return (made.chunker, made.formats, made.titled, self.manifest.embedder.identity) == (
            settings.chunker, settings.formats, settings.titled, embedder)

    def parser(self, source: str) -> str:
        """What parsed a source."""
        return self.manifest.sources[source].parser or self.manifest.parser

    def entry(self, source: str) -> SourceEntry | None:
        return self.manifest.sources.get(source)

    def document(self, source: str) -> Document:
        return self.documents[self.manifest.sources[source].document]

    def header(self, document: str) -> str | None:
        """What the chunks of a document are searched with in front; None where the index does not say so."""
        return None if self.documents.headers is None else self.documents.headers[document]

    def metadata(self, document: str) -> dict[str, Value]:
        return self.documents.metadata.get(document, {})

    def chunks(self, document: str) -> list[Chunk]:
        """The chunks of a document, in their order."""
        first, end = self._chunks.spans.get(document, (0, 0))
        return self._chunks[first:end]

    def windows(self, document: str) -> list[int]:
        """The number of vectors of each chunk of a document."""
        first, end = self._chunks.spans.get(document, (0, 0))
        counts: list[int] = (self._firsts[first + 1:end + 1] - self._firsts[first:end]).tolist()
        return counts

    def vectors(self, document: str) -> Matrix | None:
        """Those of a document's chunks; None where the index keeps them only nearly as they were."""
        first, end = self._chunks.spans.get(document, (0, 0))
        return self._vectors.stored(int(self._firsts[first]), int(self._firsts[end]))

    @cached_property
    def _vectors(self) -> VectorIndex:
        return VectorIndex.read(self._folder / VECTORS, self.manifest.kind)

    @cached_property
    def _firsts(self) -> NDArray[np.int64]:
        import numpy as np

        return np.concatenate([[0], np.cumsum(self._chunks.windows(), dtype=np.int64)])
