"""The parsing process: reads requests from stdin and writes answers to stdout, one JSON object per line.

`documents.workers` starts it, and it ends when its stdin ends. It answers each request twice. First it sends `ready`,
once the parser is imported, so that the deadline covers parsing only. Then it sends the document or the error.
"""
from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ragbed.documents.errors import DocumentError, UserError
from ragbed.documents.parse import find_parser, parse_document

_MAX_MEMORY = 6 * 1024**3  # bytes


def main() -> None:
    """Answer requests until stdin ends. Redirect library output to stderr, since stdout carries the answers."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    limit_memory()

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message).encode() + b"\n")
        answers.flush()

    for line in sys.stdin.buffer:
        request = json.loads(line)
        with suppress(UserError):  # the answer reports it
            find_parser(request["relative"], request["ocr"])
        say({"ready": True})
        set_alarm(int(request["deadline"]) + 10)
        say(answer(request))
        set_alarm(0)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        data = read(Path(request["path"]), request["max_bytes"], request.get("span"))
        return asdict(parse_document(data, request["relative"], request.get("id"),
                                     request.get("ocr", False)))
    except DocumentError as error:
        return {"reason": error.reason}
    except UserError as error:
        return {"reason": str(error)}
    except MemoryError:
        return {"reason": f"needs more than {_MAX_MEMORY // 1024**3} GB of memory to parse"}
    except RecursionError:
        return {"reason": "nested too deeply to parse"}


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


def limit_memory(most: int = _MAX_MEMORY) -> None:
    """Limit this process's memory, in bytes, in case a document expands without bound."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def set_alarm(seconds: int) -> None:
    """Have the kernel end this process after `seconds`, even if the parent is gone; 0 cancels the alarm."""
    if sys.platform != "win32":
        signal.alarm(seconds)


if __name__ == "__main__":
    main()
