"""Things that earlier builds left: documents that a killed one has parsed, and the index that stands in the folder."""
from __future__ import annotations

import json
import os
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from ragbed.documents.errors import DocumentError, IndexFolderError, SettingsError
from ragbed.documents.paths import cache_dir
from ragbed.documents.types import Chunk, Document, Page, digest
from ragbed.retrieval.settings import IndexSettings
from ragbed.retrieval.storage.manifest import CHUNKS, DOCUMENTS, Manifest, check_files, read_manifest
from ragbed.retrieval.storage.parquet import ChunkTable, DocumentTable
from ragbed.retrieval.types import Matrix, Vectors

ABANDONED = 7 * 24 * 3_600  # seconds after which what a killed build has parsed is thrown away: nobody continues it


class Staging:
    """Parsed documents by key, a file each in a folder of the cache; to be used while `alone` with the index. A
    document is there whole or not at all, whenever the process is killed; why sources could not be parsed is known by
    their names until the process ends, for the estimate may have waited long for one. Raises SettingsError where the
    folder cannot be made or written."""

    def __init__(self, out: Path) -> None:
        self.path = cache_dir() / "building" / digest(os.path.realpath(out))
        self.refused: dict[str, DocumentError] = {}
        with self._named():
            self.path.mkdir(parents=True, exist_ok=True)
        for other in self.path.parent.iterdir():
            with suppress(OSError):  # Timeout too: whoever holds the lock is building
                if other != self.path and time.time() - other.stat().st_mtime > ABANDONED:
                    with FileLock(cache_dir() / "locks" / other.name, timeout=0):
                        shutil.rmtree(other)

    def __contains__(self, key: str) -> bool:
        return (self.path / key).is_file()

    def get(self, key: str) -> Document | None:
        """Return the document of that key; None where there is none, or none that is whole."""
        try:
            fields = json.loads(zlib.decompress((self.path / key).read_bytes()))
        except (OSError, zlib.error, ValueError):
            return None
        return Document(**{**fields, "pages": tuple(Page(**page) for page in fields["pages"])})

    def put(self, key: str, document: Document) -> None:
        """Keep a document, durably against a kill."""
        partial = self.path / f"{key}.partial"
        with self._named():
            partial.write_bytes(zlib.compress(json.dumps(asdict(document)).encode(), 1))
            os.replace(partial, self.path / key)

    def remove(self) -> None:
        """The build has ended: nothing of this is needed any more."""
        shutil.rmtree(self.path, ignore_errors=True)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SettingsError(f"cannot use {self.path} ({error.strerror}): free space or set RAGBED_CACHE to another "
                                "folder, and the same command continues") from error


@dataclass(frozen=True, slots=True)
class Arrival:
    """A document on its way into the index."""

    document: Document
    sha256: str  # of what it was made from
    parser: str  # what made it
    fresh: bool = False  # parsed now
    same: bool = False  # the index before holds it under this name, with this rendering


class Before:
    """An index whose files are what they should be."""

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        self.manifest = manifest
        self.documents = DocumentTable(folder / DOCUMENTS)
        self._chunks = ChunkTable(folder / CHUNKS)
        self._folder = folder

    @classmethod
    def checked(cls, folder: Path) -> Before:
        """Return the index in a folder; IndexFolderError where there is none, or it is damaged."""
        try:
            manifest = read_manifest(folder)
            check_files(manifest, folder)
            return cls(manifest, folder)
        except OSError as error:
            raise IndexFolderError(f"{folder} cannot be read: {error.strerror or error}") from error

    def alike(self, settings: IndexSettings, embedder: str) -> bool:
        """Tell whether what stays the same is cut and embedded as it is here; `embedder` is the identity of one."""
        made = self.manifest.settings
        return (made.chunker, made.formats, made.titled, self.manifest.embedder.identity) == (
            settings.chunker, settings.formats, settings.titled, embedder)

    def parser(self, source: str) -> str:
        """Return the version of the parser that read a source."""
        return self.manifest.sources[source].parser or self.manifest.parser

    def chunks(self, document: str) -> list[Chunk]:
        """Return the chunks of a document, in their order."""
        return self._chunks[slice(*self._rows(document))]

    def windows(self, document: str) -> list[int]:
        """Return the number of vectors of each chunk of a document."""
        first, end = self._rows(document)
        counts: list[int] = np.diff(self._firsts[first:end + 1]).tolist()
        return counts

    def vectors(self, document: str) -> Matrix | None:
        """Return those of a document's chunks; None where the index keeps them only nearly as they were, or a store
        would have to be asked: the cache has them."""
        if not self.manifest.kind.in_folder:
            return None
        first, end = self._rows(document)
        return self._vectors.stored(int(self._firsts[first]), int(self._firsts[end]))

    def _rows(self, document: str) -> tuple[int, int]:
        return self._chunks.spans.get(document, (0, 0))

    @cached_property
    def stored(self) -> Vectors | None:
        """The vectors in a store; None where they are in the folder, or the store does not hold them any more."""
        if not self.manifest.kind.in_folder:
            with suppress(IndexFolderError):
                return self._vectors
        return None

    @cached_property
    def _vectors(self) -> Vectors:
        return self.manifest.kind.open(self._folder, self.manifest.embedder.dimension)

    @cached_property
    def _firsts(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self._chunks.windows(), dtype=np.int64)])
