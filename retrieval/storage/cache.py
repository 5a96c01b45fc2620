"""Every text is embedded once ever: an embedder that keeps its vectors on disk, and never trusts a damaged one."""
from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np

from ragbed.documents.chunkers.spans import Span
from ragbed.documents.errors import ModelError, SettingsError
from ragbed.documents.paths import cache_dir, count_cores
from ragbed.documents.types import digest
from ragbed.retrieval.storage.files import unwritable
from ragbed.retrieval.storage.folder import alone
from ragbed.retrieval.types import Embedder, Matrix


def check_fit(vectors: Matrix, dimension: int, embedder: str) -> None:
    """Raise ModelError where vectors that the embedder of this name gave cannot be compared with those of an index,
    which have so many dimensions."""
    if vectors.shape[1] != dimension:
        raise ModelError(f"the embedder {embedder} gives {vectors.shape[1]} numbers, the index has {dimension}: have "
                         "its server give as many as when the index was built, or build the index anew elsewhere")
    if not np.isfinite(vectors).all():
        raise ModelError(f"the embedder {embedder} gave a vector with numbers that are not finite: nothing is near it")


SMALLEST, LARGEST, EACH = 64, 256, 32
"""Texts embedded between two commits: so many for each processor, within bounds. A killed build loses no more, which is
a second or two of work; fewer would leave processors idle at the end of each group."""

Advance = Callable[[int], None]


class CachedEmbedder:
    """An embedder whose vectors are kept under the hash of the text; processes may share the store.

    An embedder may say `passage_identity`, which tells apart those that embed passages differently: they share a store,
    and what makes their queries others costs no passage. And it may say `at_once`, how many texts it is to be given at
    once.
    """

    def __init__(self, inner: Embedder, folder: Path | None = None) -> None:
        self.inner, self.name, self.identity = inner, inner.name, inner.identity
        self.embedded = self.reused = 0  # texts given to the model so far, and those whose vectors were there
        self._width: int | None = None
        passages: str = getattr(inner, "passage_identity", inner.identity)
        self._query = "query" if passages == inner.identity else f"query {inner.identity}"
        self._store = VectorStore((folder or cache_dir() / "embeddings") / f"{digest(passages)}.sqlite")
        self._lock = threading.Lock()  # one for the store and the model: searches come from several threads

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    @property
    def window(self) -> int:
        return self.inner.window

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        return self.inner.windows(texts, header)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self._query, self.inner.embed_queries)

    def embed_passages(self, texts: Sequence[str], advance: Advance | None = None) -> Matrix:
        """Embed passages; `advance` is told how many more distinct texts are done."""
        return self._embed(texts, "passage", self.inner.embed_passages, advance)

    def missing(self, texts: Sequence[str]) -> list[str]:
        """Return the passages whose vectors are not there, each once."""
        by_key = {digest("passage", text): text for text in texts}
        with self._lock:
            known = self._store.read(list(by_key))
        return [text for key, text in by_key.items() if key not in known]

    def _embed(self, texts: Sequence[str], role: str, embed: Callable[[Sequence[str]], Matrix],
               advance: Advance | None = None) -> Matrix:
        advance = advance or (lambda done: None)
        keys = [digest(role, text) for text in texts]
        by_key = dict(zip(keys, texts, strict=True))
        with self._lock:
            known = self._store.read(list(by_key))
            self.reused += len(known)
            advance(len(known))
            missing = sorted(by_key.keys() - known.keys(), key=lambda key: (len(by_key[key]), key))
            size: int = getattr(self.inner, "at_once", min(max(EACH * count_cores(), SMALLEST), LARGEST))
            for group in (missing[first:first + size] for first in range(0, len(missing), size)):
                found = dict(zip(group, embed([by_key[key] for key in group]), strict=True))
                self._store.write(found)
                known |= found
                self.embedded += len(group)
                advance(len(group))
        widths = {len(vector) for vector in known.values()} | ({self._width} if self._width else set())
        if len(widths) > 1:
            raise ModelError(f"embedder {self.name} gives vectors of {' and '.join(map(str, sorted(widths)))} numbers, "
                             f"now and before: if that is meant, delete {self._store.path}")
        self._width = widths.pop() if widths else None
        if not keys:
            return np.zeros((0, self.dimension), np.float32)
        return np.stack([known[key] for key in keys])


def kept_bytes(dimension: int) -> int:
    """Return bytes that the store takes for a vector, about: SQLite puts the end of a longer one on its own pages."""
    page = 4_096
    return 500 + page * -(-4 * dimension // page) if dimension > 200 else 100 + 4 * dimension


class VectorStore:
    """Vectors by key in one SQLite file, their numbers stored as numpy calls them. Writes are committed whole, and
    readers never wait for writers. Raises SettingsError where the folder cannot be written, or the file is damaged."""

    def __init__(self, path: Path, numbers: Literal["<f4", "<f2"] = "<f4") -> None:
        self.path = path
        self._numbers = numbers
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(error) from error
        with self._damage_named():
            self._database = sqlite3.connect(path, timeout=60, check_same_thread=False)
            # Python closes a forgotten connection too, but with a warning.
            weakref.finalize(self, self._database.close)
            with alone(path, wait=True):  # changing to WAL does not wait for others that do, whatever the timeout
                self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            with self._database:
                # Not WITHOUT ROWID, which is for small rows: vectors took twice the disk, and four times the time.
                self._database.execute("CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, vector BLOB NOT NULL, "
                                       "hash BLOB NOT NULL)")

    def read(self, keys: Sequence[str]) -> dict[str, Matrix]:
        """Return the vectors that are there, each of shape (numbers,), whatever the shape of what was written. One that
        is not as it was written is as if it were not there: it is to be made and written again."""
        query = "SELECT key, vector, hash FROM rows WHERE key IN (SELECT value FROM json_each(?))"
        with self._damage_named():
            rows = self._database.execute(query, [json.dumps(list(keys))]).fetchall()
        return {key: np.frombuffer(blob, self._numbers) for key, blob, hash in rows
                if isinstance(blob, bytes) and _hash(key, blob) == hash}

    def write(self, vectors: dict[str, Matrix]) -> None:
        """Keep vectors; one with a number that is none is not worth it."""
        blobs = {key: vector.astype(self._numbers).tobytes() for key, vector in vectors.items()
                 if np.isfinite(vector).all()}
        with self._damage_named(), self._database:
            self._database.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)",
                                       [(key, blob, _hash(key, blob)) for key, blob in blobs.items()])

    @contextmanager
    def _damage_named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            # Only what is damaged is to be deleted. Extended codes have the plain one in their lowest byte.
            remedy = _REMEDIES.get(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xff, "delete it")
            raise SettingsError(f"the embedding cache {self.path} cannot be used ({error}): "
                                f"{remedy}, or set RAGBED_CACHE to another folder") from error


def _hash(key: str, blob: bytes) -> bytes:
    return hashlib.blake2b(blob, digest_size=16, key=key.encode()[:64]).digest()


_REMEDIES = {sqlite3.SQLITE_FULL: "free space on its disk", sqlite3.SQLITE_IOERR: "free space on its disk",
             **dict.fromkeys((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM),
                             "make it and its folder writable"),
             **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), "wait for the process that holds it")}

