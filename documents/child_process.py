"""Run a module in a process of its own, with a deadline and a memory limit, that ends with its parent.

    child = ChildProcess("ragbed.documents.worker")
    answer = child.ask({"path": "a.pdf"}, seconds=60)

In the child, the module's `main` calls `answer_requests`. A request and its answer are one line of JSON each.
"""
from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from weakref import finalize

from ragbed.documents.paths import child_environment

_PR_SET_PDEATHSIG = 1
_MAX_ANSWER = 1 << 30  # bytes
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has only the latter


class ChildFailure(Exception):
    """A child process gave no answer, for this reason."""


class ChildProcess:
    """Starts a module, which answers one request at a time. `stop` ends it, and is no longer `alive` then.

    Args:
        environment: by default this process's environment without secrets.
        grace: seconds that it may take to end by itself, for instance to stop processes that it started.
        quiet: whether to drop what it prints, instead of writing it to standard error.
    """

    def __init__(self, module: str, environment: Mapping[str, str] | None = None, grace: float = 0.0,
                 quiet: bool = True) -> None:
        # Linux ends a child when the thread that started it ends, so one thread, which does not end, starts them all.
        process: subprocess.Popen[bytes] = _starter(os.getpid()).submit(
            subprocess.Popen, [sys.executable, "-P", "-m", module, str(os.getpid())], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if quiet else None,
            env=environment or child_environment(), process_group=0).result()
        self._process, self._grace, self.pid = process, grace, process.pid
        self.stop = finalize(self, _stop, process, grace)

    @property
    def running(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Any], seconds: float, max_bytes: int = _MAX_ANSWER) -> Any:
        """Return the answer to a request. Raises ChildFailure, and stops the child, if it dies or is late."""
        process, grace, expired = self._process, self._grace, list[bool]()
        assert process.stdin is not None
        assert process.stdout is not None

        def expire() -> None:
            expired.append(True)
            _end(process, grace)

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        with suppress(BrokenPipeError, ValueError):  # the missing answer is handled below
            process.stdin.write(json.dumps({**request, "seconds": seconds}).encode() + b"\n")
            process.stdin.flush()
        line = process.stdout.readline(max_bytes)
        timer.cancel()
        if line.endswith(b"\n"):
            return json.loads(line)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0 if line or expired else 1)  # for its own exit status
        self.stop()
        code = process.returncode
        ended = f"exit status {code}" if code >= 0 else signal.Signals(-code).name
        raise ChildFailure(f"it took longer than {seconds:g} seconds" if expired else f"its process ended with {ended}")

    def send_signal(self, number: int = _KILL) -> None:
        """Send it and the processes that it started a signal. Another thread may wait for its answer."""
        _signal(self._process, number)


@cache
def _starter(parent: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "children")


def _stop(process: subprocess.Popen[bytes], grace: float) -> None:
    _end(process, grace)
    for pipe in (process.stdin, process.stdout):
        with suppress(BrokenPipeError):
            assert pipe is not None
            pipe.close()


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    if grace:
        _signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    _signal(process, _KILL)
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number) if hasattr(os, "killpg") else process.terminate()


class Requests:
    """The child's side: reads requests and writes answers. What libraries print goes to standard error.

    Args:
        ends_by: signal that ends this process when its parent ends.
    """

    def __init__(self, ends_by: int = _KILL) -> None:
        self._answers = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        end_with_parent(int(sys.argv[1]), ends_by)

    def read(self) -> Any:
        """Return the next request; None if there are no more. The kernel ends this process if it is late."""
        request = json.loads(sys.stdin.buffer.readline() or b"null")
        if request:
            _set_alarm(int(request["seconds"]) + 20)
        return request

    def answer(self, answer: Mapping[str, Any]) -> None:
        """Answer the last request."""
        with suppress(BrokenPipeError):  # the parent is gone
            self._answers.write(json.dumps(answer).encode() + b"\n")
            self._answers.flush()
        _set_alarm(0)


def answer_requests(answer: Callable[[Any], Mapping[str, Any]], memory: int) -> None:
    """Answer requests until there are no more. One that needs more than `memory` bytes, or is nested too deeply, is
    answered with a `reason`."""
    requests = Requests()
    limit_memory(memory)
    while request := requests.read():
        try:
            made = answer(request)
        except MemoryError:
            made = {"reason": f"needs more than {memory / 1024**3:g} GB of memory"}
        except RecursionError:
            made = {"reason": "nested too deeply"}
        requests.answer(made)


def end_with_parent(parent: int, by: int = _KILL) -> None:
    """End this process when its parent ends, even if it was killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.getppid() != parent:
        os._exit(0)


def bind_to_parent(command: Sequence[str]) -> list[str]:
    """Return a command that runs a program which ends with this process, even if this process is killed, on Linux."""
    if sys.platform != "linux":
        return list(command)
    code = (f"import ctypes, os, sys; ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, {int(_KILL)}); "
            f"os.getppid() == {os.getpid()} or os._exit(0); os.execvp(sys.argv[1], sys.argv[1:])")
    return [sys.executable, "-I", "-S", "-c", code, *command]


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


def limit_memory(most: int) -> None:
    """Limit the memory that this process may use beyond what it has reserved, in bytes."""
    if sys.platform == "win32":
        return
    import resource

    with suppress(OSError):  # other systems do not say
        most += int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _set_alarm(seconds: int) -> None:
    if sys.platform != "win32":
        signal.alarm(seconds)
