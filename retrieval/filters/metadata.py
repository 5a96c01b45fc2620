"""Read metadata of documents, which filters use, from JSON Lines or CSV."""
from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ragbed.documents.errors import DocumentError
from ragbed.documents.parse import INDEX_FIELDS
from ragbed.documents.rows import Row, read_csv, read_rows
from ragbed.documents.types import FieldValue

FieldType = Literal["text", "number", "boolean"]

_NUMBER = re.compile(r"-?(0|[1-9]\d{0,99})(\.\d{1,99})?([eE][+-]?\d{1,3})?")
_BOOLEANS = {"true": True, "false": False}

Metadata = Mapping[str, Mapping[str, FieldValue]]  # fields by source


def read_metadata(path: Path) -> dict[str, dict[str, FieldValue]]:
    """Read the metadata fields of each source. A record has a `source` and fields with text, numbers or booleans. Lists
    of texts without commas, such as of groups, become texts with commas.

    JSON Lines have one object per source. CSV files may be as a spreadsheet saves them. A CSV column whose values are
    all numbers, or all true or false, gets that type; numbers with leading zeros are text. Null and empty values are
    left out.

    Raises:
        BenchmarkError: a line has no source, a repeated source, or a value of another type. The message names the line.
        DocumentError: as for `field_types`.
    """
    is_sheet = path.suffix.lower() in (".csv", ".tsv")
    rows = _convert_columns(list(read_csv(path, spreadsheet=True))) if is_sheet else read_rows(path)
    found: dict[str, dict[str, FieldValue]] = {}
    for row in rows:
        row = replace(row, fields={name if name.casefold() != "source" else "source": _joined(value)
                                   for name, value in row.fields.items()})
        source = row.filled("source")
        if source in found:
            row.fail("source", "a path that no other line has", source)
        for name, value in row.fields.items():
            if not (value is None or isinstance(value, bool | str | int) or (
                    isinstance(value, float) and math.isfinite(value))):
                row.fail(name, "text, a number, true or false", value)
        found[source] = {name: value for name, value in row.fields.items() if value is not None and name != "source"}
    field_types(found, str(path))
    return found


def _joined(value: Any) -> Any:
    listed = isinstance(value, list) and all(isinstance(one, str) and one.strip() and "," not in one for one in value)
    return ", ".join(value) or None if listed else value


def field_types(metadata: Metadata, where: str = "metadata") -> dict[str, FieldType]:
    """Return the type of each field by name, in alphabetical order. Raises DocumentError, which names `where`, if a
    field has values of two types or a name that the index itself uses."""
    types: dict[str, FieldType] = {}
    for source, fields in metadata.items():
        for name, value in fields.items():
            if name in INDEX_FIELDS or not name:
                raise DocumentError(where, f"a field cannot be called {name!r}; the index itself uses the names "
                                           f"{', '.join(INDEX_FIELDS)}")
            if value is not None and types.setdefault(name, type := _type_of(value)) != type:
                raise DocumentError(where, f"{name} has type {type} in {source} and {types[name]} elsewhere; use one "
                                           "type per field")
    return dict(sorted(types.items()))


def _type_of(value: FieldValue) -> FieldType:
    return "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def unknown_sources(metadata: Metadata, known: Iterable[str]) -> tuple[str, ...]:
    """Return the sorted sources of metadata that are not in the index, such as deleted files. Raises DocumentError if
    none is in the index, since the names then probably begin at another folder."""
    strange = sorted(set(metadata) - set(known))
    if strange and len(strange) == len(metadata):
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        raise DocumentError("metadata", f"source {strange[0]}{more} is not indexed; name sources by their path below "
                                        "the indexed folder")
    return tuple(strange)


def _convert_columns(rows: Sequence[Row]) -> Iterator[Row]:
    columns = {name: _column(name, [row.fields[name] for row in rows]) for name in (rows[0].fields if rows else ())}
    for place, row in enumerate(rows):
        yield replace(row, fields={name: values[place] for name, values in columns.items()})


def _column(name: str, texts: list[str]) -> list[FieldValue]:
    given = [text for text in texts if text]
    if name == "source":
        return list(texts)
    if given and all(_NUMBER.fullmatch(text) for text in given):
        return [json.loads(text) if text else None for text in texts]
    if given and all(text.lower() in _BOOLEANS for text in given):
        return [_BOOLEANS.get(text.lower()) for text in texts]
    return [text or None for text in texts]
