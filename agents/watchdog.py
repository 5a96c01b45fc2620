"""Stop a strategy, or other code of a user, that does not return, because it blocks all other questions."""
from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ragbed.agents.session import Session
from ragbed.documents.errors import RecipeFailed

_MAX_IGNORED = 3  # signals that a strategy may ignore before the process ends
# Functions that run a user's code until their local `until`: what each is running, and the question, from its locals.
WATCHED: dict[CodeType, Callable[[Mapping[str, Any]], tuple[str, str]]] = {
    Session._run_recipe.__code__: lambda local: ("the strategy", local["self"].task.id)}


@contextmanager
def watchdog() -> Iterator[None]:
    """Raise RecipeFailed in code of a user that does not return in time.

    If the code ignores the error, end the process with a message; stored results stay. Do nothing on Windows and
    outside the main thread, where there are no signals."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    ignored = 0

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal ignored
        at_work = frame
        while at_work is not None and at_work.f_code not in WATCHED:
            at_work = at_work.f_back
        if frame is None or at_work is None or time.monotonic() < at_work.f_locals.get("until", math.inf):
            ignored = 0
            return
        who, question = WATCHED[at_work.f_code](at_work.f_locals)
        said = (f"{who} did not return from {Path(frame.f_code.co_filename).name}:{frame.f_lineno} in time, in the "
                f"question {question}")
        ignored += 1
        if ignored > _MAX_IGNORED:
            os.write(2, f"ragbed: {said}, and cannot be stopped; run the same command to continue\n".encode())
            os._exit(2)
        raise RecipeFailed(said)

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
