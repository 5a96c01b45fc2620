"""Run a server in several processes that accept connections from one listening socket, and limits that they share.

The supervisor starts each worker with the command line that it was started with itself. It passes the listening socket,
a file of shared numbers, and a pipe whose end tells a worker that the supervisor is gone.
"""
from __future__ import annotations

import asyncio
import contextlib
import hashlib
import math
import mmap
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ragbed.documents.errors import SettingsError
from ragbed.experiments.runs.store import lock_run
from ragbed.experiments.terminal.display import note

_VARIABLE = "RAGBED_WORKER"
_METRICS = "PROMETHEUS_MULTIPROC_DIR"  # folder in which prometheus_client keeps the counts of all processes
MAX_WORKERS = 64
_ROW = struct.Struct("<Qdd")
RATES, GUESSES, RIGHT_KEYS, FAILURES = range(4)  # tables, after the rows of the workers
_ROWS = 8_191  # of each table
_NEARBY = 64  # rows in which a name may be
_SIZE = _ROW.size * (MAX_WORKERS + 4 * _ROWS)
_POLL_SECONDS = 0.1
_STOP_SECONDS = 45.0  # for a worker to stop, which is more than its answers have
_SHORT_LIFE = 10.0  # a worker that lived shorter is restarted with a delay
_MAX_DELAY = 30.0


class SharedNumbers:
    """Numbers that the processes of a server share: how many requests each answers, and tables of numbers by name.

    A lock of the system guards them, which ends with a killed process.

    Args:
        file: descriptor of a file of `_SIZE` bytes; None for numbers of this process alone.
        process: number of this process.
    """

    def __init__(self, file: int | None = None, process: int = 0) -> None:
        self._file, self._process = file, process
        self._memory = mmap.mmap(-1 if file is None else file, _SIZE)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock. The block must not wait for anything."""
        if self._file is None:
            yield
            return
        import fcntl

        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def put(self, running: int, waiting: int) -> None:
        """Set how many requests this process answers and lets wait. It is ready from the first time on."""
        _ROW.pack_into(self._memory, self._process * _ROW.size, 1, running, waiting)

    def clear(self, process: int) -> None:
        """Note that a process has ended."""
        _ROW.pack_into(self._memory, process * _ROW.size, 0, 0, 0)

    def is_ready(self, process: int) -> bool:
        """Tell whether a process accepts requests."""
        return bool(_ROW.unpack_from(self._memory, process * _ROW.size)[0])

    def total(self) -> tuple[int, int]:
        """Return how many requests all processes answer and let wait."""
        rows = [_ROW.unpack_from(self._memory, at * _ROW.size) for at in range(MAX_WORKERS)]
        return sum(int(row[1]) for row in rows), sum(int(row[2]) for row in rows)

    def read(self, table: int, name: str) -> tuple[float, float] | None:
        """Return a name's number in a table, and when it was written; None if there is none."""
        row, key = self._row(table, name)
        found, number, at = _ROW.unpack_from(self._memory, row)
        return (number, at) if found == key else None

    def write(self, table: int, name: str, number: float, now: float) -> None:
        """Set a name's number in a table."""
        row, key = self._row(table, name)
        _ROW.pack_into(self._memory, row, key, number, now)

    def _row(self, table: int, name: str) -> tuple[int, int]:
        """Return the place of a name's row, and its key. A new name gets a free row, or the oldest of those nearby."""
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") | 1
        oldest, since = 0, math.inf
        for step in range(_NEARBY):
            row = (MAX_WORKERS + table * _ROWS + (key + step) % _ROWS) * _ROW.size
            found, _, at = _ROW.unpack_from(self._memory, row)
            if found in (0, key):
                return row, key
            if at < since:
                oldest, since = row, at
        return oldest, key


@dataclass(frozen=True)
class Worker:
    """This process as one of several workers.

    Attributes:
        number, count: number of this worker, from 0, and how many there are.
        restarted: whether an earlier process had this number.
        listening: the socket to accept connections from.
        numbers: what the workers share.
        supervisor: descriptor of a pipe that ends with the supervisor.
    """

    number: int
    count: int
    restarted: bool
    listening: socket.socket
    numbers: SharedNumbers
    supervisor: int

    @classmethod
    def of_environment(cls) -> Worker | None:
        """Return this process as a worker; None if no supervisor has started it."""
        found = re.fullmatch(r"(\d+)/(\d+)/([01])/(\d+)/(\d+)/(\d+)", os.environ.pop(_VARIABLE, ""))
        if not found:
            return None
        number, count, restarted, listening, numbers, pipe = map(int, found.groups())
        return cls(number, count, bool(restarted), socket.socket(fileno=listening),
                   SharedNumbers(numbers, number), pipe)

    def stop_with_supervisor(self, stop: Callable[[], object]) -> None:
        """Call `stop` when the supervisor is gone."""
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.remove_reader(self.supervisor)
            stop()

        loop.add_reader(self.supervisor, ended)


class _Pool:
    """The workers of a supervisor."""

    def __init__(self, count: int, listening: socket.socket, numbers: int, pipe: int, metrics: str) -> None:
        self._files = (listening.fileno(), numbers, pipe)
        self._count, self._metrics = count, metrics
        self._shared = SharedNumbers(numbers, MAX_WORKERS - 1)
        self._running: dict[int, tuple[subprocess.Popen[bytes], float]] = {}
        self._due: dict[int, float] = {}  # when to start a worker again
        self._delays: dict[int, float] = {}

    def start(self, number: int, restarted: bool = False) -> None:
        listening, numbers, pipe = self._files
        value = f"{number}/{self._count}/{restarted:d}/{listening}/{numbers}/{pipe}"
        process = subprocess.Popen([sys.executable, "-m", "ragbed", *sys.argv[1:]], pass_fds=self._files,
                                   env={**os.environ, _VARIABLE: value, _METRICS: self._metrics})
        self._running[number] = process, time.monotonic()

    def is_ready(self, number: int) -> bool:
        return self._shared.is_ready(number)

    def signal(self, sent: int) -> None:
        for process, _ in self._running.values():
            if process.poll() is None:
                process.send_signal(sent)

    def watch(self) -> int | None:
        """Restart workers that have ended. Return the status of one that could not start at first."""
        for number, (process, began) in list(self._running.items()):
            status = process.poll()
            if status is None:
                continue
            del self._running[number]
            ready, lived = self._shared.is_ready(number), time.monotonic() - began
            self._shared.clear(number)
            if status > 0 and not ready and number not in self._delays:  # it could not start, and has told why
                return status
            delay = min(max(2 * self._delays.get(number, 0.0), 1.0), _MAX_DELAY) if lived < _SHORT_LIFE else 0.0
            self._delays[number], self._due[number] = delay, time.monotonic() + delay
            why = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
            note(f"worker {number + 1} of {self._count} (process {process.pid}) {why}; it is started again"
                 + (f" in {delay:.0f} s" if delay else ""))
        for number, at in list(self._due.items()):
            if at <= time.monotonic():
                del self._due[number]
                self.start(number, restarted=True)
        return None

    def stop(self) -> None:
        self.signal(signal.SIGTERM)
        end = time.monotonic() + _STOP_SECONDS
        for process, _ in self._running.values():
            try:
                process.wait(max(end - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def supervise(count: int, listening: socket.socket, folder: Path | None) -> int:
    """Run workers until a signal or an error stops them, and return the exit status.

    Args:
        listening: the bound socket.
        folder: folder of traffic, which is locked for the workers; None if they use a database.
    """
    if os.name == "nt":
        raise SettingsError("--workers needs a system other than Windows; start a server for each port")
    from ragbed.experiments.guests.traffic.traffic_runs import IN_USE  # workers need nothing else of it

    ended: list[int] = []
    with contextlib.ExitStack() as stack:
        lock = lock_run(folder, IN_USE) if folder is not None else None
        if lock is not None:
            stack.callback(lock.release)
        numbers = stack.enter_context(tempfile.TemporaryFile())
        numbers.truncate(_SIZE)
        metrics = stack.enter_context(tempfile.TemporaryDirectory(prefix="ragbed-metrics-"))
        ends, pipe = os.pipe()
        stack.callback(os.close, pipe)
        pool = _Pool(count, listening, numbers.fileno(), ends, metrics)
        for stopping in (signal.SIGINT, signal.SIGTERM):
            stack.callback(signal.signal, stopping, signal.signal(stopping, lambda sent, _: ended.append(sent)))
        stack.callback(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, lambda sent, _: pool.signal(sent)))
        pool.start(0)
        waiting = range(1, count)  # until the first has made the files, or has failed
        try:
            while not ended:
                if (status := pool.watch()) is not None:
                    return status
                if waiting and pool.is_ready(0):
                    for number in waiting:
                        pool.start(number)
                    waiting = range(0)
                time.sleep(_POLL_SECONDS)
        finally:
            pool.stop()
    return 0
