"""Read and write the chunks and documents of an index as Parquet files, in groups of rows."""
from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.errors import IndexFolderError
from ragbed.documents.json import loads
from ragbed.documents.types import Chunk, Document, FieldValue, Page

T = TypeVar("T")

_CHUNK_GROUPS, _DOCUMENT_GROUPS = 128, 4  # groups of rows to keep in memory after reading


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Raise IndexFolderError for an invalid file, which may match its hash if a stranger wrote it."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise IndexFolderError(f"{path} is not a Parquet file of an index; rebuild the index") from error


class _Groups(Generic[T]):
    """A Parquet file whose groups of rows are read when needed. Thread-safe.

    The file is not mapped into memory, because truncating a mapped file crashes the process.

    Args:
        kept: number of groups to keep in memory.
        make: converts a row.
    """

    def __init__(self, path: Path, kept: int, make: Callable[[dict[str, Any]], T]) -> None:
        import pyarrow.parquet as pq

        with _read_errors(path):
            self._file: Any = pq.ParquetFile(path)
        self.path = path
        self._make = make
        self._lock = threading.Lock()
        self._group = lru_cache(kept)(self._decode_group)
        self._made: Callable[[int], dict[int, T]] = lru_cache(kept)(lambda group: {})
        about = self._file.metadata
        self._ends = list(accumulate(about.row_group(group).num_rows for group in range(about.num_row_groups)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, row: int) -> T:
        group = bisect_right(self._ends, row)
        place = row - (self._ends[group - 1] if group else 0)
        made = self._made(group)
        if place not in made:
            with _read_errors(self.path):
                made[place] = self._make({name: column[place] for name, column in self._group(group).items()})
        return made[place]

    def has(self, column: str) -> bool:
        """Return whether the file has a column."""
        return column in self._file.schema_arrow.names

    def __iter__(self) -> Iterator[T]:
        with _read_errors(self.path):
            yield from map(self._make, self.columns())

    def columns(self, *names: str) -> Iterator[dict[str, Any]]:
        """Yield each row with the named fields, or with all fields if none is named. Other columns are not read."""
        for group in range(len(self._ends)):
            columns = self._decode_group(group, names)
            for values in zip(*columns.values(), strict=True):
                yield dict(zip(columns, values, strict=True))

    def column(self, name: str) -> Any:
        """Return one column of all rows as an Arrow array."""
        with self._lock, _read_errors(self.path):
            return self._file.read(columns=[name])[name]

    def _decode_group(self, group: int, names: Sequence[str] = ()) -> dict[str, list[Any]]:
        """Return a group as Python objects by column. Converting a whole group takes as long as four single rows."""
        with self._lock, _read_errors(self.path):
            table = self._file.read_row_group(group, columns=list(names) or None, use_threads=False)
            if any(table[name].null_count for name in table.column_names if not name.endswith("_page")):
                raise ValueError("a value is missing")
            return {name: table[name].to_pylist() for name in names or table.column_names}


class ChunkTable(Sequence[Chunk]):
    """The chunks of an index, read when needed."""

    def __init__(self, path: Path) -> None:
        self._groups = _Groups(path, _CHUNK_GROUPS, _chunk)

    def __len__(self) -> int:
        return len(self._groups)

    @overload
    def __getitem__(self, row: int) -> Chunk: ...
    @overload
    def __getitem__(self, row: slice) -> list[Chunk]: ...
    def __getitem__(self, row: int | slice) -> Chunk | list[Chunk]:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        if not -len(self) <= row < len(self):
            raise IndexError(row)
        return self._groups[row % len(self)]

    def __iter__(self) -> Iterator[Chunk]:
        return iter(self._groups)

    def windows(self) -> NDArray[np.int32]:
        """Return the number of vectors of each chunk, shape (chunks,)."""
        column = self._groups.column("windows")
        if column.null_count:
            return np.asarray(column)
        return np.asarray(np.from_dlpack(column.combine_chunks()), np.int32)  # other ways of converting import pandas

    def documents(self) -> set[str]:
        """Return the ids of the documents that have chunks."""
        parts = self._groups.column("document").chunks  # `unique` would import pyarrow.compute, which takes 40 ms
        return {document for part in parts for document in part.to_pylist()}

    def fields(self) -> Iterator[tuple[str, str, int | None]]:
        """Yield the document, format and first page of each chunk, without reading other columns."""
        for row in self._groups.columns("document", "format", "first_page"):
            yield row["document"], row["format"], row["first_page"]

    def texts(self, headers: Mapping[str, str]) -> Iterator[str]:
        for row in self._groups.columns("document", "content"):
            yield headers[row["document"]] + row["content"]

    @cached_property
    def spans(self) -> dict[str, tuple[int, int]]:
        """The first row of each document's chunks, and the row after the last, by document id."""
        spans: dict[str, tuple[int, int]] = {}
        for row, found in enumerate(self._groups.columns("document")):
            spans[found["document"]] = (spans.get(found["document"], (row, row))[0], row + 1)
        return spans

    def row(self, id: str) -> int:
        """Return the row of a chunk id. Raises KeyError if it is unknown."""
        ids, rows = self._sorted_ids
        wanted = np.bytes_(id.encode("utf-8", "replace"))
        place = int(np.searchsorted(ids, wanted))
        if place == len(ids) or ids[place] != wanted:
            raise KeyError(id)
        return int(rows[place])

    @cached_property
    def _sorted_ids(self) -> tuple[NDArray[np.bytes_], NDArray[np.intp]]:
        ids = np.array([row["id"].encode() for row in self._groups.columns("id")], np.bytes_)
        order = np.argsort(ids, kind="stable")
        return ids[order], order


class DocumentTable:
    """The documents of an index. Renderings are read when needed."""

    def __init__(self, path: Path) -> None:
        self._groups = _Groups(path, _DOCUMENT_GROUPS, _document)

    @cached_property
    def sources(self) -> dict[str, str]:
        """Sources by document id, in the order of the index."""
        return self._by_id("source")

    @cached_property
    def headers(self) -> dict[str, str]:
        """Header of the searched texts of each document's chunks, by document id."""
        return self._by_id("header")

    @cached_property
    def titles(self) -> dict[str, str]:
        return self._by_id("title")

    @cached_property
    def metadata(self) -> dict[str, dict[str, FieldValue]]:
        """Fields by document id: those that the document states itself, and those that the user gave, which win."""
        own = self._read_fields("fields") if self._groups.has("fields") else {}
        return {key: {**own.get(key, {}), **self.given.get(key, {})} for key in {**own, **self.given}}

    @cached_property
    def given(self) -> dict[str, dict[str, FieldValue]]:
        """Metadata fields that the user gave, by document id."""
        return self._read_fields("metadata")

    def _read_fields(self, column: str) -> dict[str, dict[str, FieldValue]]:
        with _read_errors(self._groups.path):
            return {key: loads(text) for key, text in self._by_id(column).items() if text}

    def _by_id(self, column: str) -> dict[str, str]:
        return {row["id"]: row[column] for row in self._groups.columns("id", column)}

    def __getitem__(self, key: str) -> Document:
        return self._groups[self._rows[key]]

    def __iter__(self) -> Iterator[Document]:
        return iter(self._groups)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {key: row for row, key in enumerate(self.sources)}


def _chunk(row: dict[str, Any]) -> Chunk:
    pages = None if row["first_page"] is None else (row["first_page"], row["last_page"])
    return Chunk(row["id"], row["document"], row["format"], row["start"], row["end"], row["content"], row["prefix"],
                 pages)


def _document(row: dict[str, Any]) -> Document:
    pages = tuple(Page(**each) for each in row["pages"])
    fields = loads(row["fields"]) if row.get("fields") else {}
    return Document(row["id"], row["source"], row["title"], row["html"], row["plain"], pages, fields=fields)


_CHUNKS_PER_GROUP = 256  # a chunk is read with its whole group, in about 1 ms
_DOCUMENTS_PER_GROUP = 16
_CHARACTERS_PER_GROUP = 4_000_000  # maximum characters of renderings in a group; at this size it ends early


class TableWriter:
    """Writes a Parquet file row by row, with at most one group in memory. Raises OSError, such as for a full disk."""

    def __init__(self, path: Path, schema: Any, rows: int) -> None:
        import pyarrow.parquet as pq

        self._schema = schema
        self._rows = rows
        self._waiting: list[dict[str, Any]] = []
        self._characters = 0
        self._writer: Any = pq.ParquetWriter(path, schema, compression="zstd")

    def add(self, row: dict[str, Any], characters: int = 0) -> None:
        self._waiting.append(row)
        self._characters += characters
        if len(self._waiting) == self._rows or self._characters >= _CHARACTERS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._waiting:
            self._writer.write_table(pa.Table.from_pylist(self._waiting, self._schema))
            self._waiting.clear()
            self._characters = 0

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Close a file that will not be finished."""
        with suppress(OSError):
            self._writer.close()
        self._writer.is_open = False  # prevents a second close when it is garbage-collected


class ChunkWriter(TableWriter):
    """Writes one row per chunk, in order, with the number of its vectors."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        super().__init__(path, pa.schema([
            ("id", pa.string()), ("document", pa.string()), ("format", pa.string()), ("start", pa.int64()),
            ("end", pa.int64()), ("content", pa.large_string()), ("prefix", pa.large_string()),
            ("first_page", pa.int32()), ("last_page", pa.int32()), ("windows", pa.int32())]), _CHUNKS_PER_GROUP)

    def chunk(self, chunk: Chunk, windows: int) -> None:
        first, last = chunk.pages or (None, None)
        fields = {name: getattr(chunk, name) for name in Chunk.__dataclass_fields__ if name != "pages"}
        self.add({**fields, "first_page": first, "last_page": last, "windows": windows})


class DocumentWriter(TableWriter):
    """Writes one row per document, in order: renderings, pages, header of its chunks, and, as JSON, the fields that it
    states itself and those that the user gave."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        page = pa.struct([("number", pa.int32()), ("html", pa.int64()), ("plain", pa.int64())])
        texts = ("id", "source", "title", "html", "plain", "header", "fields", "metadata")
        super().__init__(path, pa.schema([*((name, pa.large_string()) for name in texts), ("pages", pa.list_(page))]),
                         _DOCUMENTS_PER_GROUP)

    def document(self, document: Document, header: str, metadata: Mapping[str, FieldValue]) -> None:
        self.add({**asdict(document), "header": header, "fields": canonical(document.fields),
                  "metadata": canonical(metadata)},
                 len(document.html) + len(document.plain))


def canonical(metadata: Mapping[str, FieldValue]) -> str:
    """Return metadata as canonical JSON; empty without metadata."""
    return json.dumps(dict(metadata), sort_keys=True, ensure_ascii=False) if metadata else ""
