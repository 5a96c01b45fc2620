"""The interface of file formats in which other tools store answers. Guests add the formats."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragbed.documents.errors import SettingsError, did_you_mean
from ragbed.guests import entries, load

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Prediction:
    """An answer from another tool's file.

    Attributes:
        place: file and line, for error messages.
        id: the question's id; None if the format has none.
        question: the question's text; empty if the row lacks it.
        content: the tool's output, with the keys `answer`, `contexts`, `citations` and so on.
        run: the run, within the file, to which it belongs.
        repeat: from 0.
        failure: the tool's reason for a missing answer, if it recorded one.
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
        read: yields the answers of a file. Raises BenchmarkError with file and line if a row does not fit.
        write: writes the answers of `answers_of` to a file; None if the format can only be read.
        several_runs: whether a file can contain several runs.
        folder: whether it is a folder with a file for each question. Only then `write` gets `calls_by_tool`.
    """

    read: Callable[[Path], Iterator[Prediction]]
    write: Callable[[Iterator[Answer], Path], None] | None
    several_runs: bool = False
    folder: bool = False


def find_answer_format(name: str) -> AnswerFormat:
    """Return the format with a name such as `ragas`. Raises SettingsError if no guest adds it."""
    formats = entries("answers")
    if name not in formats:
        raise SettingsError(f"unknown format {name!r}; "
                            f"{did_you_mean(name, formats)}the formats are {', '.join(formats)}")
    found: AnswerFormat = load(formats[name])
    return found
