"""Read documents in worker processes, and kill a process that misses its deadline."""
from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from queue import SimpleQueue

from ragbed.documents.child_process import ChildFailure, ChildProcess
from ragbed.documents.errors import DocumentError
from ragbed.documents.paths import count_cores
from ragbed.documents.sources import MAX_BYTES, Source, find_sources
from ragbed.documents.types import Document

_OCR_DEADLINE = 30  # times the usual deadline, for files whose pages are read by OCR
_MAX_START = 120.0  # seconds for a worker to start and import a parser


class Worker:
    """One parsing process. It is started on first use, and restarted if it dies."""

    def __init__(self, deadline: float, max_bytes: int) -> None:
        self._deadline, self._max_bytes = deadline, max_bytes
        self._child: ChildProcess | None = None
        self._closed = False

    @property
    def process(self) -> int | None:
        """Return the id of the process; None before it is started."""
        return None if self._child is None else self._child.pid

    def parse(self, source: Source) -> Document | DocumentError:
        """Parse a file. Return an error if it cannot be read, crashes the process or misses the deadline."""
        if self._closed:
            return DocumentError(source.relative, "not read: reading was stopped")
        used, child = self._child is not None, self._start()
        request = {"relative": source.relative, "ocr": source.ocr}
        try:
            child.ask(request, _MAX_START)  # so that the deadline covers parsing only
        except ChildFailure as why:
            self.close()
            # one that died between two files is not this file's fault
            return self.parse(source) if used else DocumentError(source.relative, f"the parser did not start: {why}")
        try:
            answer = child.ask({**request, "path": os.fspath(source.path), "max_bytes": self._max_bytes,
                                "span": source.span, "id": source.id},
                               self._deadline * (_OCR_DEADLINE if source.ocr else 1))
        except ChildFailure as why:
            self.close()
            answer = {"reason": f"not parsed: {why}"}
        return DocumentError(source.relative, answer["reason"]) if "reason" in answer else Document.from_json(answer)

    def interrupt(self) -> None:
        """End the process and do not restart it, even if another thread waits for its answer."""
        self._closed = True
        if self._child is not None:
            self._child.send_signal()

    def close(self) -> None:
        """End the process. No other thread may be using it."""
        child, self._child = self._child, None
        if child is not None:
            child.stop()

    def _start(self) -> ChildProcess:
        if self._child is None:
            self._child = ChildProcess("ragbed.documents.worker")
        if self._closed:  # it was interrupted while the process started
            self._child.send_signal()
        return self._child


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
