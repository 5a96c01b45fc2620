"""Worker processes that parse documents, each killed when it is late."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any

from documents.errors import DocumentError
from documents.sources import Source
from documents.types import Document, Page

_START = 120.0
"""Seconds that a worker may take to start and to import a parser."""


class Worker:
    """One parsing process, started when first needed and again after it died."""

    def __init__(self, deadline: float, largest: int) -> None:
        self._deadline = deadline
        self._largest = largest
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    @property
    def process(self) -> int | None:
        """The id of the process; None before it is started."""
        return None if self._process is None else self._process.pid

    def parse(self, source: Source) -> Document | DocumentError:
        """The document, or why it cannot be read; a crash or a missed deadline is a reason too."""
        if self._closed:
            return DocumentError(source.relative, "not read: reading was ended")
        used = self._process is not None
        process = self._started()
        _send(process, {"path": os.fspath(source.path), "relative": source.relative, "deadline": self._deadline,
                        "largest": self._largest})
        ready, _ = _line(process, _START)
        if ready is None and used:  # it died between two files, so this one is not to blame
            self.close()
            return self.parse(source)
        answer, late = _line(process, self._deadline) if ready else (None, False)
        if answer is None:
            return DocumentError(source.relative, self._death(process, late, ready is not None))
        return _result(source, answer)

    def interrupt(self) -> None:
        """Ends the process for good, while another thread may wait for its answer."""
        self._closed = True
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Ends the process and frees its pipes; only when no other thread uses it."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "documents.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env=_environment())
        return self._process

    def _death(self, process: subprocess.Popen[bytes], late: bool, ready: bool) -> str:
        code = process.wait() if not late else None
        self.close()
        if late:
            return f"not parsed within {self._deadline:g} seconds"
        what = "the parser died" if ready else "the parser did not start"
        return f"{what}: {_status(code)}"


def _status(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit status {code}"


def _environment() -> dict[str, str]:
    """The child finds this package where the parent found it, installed or not."""
    here = str(Path(__file__).resolve().parent.parent)
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([here, inherited] if inherited else [here])}


def _send(process: subprocess.Popen[bytes], request: dict[str, Any]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # the answer that does not come will tell
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()


def _line(process: subprocess.Popen[bytes], seconds: float) -> tuple[dict[str, Any] | None, bool]:
    """The next answer, or None and whether the process was killed for being late."""
    assert process.stdout is not None
    expired: list[bool] = []

    def kill() -> None:
        expired.append(True)
        process.kill()

    timer = Timer(seconds, kill)
    timer.daemon = True
    timer.start()
    try:
        line = process.stdout.readline()
    finally:
        timer.cancel()
    if not line.endswith(b"\n"):
        return None, bool(expired)
    return json.loads(line), False


def _result(source: Source, answer: dict[str, Any]) -> Document | DocumentError:
    if "reason" in answer:
        return DocumentError(source.relative, answer["reason"])
    pages = tuple(Page(**page) for page in answer.pop("pages"))
    return Document(**answer, pages=pages)
