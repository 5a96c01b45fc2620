"""Run code that may hang, crash or print in processes of its own (`child`), and stop one that misses its deadline."""
from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

from ragbed.documents.child_process import ChildFailure, ChildProcess
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
                return used[0].answer(request, seconds)
            finally:
                self._idle.append(used[0])

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except asyncio.CancelledError:
            for child in used:
                child.send_signal(signal.SIGTERM)
            raise

    def close(self) -> None:
        """Stop the processes. No call may be running."""
        self._threads.shutdown()
        while self._idle:
            self._idle.pop().stop()

    def _take(self, job: Json) -> _Child:
        """Return an idle process with this job, or start one, which may replace an idle process."""
        with self._lock:
            fits = next((one for one in self._idle if one.job is job and one.stop.alive), None)
            other = fits or (self._idle[0] if self._idle else None)
            if other is not None:
                self._idle.remove(other)
        if fits is None and other is not None:
            other.stop()
        return fits or _Child(job, self._environment)


class _Child(ChildProcess):
    """A process with a job. `first` is its answer to it."""

    def __init__(self, job: Json, environment: Mapping[str, str]) -> None:
        super().__init__(f"{__package__}.child", environment, _STOP_SECONDS, quiet=False)
        self.job, self.first = job, self.answer(job, _START_SECONDS)

    def answer(self, request: Json, seconds: float) -> Json:
        """Return the answer to a request. Raises ToolFailure with the reason if there is none."""
        try:
            answer: Json = self.ask(request, seconds, _MAX_LINE)
        except ChildFailure as why:
            raise ToolFailure(str(why)) from None
        if answer.get("ends"):
            self.stop()
        if "failure" in answer:
            raise ToolFailure(answer["failure"])
        return answer
