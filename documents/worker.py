"""The process that parses documents: `documents.workers` starts it, asks it to import a parser, and then to parse."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ragbed.documents.child_process import answer_requests
from ragbed.documents.errors import DocumentError, UserError
from ragbed.documents.parse import find_parser, parse_document
from ragbed.documents.pdf_layout import skip_layout_models

MAX_MEMORY = 6 * 1024**3  # bytes


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document, or the `reason` why there is none. Without `path`, only import its parser."""
    if "path" not in request:
        with suppress(UserError):  # parsing reports it
            find_parser(request["relative"], request["ocr"])
        return {}
    try:
        data = read(Path(request["path"]), request["max_bytes"], request.get("span"))
        return asdict(parse_document(data, request["relative"], request.get("id"),
                                     request.get("ocr", False)))
    except DocumentError as error:
        return {"reason": error.reason}
    except UserError as error:
        return {"reason": str(error)}


def read(path: Path, max_bytes: int, span: Sequence[int] | None = None) -> bytes:
    """Read a file, or a span of its bytes. Raises DocumentError if it cannot be read, is empty, or has more than
    `max_bytes` bytes."""
    try:
        with path.open("rb") as file:
            first, end = span or (0, max_bytes + 1)
            file.seek(first)
            data = file.read(min(end - first, max_bytes + 1))
    except OSError as error:
        raise DocumentError(str(path), f"cannot be read: {error.strerror}") from error
    if not data:
        raise DocumentError(str(path), "the file is empty (0 bytes)")
    if len(data) > max_bytes:
        raise DocumentError(str(path), f"larger than the limit of {max_bytes:,} bytes")
    return data


if __name__ == "__main__":
    skip_layout_models()
    answer_requests(answer, MAX_MEMORY)
