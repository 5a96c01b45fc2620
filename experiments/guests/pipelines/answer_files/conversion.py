"""Helpers for all formats: limit the size of files, and write JSON."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ragbed.documents.errors import BenchmarkError
from ragbed.documents.rows import Row
from ragbed.experiments.answer_files import Answer, Prediction

_MAX_BYTES = 1 << 30  # maximum bytes of an unpacked file


def check_size(file: Path, size: int) -> None:
    """Raise BenchmarkError if a file is too large to be read into memory."""
    if size > _MAX_BYTES:
        raise BenchmarkError(f"{file}: larger than {_MAX_BYTES >> 20} MB; split the file")


def prediction(row: Row, id: str | None, question: str, content: Mapping[str, Any], run: str = "",
               failure: str = "") -> Prediction:
    """Return the answer in one row."""
    return Prediction(f"{row.file}, line {row.line}", id, question, content, run, 0, failure)


def json_line(content: Any) -> str:
    """Return content as one line of JSON, replacing characters that UTF-8 cannot encode."""
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n"


def line_writer(convert: Callable[[Answer], Answer]) -> Callable[[Iterator[Answer], Path], None]:
    """Return a function that writes one line of JSON per answer."""
    def write(answers: Iterator[Answer], path: Path) -> None:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json_line(convert(one)) for one in answers)

    return write
