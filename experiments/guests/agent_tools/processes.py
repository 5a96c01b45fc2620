"""Run code that may hang, crash or print in processes of its own (`child`), and stop one that misses its deadline."""
from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock, Timer
from typing import Any
from weakref import finalize

from ragbed.documents.paths import child_environment
from ragbed.experiments.guests.agent_tools.arguments import ToolFailure

_START_SECONDS, _STOP_SECONDS = 60.0, 8.0  # to load the function or tables, or reach the server; to end by itself
_MAX_LINE = 4_000_000  # bytes of an answer

Json = Mapping[str, Any]


class ToolPool:
    """Processes that are started when needed, at most `most`.

    Args:
        secrets: whether they get the environment variables that hold keys.
    """

    def __init__(self, most: int, secrets: bool = False) -> None:
        self._environment = {**(os.environ if secrets else {}), **child_environment()}
        self._threads = ThreadPoolExecutor(most, "tool")
        self._idle: list[_Child] = []
        self._lock = Lock()

    def start(self, job: Json) -> Json:
        """Start a process for a job, and return its answer to it. Raises ToolFailure if it fails."""
        child = self._take(job)
        self._idle.append(child)
        return child.first

    async def ask(self, job: Json, request: Json, seconds: float, first: Json | None = None) -> Json:
        """Return the answer of a process with this job. Raises ToolFailure with the reason if there is none, or if its
        answer to the job is not `first`. If the caller is cancelled, the process is stopped."""
        used: list[_Child] = []

        def work() -> Json:
            used.append(self._take(job))
            try:
                if first not in (None, used[0].first):
                    raise ToolFailure("it has changed since the run began; start a new run to use it")
                return used[0].exchange(request, seconds)
            finally:
                self._idle.append(used[0])

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except asyncio.CancelledError:
            for child in used:
                _signal(child.process, signal.SIGTERM)
            raise

    def close(self) -> None:
        """Stop the processes. No call may be running."""
        self._threads.shutdown()
        while self._idle:
            self._idle.pop().end()

    def _take(self, job: Json) -> _Child:
        """Return an idle process with this job, or start one, which may replace an idle process."""
        with self._lock:
            fits = next((one for one in self._idle if one.job is job and one.end.alive), None)
            other = fits or (self._idle[0] if self._idle else None)
            if other is not None:
                self._idle.remove(other)
        if fits is None and other is not None:
            other.end()
        return fits or _Child(job, self._environment)


class _Child:
    """A process with a job. `first` is its answer to it. `end` stops it, and is no longer `alive` then."""

    def __init__(self, job: Json, environment: Mapping[str, str]) -> None:
        self.job = job
        self.process = subprocess.Popen([sys.executable, "-P", "-m", f"{__package__}.child"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment, start_new_session=True)
        self.end = finalize(self, _end, self.process)
        self.first = self.exchange(job, _START_SECONDS)

    def exchange(self, request: Json, seconds: float) -> Json:
        """Send a request and return its answer. Raises ToolFailure with the reason if there is none."""
        process, expired = self.process, list[bool]()
        assert process.stdin is not None
        assert process.stdout is not None

        def stop() -> None:
            expired.append(True)
            _terminate(process)

        late = Timer(seconds, stop)
        late.daemon = True
        late.start()
        with suppress(BrokenPipeError):  # the missing answer is handled below
            process.stdin.write(json.dumps({**request, "seconds": seconds}).encode() + b"\n")
            process.stdin.flush()
        line = process.stdout.readline(_MAX_LINE)
        late.cancel()
        if line.endswith(b"\n"):
            answer: Json = json.loads(line)
        else:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0 if line or expired else 1)  # for its own exit status
            self.end()
            answer = {"failure": f"it did not return within {seconds:g} seconds" if expired else
                      f"its process ended with exit status {process.returncode}"}
        if answer.get("ends"):
            self.end()
        if "failure" in answer:
            raise ToolFailure(answer["failure"])
        return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in filter(None, (process.stdin, process.stdout)):
        with suppress(BrokenPipeError):
            pipe.close()
    _terminate(process)


def _terminate(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, and kill it if it does not: an MCP client first stops its server."""
    _signal(process, signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number) if hasattr(os, "killpg") else process.terminate()  # also what it started
