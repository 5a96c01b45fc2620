"""Results of earlier builds: the existing index, and documents that a killed build parsed."""
from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from weakref import finalize

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from ragbed.documents.errors import DocumentError, IndexFolderError, SettingsError
from ragbed.documents.paths import cache_dir
from ragbed.documents.types import Chunk, Document, digest
from ragbed.retrieval.index_settings import IndexSettings
from ragbed.retrieval.storage.manifest import CHUNKS, DOCUMENTS, Manifest, check_files, read_manifest
from ragbed.retrieval.storage.parquet import ChunkTable, DocumentTable
from ragbed.retrieval.types import Matrix, Vectors
from ragbed.retrieval.vectors import VectorKind

_ABANDONED = 7 * 24 * 3_600  # seconds after which the parsed documents of a killed build are deleted


class ParsedDocuments:
    """Cache of parsed documents, so that a killed build does not parse them again.

    An SQLite file, because some disks take minutes to delete a hundred thousand files; hold `exclusive(index)` while
    using it. Parse errors are kept in memory, so that the build does not wait again for files that failed during the
    estimate. Raises SettingsError if the file cannot be written.

    Attributes:
        errors: parse errors by source.
        added: keys of the documents that this process parsed.
    """

    def __init__(self, out: Path) -> None:
        self.path = cache_dir() / "building" / digest(os.path.realpath(out))
        self.errors: dict[str, DocumentError] = {}
        self.added: set[str] = set()
        with self._write_errors():
            self.path.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(self.path / "documents.sqlite", isolation_level=None,
                                             check_same_thread=False)
            self._close = finalize(self, self._database.close)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute("CREATE TABLE IF NOT EXISTS documents (key TEXT PRIMARY KEY, json BLOB NOT NULL)")
            self._keys = {key for key, in self._database.execute("SELECT key FROM documents")}
        for other in self.path.parent.iterdir():
            with suppress(OSError):  # including Timeout, if another process is building
                if other != self.path and time.time() - other.stat().st_mtime > _ABANDONED:
                    with FileLock(cache_dir() / "locks" / other.name, timeout=0):
                        shutil.rmtree(other)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def get(self, key: str) -> Document | None:
        """Return the document of a key; None if there is no complete one."""
        with self._write_errors():
            row = self._database.execute("SELECT json FROM documents WHERE key = ?", [key]).fetchone()
        try:
            return None if row is None else Document.from_json(json.loads(zlib.decompress(row[0])))
        except (zlib.error, ValueError):
            return None

    def put(self, key: str, document: Document) -> None:
        """Store a document."""
        stored = zlib.compress(json.dumps(asdict(document)).encode(), 1)
        with self._write_errors():
            self._database.execute("INSERT OR REPLACE INTO documents VALUES (?, ?)", [key, stored])
        self._keys.add(key)
        self.added.add(key)

    def remove(self) -> None:
        """Delete the cache after a build that completed."""
        self._close()
        shutil.rmtree(self.path, ignore_errors=True)

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise SettingsError(f"cannot write {self.path} ({why}); free space, delete it, or set RAGBED_CACHE to "
                                "another folder; rerun the command to continue") from error


@dataclass(frozen=True, slots=True)
class Incoming:
    """A document to add to the index."""

    document: Document
    sha256: str  # hash of the bytes that it was parsed from
    parser: str  # version of the parser
    fresh: bool = False  # whether it was parsed now
    same: bool = False  # whether it is unchanged: same name and renderings as in the previous index


class PreviousIndex:
    """The index that a build replaces. Its files have been checked against their hashes."""

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        self.manifest = manifest
        self.documents = DocumentTable(folder / DOCUMENTS)
        self._chunks = ChunkTable(folder / CHUNKS)
        self._folder = folder
        self._usable: bool | None = None
        self.gave_rounded = False  # whether `vectors` has returned vectors that this index rounded

    @classmethod
    def open(cls, folder: Path) -> PreviousIndex:
        """Open an index folder. Raises IndexFolderError if it is not an index, or is damaged."""
        try:
            manifest = read_manifest(folder)
            check_files(manifest, folder)
            return cls(manifest, folder)
        except OSError as error:
            raise IndexFolderError(f"{folder} cannot be read: {error.strerror or error}") from error

    def same_windows(self, settings: IndexSettings, embedder: str) -> bool:
        """Tell whether these settings and the embedder of this identity give unchanged documents the same vectors."""
        made = self.manifest.settings
        return (made.chunker, made.formats, made.titled, self.manifest.embedder.identity) == (
            settings.chunker, settings.formats, settings.titled, embedder)

    def parser(self, source: str) -> str:
        """Return the version of the parser that read a source."""
        return self.manifest.sources[source].parser or self.manifest.parser

    def chunks(self, document: str) -> list[Chunk]:
        """Return the chunks of a document in order."""
        return self._chunks[slice(*self._rows(document))]

    def windows(self, document: str) -> list[int]:
        """Return the number of vectors of each chunk of a document."""
        first, end = self._rows(document)
        counts: list[int] = np.diff(self._firsts[first:end + 1]).tolist()
        return counts

    def vectors(self, document: str, wanted: VectorKind) -> Matrix | None:
        """Return the vectors of a document's chunks for an index of the kind `wanted`; None if the index does not have
        what that kind needs, or keeps them in a store. Then take them from the cache of embeddings."""
        made = self.manifest.kind
        if self._usable is None:  # once for all documents, because the choice depends on the free memory
            self._usable = made.in_folder and (not made.rounds or made == wanted.choose(
                self.manifest.windows, self.manifest.embedder.dimension).settings)
        if not self._usable:
            return None
        first, end = self._rows(document)
        self.gave_rounded = made.rounds
        return self._vectors.stored(int(self._firsts[first]), int(self._firsts[end]))

    def _rows(self, document: str) -> tuple[int, int]:
        return self._chunks.spans.get(document, (0, 0))

    @cached_property
    def remote_vectors(self) -> Vectors | None:
        """The vectors if they are in an external store that can be reached, otherwise None."""
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
