"""The process that parses: requests as JSON lines on stdin, answers as JSON lines on stdout.

It is started by `documents.workers` and ends when its stdin does. For each request it first says `ready`, when
the parser is imported, so that the deadline counts parsing only.
"""
from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ragbed.documents.errors import DocumentError, MissingExtra
from ragbed.documents.parse import parse_document, prepare

_MEMORY = 6 * 1024**3


def main() -> None:
    """Answers requests until stdin ends. What libraries print to stdout goes nowhere."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _limit_memory()

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message).encode() + b"\n")
        answers.flush()

    for line in sys.stdin.buffer:
        request = json.loads(line)
        prepare(request["relative"])
        say({"ready": True})
        _alarm(int(request["deadline"]) + 10)
        say(_answer(request))
        _alarm(0)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        data = read(Path(request["path"]), request["largest"])
        return asdict(parse_document(data, request["relative"]))
    except DocumentError as error:
        return {"reason": error.reason}
    except MissingExtra as error:
        return {"reason": str(error)}
    except MemoryError:
        return {"reason": f"needs more than {_MEMORY // 1024**3} GB of memory to parse"}
    except RecursionError:
        return {"reason": "nested too deeply to parse"}


def read(path: Path, largest: int) -> bytes:
    """Return the bytes of a file; DocumentError where it cannot be read, is empty, or has more than `largest` bytes."""
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise DocumentError(str(path), f"cannot be read: {error.strerror}") from error
    if not data:
        raise DocumentError(str(path), "the file is empty (0 bytes)")
    if len(data) > largest:
        raise DocumentError(str(path), f"larger than the limit of {largest:,} bytes")
    return data


def _limit_memory() -> None:
    """A document that expands without bound must not take the machine with it."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _alarm(seconds: int) -> None:
    """The kernel ends this process some seconds after the deadline, even where the parent is gone; 0 ends the wait."""
    if sys.platform != "win32":
        signal.alarm(seconds)


if __name__ == "__main__":
    main()
