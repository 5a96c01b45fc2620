"""Metadata of documents, for filters: fields by source, from a file of JSON Lines or CSV."""
from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ragbed.documents.errors import DocumentError
from ragbed.documents.rows import Row, read_csv, read_rows
from ragbed.retrieval.types import FieldValue

FieldType = Literal["text", "number", "boolean"]

OWN = ("document", "source", "title", "format", "page")  # what an index knows of every chunk itself
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_BOOLEANS = {"true": True, "false": False}

Metadata = Mapping[str, Mapping[str, FieldValue]]  # fields by source


def read_metadata(path: Path) -> dict[str, dict[str, FieldValue]]:
    """Return the fields of each source: `source`, and fields of text, numbers or booleans. JSON Lines hold one object a
    source. A column of CSV whose values are all numbers, or all true or false, is one of those; numbers with leading
    zeros are names. What is null or empty is not said. Raises BenchmarkError, which names the line, where the file
    cannot be read, names a source twice or none, or holds other values, and DocumentError as `types_of`."""
    rows = _typed(list(read_csv(path))) if path.suffix.lower() == ".csv" else read_rows(path)
    found: dict[str, dict[str, FieldValue]] = {}
    for row in rows:
        source = row.filled("source")
        if source in found:
            row.fail("source", "a path that no other line has", source)
        for name, value in row.fields.items():
            if not (value is None or isinstance(value, bool | str | int) or (
                    isinstance(value, float) and math.isfinite(value))):
                row.fail(name, "text, a number, true or false", value)
        found[source] = {name: value for name, value in row.fields.items() if value is not None and name != "source"}
    types_of(found, str(path))
    return found


def types_of(metadata: Metadata, where: str = "metadata") -> dict[str, FieldType]:
    """Return the type of each field, by name in alphabetical order. Raises DocumentError where a field has a name that
    the index gives, or values of two types; says it of `where`."""
    types: dict[str, FieldType] = {}
    for source, fields in metadata.items():
        for name, value in fields.items():
            if name in OWN or not name:
                raise DocumentError(where, f"a field may not be called {name!r}: the index itself says "
                                           f"{', '.join(OWN)}")
            if value is None:
                continue
            type: FieldType = "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
            if types.setdefault(name, type) != type:
                raise DocumentError(where, f"{name} of {source} is a {type}, elsewhere a {types[name]}: "
                                           "give a field one type")
    return dict(sorted(types.items()))


def check_sources(metadata: Metadata, known: Iterable[str], where: str = "metadata") -> None:
    """Raise DocumentError where metadata is of a source that is not known."""
    strange = sorted(set(metadata) - set(known))
    if strange:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        raise DocumentError(where, f"source {strange[0]}{more} is not indexed: name sources as the index does, "
                                   "by their path below the folder that is indexed")


def _typed(rows: Sequence[Row]) -> Iterator[Row]:
    columns = {name: _column(name, [row.fields[name] for row in rows]) for name in (rows[0].fields if rows else ())}
    for place, row in enumerate(rows):
        yield replace(row, fields={name: values[place] for name, values in columns.items()})


def _column(name: str, texts: list[str]) -> list[FieldValue]:
    said = [text for text in texts if text]
    if name == "source":
        return list(texts)
    if said and all(_NUMBER.fullmatch(text) for text in said):
        return [json.loads(text) if text else None for text in texts]
    if said and all(text.lower() in _BOOLEANS for text in said):
        return [_BOOLEANS.get(text.lower()) for text in texts]
    return [text or None for text in texts]
