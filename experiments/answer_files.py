"""The interface of file formats in which other tools store answers. Guests add the formats."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragbed.documents.errors import SettingsError
from ragbed.guests import entries, load

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Prediction:
    """An answer that was read from another tool's file.

    Attributes:
        place: file and line, for error messages.
        id: the question's id; None if the format has none.
        question: the question's text; empty if the row lacks it.
        content: the tool's output, with the keys `answer`, `contexts`, `citations` and so on.
        run: the run, within the file, to which it belongs.
        repeat: from 0.
        failure: why there is no answer, if the tool recorded it.
    """

    place: str
    id: str | None
    question: str
    content: Mapping[str, Any]
    run: str = ""
    repeat: int = 0
    failure: str = ""


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """A file format in which another tool keeps answers.

    Attributes:
        read: yields the answers of a file. Raises BenchmarkError: a row does not fit, named with file and line.
        write: writes the answers of `answers_of` to a file.
        several_runs: whether a file can hold several runs.
    """

    read: Callable[[Path], Iterator[Prediction]]
    write: Callable[[Iterator[Answer], Path], None]
    several_runs: bool = False


def find_answer_format(name: str) -> AnswerFormat:
    """Return the format of a name such as `ragas`. Raises SettingsError: no guest adds it."""
    formats = entries("answers")
    if name not in formats:
        raise SettingsError(f"unknown format {name!r}; the formats are {', '.join(formats)}")
    found: AnswerFormat = load(formats[name])
    return found
