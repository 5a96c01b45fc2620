"""Cache of embeddings, so that each text is embedded only once. Damaged vectors are computed again."""
from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np

from ragbed.documents.chunkers.spans import Span
from ragbed.documents.errors import ModelError, SettingsError, TextRefused
from ragbed.documents.paths import cache_dir, count_cores
from ragbed.documents.types import digest
from ragbed.retrieval.storage.files import unwritable
from ragbed.retrieval.storage.folder import exclusive
from ragbed.retrieval.types import Embedder, Matrix


def check_fit(vectors: Matrix, dimension: int, embedder: str) -> None:
    """Raise ModelError if vectors of the named embedder do not fit an index of this dimension, or are not finite."""
    if vectors.shape[1] != dimension:
        raise ModelError(f"the embedder {embedder} returns vectors of {vectors.shape[1]} numbers, but those of the "
                         f"index have {dimension}; "
                         "configure its server as when the index was built, or build another index")
    if not np.isfinite(vectors).all():
        raise ModelError(f"the embedder {embedder} returned a vector with numbers that are not finite")


@contextmanager
def naming_source(texts: Iterable[tuple[str, str]]) -> Iterator[None]:
    """If the embedder's server refuses a text, name its source in the error. `texts` are pairs of source and text."""
    try:
        yield
    except TextRefused as error:
        source = next((source for source, text in texts if error.text in text), "")
        raise ModelError(f"{source}: {error}") from None


_MIN_GROUP, _MAX_GROUP, _GROUP_PER_CORE = 64, 256, 32
"""Texts to embed between two commits. A killed build loses at most these, a second or two of work. With
fewer, processors would be idle at the end of each group."""

Advance = Callable[[int], None]


class CachedEmbedder:
    """An embedder that stores its vectors in a cache, by hash of the text. Several processes may use the cache.

    Embedders that differ only in the query prefix have the same `passage_identity`, and share vectors of passages. An
    embedder may also have `at_once`, the number of texts to pass per call.

    Attributes:
        embedded: number of texts that the model has embedded.
        reused: number of texts whose vectors were in the cache.
    """

    def __init__(self, inner: Embedder, folder: Path | None = None) -> None:
        self.inner, self.name, self.identity = inner, inner.name, inner.identity
        self.embedded = self.reused = 0
        self._width: int | None = None
        passages: str = getattr(inner, "passage_identity", inner.identity)
        self._query = "query" if passages == inner.identity else f"query {inner.identity}"
        self._store = VectorStore((folder or cache_dir() / "embeddings") / f"{digest(passages)}.sqlite")
        self._lock = threading.Lock()  # protects store and model, because several threads search

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
        """Embed passages. Calls `advance` with the number of distinct texts done since the last call."""
        return self._embed(texts, "passage", self.inner.embed_passages, advance)

    def missing(self, texts: Sequence[str]) -> list[str]:
        """Return the distinct passages whose vectors are not in the cache."""
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
            usual = min(max(_GROUP_PER_CORE * count_cores(), _MIN_GROUP), _MAX_GROUP)
            size: int = getattr(self.inner, "at_once", usual)
            for group in (missing[first:first + size] for first in range(0, len(missing), size)):
                found = dict(zip(group, embed([by_key[key] for key in group]), strict=True))
                self._store.write(found)
                known |= found
                self.embedded += len(group)
                advance(len(group))
        widths = {len(vector) for vector in known.values()} | ({self._width} if self._width else set())
        if len(widths) > 1:
            raise ModelError(f"embedder {self.name} returned vectors of {' and '.join(map(str, sorted(widths)))} "
                             f"numbers; if its dimensions were changed on purpose, delete {self._store.path}")
        self._width = widths.pop() if widths else None
        if not keys:
            return np.zeros((0, self.dimension), np.float32)
        return np.stack([known[key] for key in keys])


def stored_bytes(dimension: int) -> int:
    """Estimate the bytes in the cache per vector. SQLite stores the end of a long vector on separate pages."""
    page = 4_096
    return 500 + page * -(-4 * dimension // page) if dimension > 200 else 100 + 4 * dimension


class VectorStore:
    """Vectors by key in an SQLite file. Writes are atomic, and readers never wait for writers.

    Raises SettingsError if the folder cannot be written, or the file is damaged.

    Args:
        numbers: numpy's name of the stored number type.
    """

    def __init__(self, path: Path, numbers: Literal["<f4", "<f2"] = "<f4") -> None:
        self.path = path
        self._numbers = numbers
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(error) from error
        with self._read_errors():
            self._database = sqlite3.connect(path, timeout=60, check_same_thread=False)
            # Close it here, because Python would do so with a warning.
            weakref.finalize(self, self._database.close)
            with exclusive(path, wait=True):  # without the lock, changing to WAL fails if another process does it too
                self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            with self._database:
                # Not WITHOUT ROWID, which took twice the disk space and four times as long for vectors.
                self._database.execute("CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, vector BLOB NOT NULL, "
                                       "hash BLOB NOT NULL)")

    def read(self, keys: Sequence[str]) -> dict[str, Matrix]:
        """Return the stored vectors, each flattened to shape (numbers,), except damaged ones."""
        query = "SELECT key, vector, hash FROM rows WHERE key IN (SELECT value FROM json_each(?))"
        with self._read_errors():
            rows = self._database.execute(query, [json.dumps(list(keys))]).fetchall()
        return {key: np.frombuffer(blob, self._numbers) for key, blob, hash in rows
                if isinstance(blob, bytes) and _hash(key, blob) == hash}

    def write(self, vectors: dict[str, Matrix]) -> None:
        """Keep vectors, except those with a number that is not finite."""
        blobs = {key: vector.astype(self._numbers).tobytes() for key, vector in vectors.items()
                 if np.isfinite(vector).all()}
        with self._read_errors(), self._database:
            self._database.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)",
                                       [(key, blob, _hash(key, blob)) for key, blob in blobs.items()])

    @contextmanager
    def _read_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            # The lowest byte of an extended code is the plain code.
            remedy = _REMEDIES.get(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xff, "delete it")
            raise SettingsError(f"the embedding cache {self.path} cannot be used ({error}): "
                                f"{remedy}, or set RAGBED_CACHE to another folder") from error


def _hash(key: str, blob: bytes) -> bytes:
    return hashlib.blake2b(blob, digest_size=16, key=key.encode()[:64]).digest()


_REMEDIES = {sqlite3.SQLITE_FULL: "free space on its disk", sqlite3.SQLITE_IOERR: "free space on its disk",
             **dict.fromkeys((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM),
                             "make it and its folder writable"),
             **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), "wait for the process that holds it")}
