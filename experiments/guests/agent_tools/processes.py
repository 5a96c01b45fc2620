"""Run code that may hang, crash or print in processes of its own, and kill one that misses its deadline."""
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

_START_SECONDS = 60.0  # to start, and to load the function or the tables
_STOP_SECONDS = 8.0  # to end by itself
_MAX_LINE = 4_000_000  # bytes of an answer

Json = Mapping[str, Any]


class ToolProcess:
    """One process, which is started for a job, and again after it died or for another job."""

    def __init__(self, secrets: bool) -> None:
        self.job: Json = {}
        self.first: Json = {}  # the answer to the job
        self._secrets = secrets
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, job: Json) -> Json:
        """Start the process unless it runs for this job, and return its answer to the job. Raises ToolFailure if that
        fails."""
        if self._process is not None and self._process.poll() is None and self.job is job:
            return self.first
        self.close()
        own = child_environment()  # without the variables that hold keys
        environment = {**(os.environ if self._secrets else {}), **own}
        self._process = subprocess.Popen([sys.executable, "-P", "-m", f"{__package__}.child"], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, env=environment, start_new_session=True)
        self._end = finalize(self, _end, self._process)
        self.job = {}
        self.first, self.job = self._exchange(job, _START_SECONDS), job
        return self.first

    def ask(self, job: Json, request: Json, seconds: float, first: Json | None = None) -> Json:
        """Return the answer to a request. Raises ToolFailure with the reason if there is none, or if the answer to the
        job is not `first`."""
        if self.start(job) != (first or self.first):
            self.close()
            raise ToolFailure("it has changed since the run began; start a new run to use it")
        return self._exchange(request, seconds)

    def interrupt(self) -> None:
        """End the process, even if another thread waits for its answer."""
        if self._process is not None:
            _signal(self._process, signal.SIGTERM)

    def _exchange(self, request: Json, seconds: float) -> Json:
        process, expired = self._process, []
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None

        def end() -> None:
            expired.append(True)
            _terminate(process)

        late = Timer(seconds, end)
        late.daemon = True
        late.start()
        try:
            with suppress(BrokenPipeError):  # the missing answer is handled below
                process.stdin.write(json.dumps({**request, "seconds": seconds}).encode() + b"\n")
                process.stdin.flush()
            line = process.stdout.readline(_MAX_LINE)
        finally:
            late.cancel()
        if not line.endswith(b"\n"):
            with suppress(subprocess.TimeoutExpired):
                process.wait(0 if line or expired else 1)
            self.close()
            raise ToolFailure(f"it did not return within {seconds:g} seconds" if expired else
                              f"its process ended with exit status {process.returncode}")
        answer: Json = json.loads(line)
        if answer.get("ends"):
            self.close()
        if "failure" in answer:
            raise ToolFailure(answer["failure"])
        return answer

    def close(self) -> None:
        """End the process, if one runs."""
        if self._process is not None:
            self._process = None
            self._end()


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
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)  # also what it started
        else:
            process.terminate()


class ToolPool:
    """Processes for jobs of one kind, started when needed, at most `most`.

    Args:
        secrets: whether they get the environment variables that hold keys.
    """

    def __init__(self, most: int, secrets: bool = False) -> None:
        self._threads = ThreadPoolExecutor(most, "tool")
        self._secrets = secrets
        self._idle: list[ToolProcess] = []
        self._lock = Lock()

    def start(self, job: Json) -> Json:
        """Start a process for a job, and return its answer to it."""
        process = self._take(job)
        try:
            return process.start(job)
        finally:
            self._idle.append(process)

    async def ask(self, job: Json, request: Json, seconds: float, first: Json | None = None) -> Json:
        """Return the answer of a process with this job. If the caller is cancelled, the process ends."""
        used: list[ToolProcess] = []

        def work() -> Json:
            used.append(self._take(job))
            try:
                return used[0].ask(job, request, seconds, first)
            finally:
                self._idle.append(used[0])

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except asyncio.CancelledError:
            for process in used:
                process.interrupt()
            raise

    def close(self) -> None:
        """End the processes. No call may be running."""
        self._threads.shutdown()
        for process in self._idle:
            process.close()

    def _take(self, job: Json) -> ToolProcess:
        """Return an idle process, if possible with this job."""
        with self._lock:
            if not self._idle:
                return ToolProcess(self._secrets)
            return self._idle.pop(next((place for place, one in enumerate(self._idle) if one.job is job), -1))
