"""Read worked examples from a JSON Lines file, one per line.

Only `question` and `answer` are required. One line:

    {"question": "Which mill opened first?", "documents": ["The north mill opened in 1871.", "The south mill ..."],
     "reasoning": "The years are 1871 and 1880; the first is the north mill's.", "answer": "The north mill [1]"}
"""
from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ragbed.documents.errors import BenchmarkError, SettingsError
from ragbed.documents.paths import expand_path
from ragbed.documents.rows import Row, read_rows
from ragbed.documents.types import digest
from ragbed.strategies.types import Exemplar

_FIELDS = tuple(field.name for field in fields(Exemplar))


@dataclass(frozen=True, slots=True)
class Exemplars:
    """A file of worked examples, as a strategy parameter."""

    file: str  # path as written in the settings
    examples: tuple[Exemplar, ...] = ()  # empty until the file is read

    @property
    def content(self) -> str:
        """Return a hash of the examples."""
        return exemplars_hash(self.examples) or ""


def open_exemplars(file: Any, reads: bool = True) -> Exemplars:
    """Return a file of examples. With `reads`, read it now. Raises SettingsError if it is not valid."""
    if not isinstance(file, str | Path):
        raise SettingsError(f"exemplars: expected the path of a file, not {file!r:.80}")
    return Exemplars(str(file), read_exemplars(file) if reads else ())


def read_exemplars(path: str | Path) -> tuple[Exemplar, ...]:
    """Read the examples of a file. Raises SettingsError, with line and field, if one is not valid."""
    try:
        found = tuple(map(_exemplar, read_rows(expand_path(path))))
    except BenchmarkError as error:
        raise SettingsError(f"exemplars: {error}") from error
    if not found:
        raise SettingsError(f"exemplars: {path}: contains no example")
    return found


def exemplars_hash(exemplars: tuple[Exemplar, ...]) -> str | None:
    """Return a hash of the examples; None if there are none."""
    return digest(*(repr(exemplar) for exemplar in exemplars)) if exemplars else None


def exemplars_schema() -> dict[str, Any]:
    """Return the JSON Schema of a line."""
    return {**TypeAdapter(Exemplar).json_schema(), "additionalProperties": False}


def _exemplar(row: Row) -> Exemplar:
    for name in row.fields:
        if name not in _FIELDS:
            row.fail(name, f"one of the fields {', '.join(_FIELDS)}", name)
    for name in ("question", "answer"):
        if not row.text(name).strip():
            row.fail(name, "text", row.text(name))
    documents = row.texts("documents") if row.fields.get("documents") is not None else ()
    return Exemplar(row.text("question"), row.text("answer"), documents, row.optional("reasoning"))
