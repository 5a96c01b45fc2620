"""Records as a table: CSV for people and spreadsheets, Parquet for programs."""
from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from experiments.export.flat import Column, columns, rows
from experiments.export.material import Material
from experiments.judging.labels import guarded

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # but tabs and new lines
_BATCH = 2_000  # rows of a Parquet row group


def write_csv(material: Material, path: Path) -> None:
    """One row for each question in each cell; a text that a spreadsheet would run as a formula begins with `'`, and
    what could steer a terminal is escaped, as `\\x1b`."""
    header = columns(_scores(material))
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([column.name for column in header])
        for row in rows(material):
            writer.writerow([_cell(row.get(column.name)) for column in header])


def write_parquet(material: Material, path: Path) -> None:
    """The same table, typed, in row groups, so that memory does not grow with the run."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    header = columns(_scores(material))
    kinds = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
    schema = pa.schema([(column.name, kinds[column.kind]) for column in header])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in _batches(rows(material)):
            writer.write_table(pa.table([[_typed(row.get(column.name), column) for row in batch] for column in header],
                                        schema=schema))


def _scores(material: Material) -> list[str]:
    """The scores that questions have: not those of sets alone."""
    return list(dict.fromkeys(name for result in material.run.folder.results() for name in result.scores))


def _batches(all_rows: Iterator[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    while batch := list(islice(all_rows, _BATCH)):
        yield batch


def _cell(value: Any) -> Any:
    return guarded(_CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", value)) if isinstance(value, str) else value


def _typed(value: Any, column: Column) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return str(value) if column.kind == "text" and value is not None else value
