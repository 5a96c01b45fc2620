"""Documents that a build has parsed, kept until it ends: one that was killed does not parse them again.

The index that stands in the folder before it is built anew: what is still true of it is not done again.
"""
from __future__ import annotations

import json
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from documents.errors import IndexFolderError, SettingsError
from documents.places import cache_dir
from documents.types import Chunk, Document, Page, digest
from retrieval.settings import IndexSettings
from retrieval.storage.files import hold, unwritable
from retrieval.storage.manifest import CHUNKS, DOCUMENTS, VECTORS, Manifest, SourceEntry, check_files, read_manifest
from retrieval.storage.tables import ChunkTable, DocumentTable
from retrieval.types import Value
from retrieval.vectors import VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from retrieval.embedder import Matrix

ABANDONED = 7 * 24 * 3_600
"""Seconds after which what a killed build has parsed is thrown away: nobody continues it."""


class Staging:
    """Parsed documents by key, in one SQLite file of the cache; to be used while `alone` with the folder.

    Every document is committed by itself, and is there whole or not at all, whenever the process is killed.

    Raises:
        SettingsError: the file cannot be made, read or written.
    """

    def __init__(self, out: Path) -> None:
        self.path = _folder() / f"{digest(os.path.realpath(out))}.sqlite"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(error) from error
        _clean(self.path)
        with self._named():
            self._database = self._opened()

    def __contains__(self, key: str) -> bool:
        with self._named():
            return self._database.execute("SELECT 1 FROM parsed WHERE key = ?", [key]).fetchone() is not None

    def get(self, key: str) -> Document | None:
        """The document of that key; None where there is none, or none that is whole."""
        with self._named():
            row = self._database.execute("SELECT document FROM parsed WHERE key = ?", [key]).fetchone()
        try:
            fields = json.loads(zlib.decompress(row[0])) if row else None
        except (zlib.error, ValueError):
            return None
        if fields is None:
            return None
        return Document(**{**fields, "pages": tuple(Page(**page) for page in fields["pages"])})

    def put(self, key: str, document: Document) -> None:
        """Keep a document, durably against a kill."""
        packed = zlib.compress(json.dumps(asdict(document)).encode(), 1)
        with self._named(), self._database:
            self._database.execute("INSERT OR REPLACE INTO parsed VALUES (?, ?)", [key, packed])

    def close(self) -> None:
        """Let go of the file, which stays for the build that continues."""
        self._database.close()

    def remove(self) -> None:
        """The build has ended: nothing of this is needed any more."""
        self.close()
        _remove(self.path)

    def _opened(self) -> sqlite3.Connection:
        try:
            return _connected(self.path)
        except sqlite3.OperationalError:
            raise  # a full disk, or a folder that cannot be written
        except sqlite3.DatabaseError:  # damaged: what it held is parsed again
            _remove(self.path)
            return _connected(self.path)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise SettingsError(f"cannot use {self.path} ({error}): free space or set RAGBED_CACHE to another folder, "
                                "and the same command continues") from error


def _folder() -> Path:
    return cache_dir() / "building"


def _connected(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level="DEFERRED")
    try:
        database.execute("PRAGMA journal_mode=WAL")
        # A kill loses nothing all the same, and what a loss of power damages is parsed again.
        database.execute("PRAGMA synchronous=OFF")
        with database:
            database.execute("CREATE TABLE IF NOT EXISTS parsed (key TEXT PRIMARY KEY, document BLOB NOT NULL)")
    except sqlite3.DatabaseError:
        database.close()
        raise
    return database


def _clean(own: Path) -> None:
    """Throw away what other builds left long ago, unless one of them is at work."""
    for path in own.parent.glob("*.sqlite"):
        with suppress(OSError):  # BlockingIOError too: whoever holds the lock is building
            if path != own and time.time() - path.stat().st_mtime > ABANDONED:
                with closing(hold(cache_dir() / "locks" / path.stem)):
                    _remove(path)


def _remove(path: Path) -> None:
    for name in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        name.unlink(missing_ok=True)


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
