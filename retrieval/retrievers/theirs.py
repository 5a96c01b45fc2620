"""Running a user's code: what it raises is one line, and what it prints goes to stderr."""
from __future__ import annotations

import sys
import threading
from traceback import TracebackException
from types import TracebackType
from typing import TextIO

from documents.errors import RagbedError, SettingsError


class Theirs:
    """Whatever a user's code raises says in one line whose it is; the whole is its cause.

    What it prints goes to stderr: stdout is for results that programs read.
    """

    def __init__(self, factory: str) -> None:
        self._factory = factory

    def __enter__(self) -> None:
        """Their code begins."""
        _ASIDE.begin()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        _ASIDE.end()
        if isinstance(error, Exception | SystemExit) and not isinstance(error, RagbedError):
            # Python's own way to get the text of an error whose text may raise another.
            said = " ".join(str(TracebackException(type(error), error, None)).split())[:300]
            raise SettingsError(f"external {self._factory}: {type(error).__name__}: {said}") from error


class _Aside:
    """stdout is stderr from when the first thread begins until the last ends: each on its own would put back the
    other's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._stdout: TextIO | None = None

    def begin(self) -> None:
        with self._lock:
            if not self._inside:
                self._stdout, sys.stdout = sys.stdout, sys.stderr
            self._inside += 1

    def end(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._stdout is not None:
                sys.stdout, self._stdout = self._stdout, None


_ASIDE = _Aside()
