"""Run a user's code: redirect its output, and report its exceptions."""
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
from ragbed.documents.keys import redact_keys

_MAX_TEXT = 1_000  # characters of an error message


class UserCode:
    """Guard a block that runs code of a user, such as a custom strategy or retriever.

        with UserCode(lambda line: SettingsError(f"strategy {name}: {line}")):
            recipe = factory()

    The code's output goes to standard error, because standard output is for the command. An exception is described in
    one line, which `fail` turns into the error to raise. Interrupts, errors of the types in `passing`, and ragbed's
    errors pass unchanged. Several threads may use it at once: standard output is restored when the last one leaves.
    """

    _lock = Lock()
    _inside: ClassVar[list[TextIO]] = []  # per thread inside: stdout before the first one entered

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
            # A thread that outlives its caller may find the caller's stdout closed.
            sys.stdout = sys.stderr if self._inside else sys.stdout if stdout.closed else stdout
        if error is not None and not isinstance(error, self._passing):
            raise self._fail(describe_exception(error)) from error


def describe_exception(error: BaseException) -> str:
    """Describe an exception in one line without keys, with the last file and line that does not belong to a library."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {error.msg}"
    # str(error) may itself raise; the traceback module handles that.
    text = str(traceback.TracebackException(type(error), error, None))[:_MAX_TEXT]
    installed = (get_path("stdlib"), get_path("purelib"), get_path("platlib"), str(Path(__file__).parent.parent), "<")
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(installed)]
    at = f"{Path(own[-1].filename).name}:{own[-1].lineno}: " if own else ""
    line = f"{at}{type(error).__name__}{': ' * bool(text)}{text}".encode(errors="replace").decode()
    return redact_keys(" ".join(line.split()))
