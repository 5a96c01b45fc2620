"""Stopping a command that works for long: Ctrl-C, and the signal by which schedulers and containers end a process."""
from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from experiments.terminal.display import note

_TERMINATED = 128 + signal.SIGTERM


@contextmanager
def stoppable(kept: str) -> Iterator[None]:
    """Both signals end what goes on within as Ctrl-C does, with one line; exit status 130 or 143.

    Args:
        kept: what is kept, and how to go on.
    """
    told: list[int] = []

    def terminate(number: int, frame: FrameType | None) -> None:
        told.append(number)
        signal.raise_signal(signal.SIGINT)

    # A script's `command &` begins with interrupts ignored; then the loop would not listen for the one raised above.
    handlers = {signal.SIGTERM: terminate, signal.SIGINT: signal.default_int_handler}
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()} if main else {}
    try:
        yield
    except KeyboardInterrupt:
        note(f"{'terminated' if told else 'interrupted'}; {kept}")
        if told:
            raise typer.Exit(_TERMINATED) from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
