"""Code of others, such as a strategy or a retriever of one's own: what it prints, and what it raises."""
from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from sysconfig import get_path
from threading import Lock
from types import TracebackType
from typing import ClassVar, TextIO

from ragbed.documents.errors import RagbedError
from ragbed.retrieval.servers import hide_keys

_LONGEST = 1_000  # characters of an error


class Foreign:
    """Runs code of others: what it prints goes to standard error, what it raises is raised as one line, of which `fail`
    makes the error. Standard output is the command's own, for programs to read; it is back when the last thread ends:
    each on its own would put back the other's. An interrupt passes, and so do `passing` errors and what ragbed raised:
    it is a line already."""

    _lock = Lock()
    _inside: ClassVar[list[TextIO]] = []  # for each thread that is inside, the stdout from before the first

    def __init__(self, fail: Callable[[str], RagbedError], *passing: type[BaseException]) -> None:
        self._fail = fail
        self._passing: tuple[type[BaseException], ...] = (KeyboardInterrupt, RagbedError, *passing)

    def __enter__(self) -> None:
        with self._lock:
            self._inside.append(self._inside[0] if self._inside else sys.stdout)
            sys.stdout = sys.stderr

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        with self._lock:
            stdout = self._inside.pop()
            sys.stdout = sys.stderr if self._inside else stdout
        if error is not None and not isinstance(error, self._passing):
            raise self._fail(failing_line(error)) from error


def failing_line(error: BaseException) -> str:
    """Describe what code raised in one line, without keys, with the last place of it that is no library's."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {error.msg}"
    # Python's own way to get the text of an error whose text may raise another.
    said = str(traceback.TracebackException(type(error), error, None))[:_LONGEST]
    installed = (get_path("stdlib"), get_path("purelib"), get_path("platlib"), str(Path(__file__).parent.parent), "<")
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(installed)]
    at = f"{Path(own[-1].filename).name}:{own[-1].lineno}: " if own else ""
    line = f"{at}{type(error).__name__}{': ' * bool(said)}{said}".encode(errors="replace").decode()
    return hide_keys(" ".join(line.split()))
