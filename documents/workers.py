"""Read documents in worker processes, and kill a process that misses its deadline."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Timer
from typing import Any

from ragbed.documents.errors import DocumentError
from ragbed.documents.paths import child_environment, count_cores
from ragbed.documents.sources import MAX_BYTES, Source, find_sources
from ragbed.documents.types import Document

_OCR_DEADLINE = 30  # times the usual deadline, for files whose pages are read by OCR
_MAX_START = 120.0  # seconds for a worker to start and import a parser


class Worker:
    """One parsing process. It is started on first use, and restarted if it dies."""

    def __init__(self, deadline: float, max_bytes: int) -> None:
        self._deadline = deadline
        self._max_bytes = max_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    @property
    def process(self) -> int | None:
        """Return the id of the process; None before it is started."""
        return None if self._process is None else self._process.pid

    def parse(self, source: Source) -> Document | DocumentError:
        """Parse a file. Return an error if it cannot be read, crashes the process or misses the deadline."""
        if self._closed:
            return DocumentError(source.relative, "not read: reading was stopped")
        used = self._process is not None
        process = self._start()
        assert process.stdin is not None
        deadline = self._deadline * (_OCR_DEADLINE if source.ocr else 1)
        request = {"path": os.fspath(source.path), "relative": source.relative, "deadline": deadline,
                   "max_bytes": self._max_bytes, "span": source.span, "id": source.id, "ocr": source.ocr}
        with suppress(BrokenPipeError):  # the missing answer is handled below
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        ready, _ = _read_answer(process, _MAX_START)
        if ready is None and used:  # it died between two files, so this one is not to blame
            self.close()
            return self.parse(source)
        answer, late = _read_answer(process, deadline) if ready else (None, False)
        if answer is None:
            return DocumentError(source.relative, self._death(process, late, ready is not None, deadline))
        if "reason" in answer:
            return DocumentError(source.relative, answer["reason"])
        return Document.from_json(answer)

    def interrupt(self) -> None:
        """End the process and do not restart it, even if another thread waits for its answer."""
        self._closed = True
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the process and close its pipes. No other thread may be using it."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "ragbed.documents.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env=child_environment())
        if self._closed:  # it was interrupted while the process started
            self._process.kill()
        return self._process

    def _death(self, process: subprocess.Popen[bytes], late: bool, ready: bool, deadline: float) -> str:
        code = process.wait() if not late else None
        self.close()
        if late:
            return f"not parsed within {deadline:g} seconds"
        what = "the parser died" if ready else "the parser did not start"
        return f"{what}: signal {signal.Signals(-code).name}" if code and code < 0 else f"{what}: exit status {code}"


def _read_answer(process: subprocess.Popen[bytes], seconds: float) -> tuple[dict[str, Any] | None, bool]:
    """Return the next answer and False; or None, and whether the process was killed for missing its deadline."""
    assert process.stdout is not None
    expired: list[bool] = []

    def kill() -> None:
        expired.append(True)
        process.kill()

    timer = Timer(seconds, kill)
    timer.daemon = True
    timer.start()
    try:
        line = process.stdout.readline()
    finally:
        timer.cancel()
    if not line.endswith(b"\n"):
        return None, bool(expired)
    return json.loads(line), False


_AHEAD = 4


def read_documents(sources: Sequence[Source], deadline: float = 120.0, workers: int | None = None,
                   max_bytes: int = MAX_BYTES) -> Iterator[Document | DocumentError]:
    """Yield the document of each source, or the error if it cannot be read, in the order of `sources`.

    Files are parsed in worker processes, so that a file which hangs or crashes its parser does not affect the others.

    Args:
        deadline: seconds to parse one file.
        workers: number of processes; by default one for each available core.
        max_bytes: size limit of one file.
    """
    count = max(1, min(workers or count_cores(), len(sources)))
    idle: SimpleQueue[Worker] = SimpleQueue()
    waiting: deque[Future[Document | DocumentError]] = deque()
    with ExitStack() as owned, ThreadPoolExecutor(count) as threads, ExitStack() as running:
        running.callback(lambda: [future.cancel() for future in waiting])
        for _ in range(count):
            worker = owned.enter_context(closing(Worker(deadline, max_bytes)))
            running.callback(worker.interrupt)
            idle.put(worker)
        for source in sources:
            waiting.append(threads.submit(_read, source, idle))
            if len(waiting) > count * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def read_document(path: str | Path, deadline: float = 120.0, max_bytes: int = MAX_BYTES) -> Document:
    """Parse one file in a worker process. Raises DocumentError if it cannot be read."""
    result, *more = read_documents(find_sources([path])[:2], deadline, 1, max_bytes)
    if more:
        raise DocumentError(str(path), "holds several documents; read them with find_sources and read_documents")
    if isinstance(result, DocumentError):
        raise result
    return result


def _read(source: Source, idle: SimpleQueue[Worker]) -> Document | DocumentError:
    if source.problem is not None:
        return DocumentError(source.relative, source.problem)
    worker = idle.get()
    try:
        return worker.parse(source)
    finally:
        idle.put(worker)
