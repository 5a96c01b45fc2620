"""Chunks and documents written as Parquet, a group of rows at a time."""
from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from documents.types import Chunk, Document
from retrieval.types import Value

CHUNKS_A_GROUP = 256
"""Chunks of one row group, which is what reading a chunk reads: about 1 ms, and as many bytes as a small picture."""

DOCUMENTS_A_GROUP = 16
CHARACTERS_A_GROUP = 4_000_000
"""Documents of one row group, and of their renderings the characters at which a group ends before: one document is
read with its group."""


class TableWriter:
    """A Parquet file that is written as rows come in; at most one group of them is in memory.

    Raises:
        OSError: the disk is full, say.
    """

    def __init__(self, path: Path, schema: Any, rows: int) -> None:
        import pyarrow.parquet as pq

        self._schema = schema
        self._rows = rows
        self._waiting: list[dict[str, Any]] = []
        self._writer: Any = pq.ParquetWriter(path, schema, compression="zstd")

    def add(self, row: dict[str, Any]) -> None:
        self._waiting.append(row)
        if len(self._waiting) == self._rows:
            self.flush()

    def flush(self) -> None:
        """Write what waits as a group of its own."""
        import pyarrow as pa

        if self._waiting:
            self._writer.write_table(pa.Table.from_pylist(self._waiting, self._schema))
            self._waiting.clear()

    def close(self) -> None:
        self.flush()
        self._writer.close()

    def abandon(self) -> None:
        """Let go of a file that will not be finished, whatever became of it."""
        with suppress(OSError):
            self._writer.close()
        self._writer.is_open = False  # else it closes itself once more when it is forgotten


class ChunkWriter(TableWriter):
    """One row a chunk, in order, with the number of its vectors."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        super().__init__(path, pa.schema([
            ("id", pa.string()), ("document", pa.string()), ("format", pa.string()), ("start", pa.int64()),
            ("end", pa.int64()), ("content", pa.large_string()), ("prefix", pa.large_string()),
            ("first_page", pa.int32()), ("last_page", pa.int32()), ("windows", pa.int32())]), CHUNKS_A_GROUP)

    def chunk(self, chunk: Chunk, windows: int) -> None:
        first, last = chunk.pages or (None, None)
        self.add({"id": chunk.id, "document": chunk.document, "format": chunk.format, "start": chunk.start,
                  "end": chunk.end, "content": chunk.content, "prefix": chunk.prefix, "first_page": first,
                  "last_page": last, "windows": windows})


class DocumentWriter(TableWriter):
    """One row a document, in order: both renderings, its pages, the header of its chunks, and its metadata as JSON."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        page = pa.struct([("number", pa.int32()), ("html", pa.int64()), ("plain", pa.int64())])
        texts = ("id", "source", "title", "html", "plain", "header", "metadata")
        super().__init__(path, pa.schema([*((name, pa.large_string()) for name in texts), ("pages", pa.list_(page))]),
                         DOCUMENTS_A_GROUP)
        self._characters = 0

    def document(self, document: Document, header: str, metadata: Mapping[str, Value]) -> None:
        pages = [{"number": page.number, "html": page.html, "plain": page.plain} for page in document.pages]
        self.add({"id": document.id, "source": document.source, "title": document.title, "html": document.html,
                  "plain": document.plain, "header": header, "metadata": canonical(metadata), "pages": pages})
        self._characters += len(document.html) + len(document.plain)
        if self._characters >= CHARACTERS_A_GROUP:
            self.flush()

    def flush(self) -> None:
        super().flush()
        self._characters = 0


def canonical(metadata: Mapping[str, Value]) -> str:
    """Metadata as JSON; empty where there is none, and equal for equal metadata."""
    return json.dumps(dict(metadata), sort_keys=True, ensure_ascii=False) if metadata else ""

