"""Metadata of documents, for filters: fields by source, from a file of JSON Lines or CSV."""
from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from documents.errors import DocumentError
from documents.json import loads
from documents.places import open_file
from retrieval.types import FieldValue

FieldType = Literal["text", "number", "boolean"]

OWN = ("document", "source", "title", "format", "page")  # what an index knows of every chunk itself
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_BOOLEANS = {"true": True, "false": False}

Metadata = Mapping[str, Mapping[str, FieldValue]]  # fields by source


def read_metadata(path: Path) -> dict[str, dict[str, FieldValue]]:
    """Return the fields of each source: `source`, and fields of text, numbers or booleans. JSON Lines hold one object a
    source. A column of CSV whose values are all numbers, or all true or false, is one of those; numbers with leading
    zeros are names. What is null or empty is not said. Raises DocumentError, which names the line, where the file
    cannot be read, names a source twice or none, or holds other values."""
    try:
        with open_file(path) as file:
            text = file.read().decode("utf-8-sig")
    except OSError as error:
        raise DocumentError(str(path), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DocumentError(str(path), "is not UTF-8") from error
    rows = _csv(path, text) if path.suffix.lower() == ".csv" else _json_lines(path, text)
    found: dict[str, dict[str, FieldValue]] = {}
    for line, row in rows:
        source = row.pop("source", None)
        if not isinstance(source, str) or not source:
            raise DocumentError(str(path), f"line {line}: no `source`, the path of a document as the index names it")
        if source in found:
            raise DocumentError(str(path), f"line {line}: source {source} is there twice")
        for name, value in row.items():
            if not (value is None or isinstance(value, bool | str | int) or (
                    isinstance(value, float) and math.isfinite(value))):
                raise DocumentError(str(path), f"line {line}: {name} is neither text, a number, true nor false")
        found[source] = {name: value for name, value in row.items() if value is not None}
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


def _json_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, row in enumerate(text.split("\n"), 1):
        if not row.strip():
            continue
        try:
            fields = loads(row)
        except UnicodeEncodeError as error:
            raise DocumentError(str(path), f"line {line}: holds half a surrogate pair, which is no text") from error
        except ValueError as error:
            raise DocumentError(str(path), f"line {line}: is no JSON object") from error
        if not isinstance(fields, dict):
            raise DocumentError(str(path), f"line {line}: is no JSON object")
        yield line, fields


def _csv(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        table = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise DocumentError(str(path), f"line {reader.line_num}: is no CSV: {error}") from error
    (first, header), *rows = table or [(1, [])]
    if len(set(header)) != len(header):
        raise DocumentError(str(path), f"line {first}: a column is there twice")
    wrong = next((line for line, row in rows if len(row) != len(header)), None)
    if wrong is not None:
        raise DocumentError(str(path), f"line {wrong}: has other columns than line {first}")
    columns = {name: _column(name, [row[place] for _, row in rows]) for place, name in enumerate(header)}
    for place, (line, _) in enumerate(rows):
        yield line, {name: values[place] for name, values in columns.items()}


def _column(name: str, texts: list[str]) -> list[FieldValue]:
    said = [text for text in texts if text]
    if name == "source":
        return list(texts)
    if said and all(_NUMBER.fullmatch(text) for text in said):
        return [json.loads(text) if text else None for text in texts]
    if said and all(text.lower() in _BOOLEANS for text in said):
        return [_BOOLEANS.get(text.lower()) for text in texts]
    return [text or None for text in texts]
