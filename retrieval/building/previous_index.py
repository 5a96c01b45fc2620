"""Results of earlier builds: the existing index, and documents that a killed build parsed."""
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

_ABANDONED = 7 * 24 * 3_600  # seconds after which the parsed documents of a killed build are deleted


class ParsedDocuments:
    """Cache of parsed documents, so that a killed build does not parse them again.

    One file per document, written atomically; hold `exclusive(index)` while using it. Parse errors are kept in memory,
    because the size estimate may already have waited for them. Raises SettingsError if the folder cannot be written.

    Attributes:
        errors: parse errors by source.
    """

    def __init__(self, out: Path) -> None:
        self.path = cache_dir() / "building" / digest(os.path.realpath(out))
        self.errors: dict[str, DocumentError] = {}
        with self._write_errors():
            self.path.mkdir(parents=True, exist_ok=True)
        for other in self.path.parent.iterdir():
            with suppress(OSError):  # includes Timeout: another process is building
                if other != self.path and time.time() - other.stat().st_mtime > _ABANDONED:
                    with FileLock(cache_dir() / "locks" / other.name, timeout=0):
                        shutil.rmtree(other)

    def __contains__(self, key: str) -> bool:
        return (self.path / key).is_file()

    def get(self, key: str) -> Document | None:
        """Return the document of a key; None if there is no complete one."""
        try:
            fields = json.loads(zlib.decompress((self.path / key).read_bytes()))
        except (OSError, zlib.error, ValueError):
            return None
        return Document(**{**fields, "pages": tuple(Page(**page) for page in fields["pages"])})

    def put(self, key: str, document: Document) -> None:
        """Keep a document. A kill leaves the whole file or none."""
        partial = self.path / f"{key}.partial"
        with self._write_errors():
            partial.write_bytes(zlib.compress(json.dumps(asdict(document)).encode(), 1))
            os.replace(partial, self.path / key)

    def remove(self) -> None:
        """Delete the cache after a build that completed."""
        shutil.rmtree(self.path, ignore_errors=True)

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SettingsError(f"cannot write {self.path} ({error.strerror}); free space, or set RAGBED_CACHE to "
                                "another folder; rerun the command to continue") from error


@dataclass(frozen=True, slots=True)
class Incoming:
    """A document to add to the index."""

    document: Document
    sha256: str  # hash of the bytes that it was parsed from
    parser: str  # version of the parser
    fresh: bool = False  # whether it was parsed now
    same: bool = False  # whether the previous index has it with the same name and renderings


class PreviousIndex:
    """The index that a build replaces. Its files have been checked against their hashes."""

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        self.manifest = manifest
        self.documents = DocumentTable(folder / DOCUMENTS)
        self._chunks = ChunkTable(folder / CHUNKS)
        self._folder = folder

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
        """Tell whether these settings and this embedder's identity give unchanged documents the same chunks and vectors
        as before."""
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

    def vectors(self, document: str) -> Matrix | None:
        """Return the vectors of a document's chunks; None if the index has only codes, or keeps them in a store. The
        cache of embeddings has them."""
        if not self.manifest.kind.in_folder:
            return None
        first, end = self._rows(document)
        return self._vectors.stored(int(self._firsts[first]), int(self._firsts[end]))

    def _rows(self, document: str) -> tuple[int, int]:
        return self._chunks.spans.get(document, (0, 0))

    @cached_property
    def remote_vectors(self) -> Vectors | None:
        """The vectors, if an external store still has them; None if they are in the folder."""
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
