"""The files of an index, written as its documents come in. At most a block of windows waits to be embedded."""
from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from retrieval.building.pieces import LazyEmbedder, Piece
from retrieval.building.plan import parser_version
from retrieval.storage.cache import check_fit
from retrieval.storage.folder import writing
from retrieval.storage.manifest import CHUNKS, DOCUMENTS, SourceEntry
from retrieval.storage.parquet import ChunkWriter, DocumentWriter, canonical
from retrieval.types import FieldValue, Matrix

BLOCK = 2_048
"""Windows embedded together: of similar length within a block, since the embedder sorts them."""

RAW = "vectors.f32"


class RawVectors:
    """The rows of a file of float32, given as copies: pages of a file that stays mapped count as memory in use."""

    def __init__(self, path: Path, shape: tuple[int, int]) -> None:
        self.shape = shape
        self._path = path

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Matrix:
        found = np.memmap(self._path, np.float32, "r", shape=self.shape)[rows]
        return np.array(found) if isinstance(rows, slice) else np.asarray(found)  # by a list of rows, it is one already


class Writer:
    """Writes chunks, documents and raw vectors into a folder.

    Args:
        out: what the folder is called where it cannot be written.

    Attributes:
        entries, metadata: of the sources written so far, by name; `fresh` counts those that were parsed now.
        chunks, windows: written so far; of windows, those that wait to be embedded too.
        embedded: windows whose vectors are written.

    Raises:
        IndexFolderError: the folder cannot be written.
    """

    def __init__(self, folder: Path, out: Path, embedder: LazyEmbedder) -> None:
        self._folder = folder
        self._out = out
        self._embedder = embedder
        self.entries: dict[str, SourceEntry] = {}
        self.metadata: dict[str, Mapping[str, FieldValue]] = {}
        self.fresh = self.chunks = self.windows = self.embedded = 0
        self._waiting: list[tuple[int, str]] = []
        self._content = hashlib.sha256()
        with writing(out):
            self._documents, self._chunks = DocumentWriter(folder / DOCUMENTS), ChunkWriter(folder / CHUNKS)
            self._raw = (folder / RAW).open("wb")

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        """Let go of the files; what `finish` did not complete is of no use."""
        self._documents.abandon()
        self._chunks.abandon()
        self._raw.close()

    def add(self, piece: Piece) -> None:
        """Write a document and its chunks; its windows are embedded when a block of them has come together."""
        first, arrival, document = self.windows, piece.arrival, piece.arrival.document
        for part in (document.id, document.source, document.title, piece.header, canonical(piece.metadata),
                     *(f"{chunk.id} {chunk.pages}" for chunk in piece.chunks)):
            data = part.encode("utf-8", "surrogatepass")
            self._content.update(f"{len(data)}:".encode() + data)
        with writing(self._out):
            self._documents.document(document, piece.header, piece.metadata)
            for chunk, count in zip(piece.chunks, piece.windows, strict=True):
                self._chunks.chunk(chunk, count)
        parser = None if arrival.parser == parser_version() else arrival.parser
        self.entries[document.source] = SourceEntry(document=document.id, sha256=arrival.sha256, parser=parser)
        if piece.metadata:
            self.metadata[document.source] = piece.metadata
        self.fresh += arrival.fresh
        self.chunks += len(piece.chunks)
        self.windows += sum(piece.windows)
        if piece.vectors is not None:
            self._put(range(first, self.windows), piece.vectors)
        self._waiting.extend(enumerate(piece.texts, first))

    def embed(self, told: Callable[[int], None], rest: bool = False) -> None:
        """Embed what waits in whole blocks, and at last the rest. `told`: is told how many windows are embedded."""
        while len(self._waiting) >= (1 if rest else BLOCK):
            block, self._waiting = self._waiting[:BLOCK], self._waiting[BLOCK:]
            done = self.embedded

            def advance(more: int) -> None:
                nonlocal done
                done += more
                told(done)

            vectors = self._embedder.opened.embed_passages([text for _, text in block], advance)
            check_fit(vectors, self._embedder.dimension, self._embedder.opened.name)
            self._put([row for row, _ in block], vectors)
            told(self.embedded)

    def finish(self) -> str:
        """Complete the files; a hash of the chunks in their order, and of what they are searched and filtered by."""
        with writing(self._out):
            self._documents.close()
            self._chunks.close()
            self._raw.close()
        return self._content.hexdigest()[:32]

    @contextmanager
    def vectors(self) -> Iterator[Matrix]:
        """Yield all vectors, float32 of shape (windows, dimension), read from their file, which is gone afterwards."""
        path = self._folder / RAW
        yield cast("Matrix", RawVectors(path, (self.windows, self._embedder.dimension)))
        path.unlink()

    def _put(self, rows: list[int] | range, vectors: Matrix) -> None:
        places: NDArray[np.int64] = np.asarray(rows, np.int64)
        width = 4 * self._embedder.dimension
        with writing(self._out):
            for run in np.split(np.arange(len(places)), np.flatnonzero(np.diff(places) != 1) + 1):
                if len(run):
                    self._raw.seek(int(places[run[0]]) * width)
                    self._raw.write(np.ascontiguousarray(vectors[run[0]:run[-1] + 1], np.float32).tobytes())
        self.embedded += len(places)
