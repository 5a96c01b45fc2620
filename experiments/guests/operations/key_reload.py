"""Read the file of keys again while the server runs."""
from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path

from ragbed.documents.errors import UserError
from ragbed.experiments.guests.serving.api_keys import Keys
from ragbed.experiments.terminal.display import note


@contextlib.contextmanager
def reload_on_hangup(keys: Keys, path: Path | None, check: Callable[[Keys], object]) -> Iterator[None]:
    """Read the file of keys again on SIGHUP. If it is not valid, or `check` raises UserError, the old keys stay, and
    one line says why."""
    loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()

    async def reload() -> None:
        if path is None:
            note("SIGHUP: the keys do not come from a file (--keys FILE), so there is nothing to reload")
            return
        try:
            old, fresh = copy(keys), await asyncio.to_thread(Keys.read, path, None)
            keys.replace(fresh)  # `check` reads claims from `keys`
            try:
                await asyncio.to_thread(check, keys)
            except UserError:
                keys.replace(old)
                raise
            note(f"SIGHUP: {path} was reloaded")
        except UserError as error:
            note(f"SIGHUP: the old keys stay: {error}")

    def start() -> None:
        task = asyncio.create_task(reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    loop.add_signal_handler(signal.SIGHUP, start)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
