"""Chunks and documents as Parquet: written once, read back a row at a time."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from documents.types import Chunk, Document, Page

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DOCUMENTS_A_GROUP = 16
"""Documents of one Parquet row group, which is what reading a single document reads."""


def write_chunks(path: Path, chunks: Sequence[Chunk], windows: Sequence[int]) -> None:
    """One row a chunk, in order; `windows` is the number of vectors of each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pages = [chunk.pages or (None, None) for chunk in chunks]
    table = pa.table({
        "id": pa.array([chunk.id for chunk in chunks], pa.string()),
        "document": pa.array([chunk.document for chunk in chunks], pa.string()),
        "format": pa.array([chunk.format for chunk in chunks], pa.string()),
        "start": pa.array([chunk.start for chunk in chunks], pa.int64()),
        "end": pa.array([chunk.end for chunk in chunks], pa.int64()),
        "content": pa.array([chunk.content for chunk in chunks], pa.large_string()),
        "prefix": pa.array([chunk.prefix for chunk in chunks], pa.large_string()),
        "first_page": pa.array([first for first, _ in pages], pa.int32()),
        "last_page": pa.array([last for _, last in pages], pa.int32()),
        "windows": pa.array(windows, pa.int32()),
    })
    pq.write_table(table, path, compression="zstd")


def write_documents(path: Path, documents: Sequence[Document]) -> None:
    """One row a document, in order, with both renderings and the offsets of its pages in each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    page = pa.struct([("number", pa.int32()), ("html", pa.int64()), ("plain", pa.int64())])
    table = pa.table({
        **{name: pa.array([getattr(document, name) for document in documents], pa.large_string())
           for name in ("id", "source", "title", "html", "plain")},
        "pages": pa.array([[{"number": each.number, "html": each.html, "plain": each.plain}
                            for each in document.pages] for document in documents], pa.list_(page)),
    })
    pq.write_table(table, path, compression="zstd", row_group_size=DOCUMENTS_A_GROUP)


class ChunkTable(Sequence[Chunk]):
    """The chunks of an index, made from their rows when asked for."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self._table: Any = pq.read_table(path).combine_chunks()

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, row: int) -> Chunk: ...
    @overload
    def __getitem__(self, row: slice) -> list[Chunk]: ...
    def __getitem__(self, row: int | slice) -> Chunk | list[Chunk]:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        if not -len(self) <= row < len(self):
            raise IndexError(row)
        return _chunk(self._table.slice(row % len(self), 1).to_pylist()[0])

    def __iter__(self) -> Iterator[Chunk]:
        for batch in self._table.to_batches(1_000):
            yield from map(_chunk, batch.to_pylist())

    def windows(self) -> NDArray[np.int32]:
        """The number of vectors of each chunk, shape (chunks,)."""
        counts: NDArray[np.int32] = self._table["windows"].to_numpy()
        return counts

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each chunk id."""
        return {key: row for row, key in enumerate(self._table["id"].to_pylist())}


class DocumentTable:
    """The documents of an index; renderings are read from the file when asked for."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self._file: Any = pq.ParquetFile(path)

    @cached_property
    def sources(self) -> dict[str, str]:
        """The source of each document id, in the order of the index."""
        table = self._file.read(columns=["id", "source"])
        return dict(zip(table["id"].to_pylist(), table["source"].to_pylist(), strict=True))

    def __getitem__(self, key: str) -> Document:
        row = list(self.sources).index(key) if key in self.sources else None
        if row is None:
            raise KeyError(key)
        group = self._file.read_row_group(row // DOCUMENTS_A_GROUP)
        return _document(group.slice(row % DOCUMENTS_A_GROUP, 1).to_pylist()[0])

    def __iter__(self) -> Iterator[Document]:
        for batch in self._file.iter_batches(DOCUMENTS_A_GROUP):
            yield from map(_document, batch.to_pylist())


def _chunk(row: dict[str, Any]) -> Chunk:
    pages = None if row["first_page"] is None else (row["first_page"], row["last_page"])
    return Chunk(row["id"], row["document"], row["format"], row["start"], row["end"], row["content"], row["prefix"],
                 pages)


def _document(row: dict[str, Any]) -> Document:
    pages = tuple(Page(each["number"], each["html"], each["plain"]) for each in row["pages"])
    return Document(row["id"], row["source"], row["title"], row["html"], row["plain"], pages)
