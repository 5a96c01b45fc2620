"""Stop a strategy that does not yield, since it blocks all other questions."""
from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from ragbed.agents.session import Session
from ragbed.documents.errors import RecipeFailed

_MAX_IGNORED = 3  # number of signals that a strategy may ignore


@contextmanager
def watchdog() -> Iterator[None]:
    """Raise RecipeFailed in a strategy that does not yield in time.

    If the strategy ignores the error, end the process with a message; stored results stay. Do nothing on Windows and
    outside the main thread, where there are no signals."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    ignored = 0

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal ignored
        at_work = frame
        while at_work is not None and at_work.f_code is not Session._run_recipe.__code__:
            at_work = at_work.f_back
        if frame is None or at_work is None or time.monotonic() < at_work.f_locals.get("until", math.inf):
            ignored = 0
            return
        said = (f"the strategy did not return from {Path(frame.f_code.co_filename).name}:{frame.f_lineno} in time, "
                f"at the question {at_work.f_locals['self'].task.id}")
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
