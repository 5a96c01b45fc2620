"""Reading CSV files as rows that know where they stand."""
from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from documents.errors import BenchmarkError
from documents.rows import Row, read_text

_LONGEST = 1 << 24  # characters of a field


def read_csv(file: Path) -> Iterator[Row]:
    """The records of a file with a header, by its names; each at the line on which it ends.

    Raises:
        BenchmarkError: the file cannot be read, has no header, or a record has more or fewer fields than it.
    """
    csv.field_size_limit(_LONGEST)
    records = csv.reader(io.StringIO(read_text(file), newline=""), strict=True)
    try:
        header = next(records, [])
        if not header or len(set(header)) < len(header):
            raise BenchmarkError(f"{file}, line 1: expected the names of the columns, each once, found {header!r:.60}")
        for record in filter(None, records):
            if len(record) != len(header):
                raise BenchmarkError(f"{file}, line {records.line_num}: expected {len(header)} fields, "
                                     f"found {len(record)}")
            yield Row(file, records.line_num, dict(zip(header, record, strict=True)))
    except csv.Error as error:
        raise BenchmarkError(f"{file}, line {records.line_num}: cannot be read as CSV: {error}") from error
