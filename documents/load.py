"""Reads many documents in parallel, or one, apart from this process."""
from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from queue import SimpleQueue

from documents.errors import DocumentError
from documents.pool import Worker
from documents.processors import processors
from documents.sources import Source, find_sources
from documents.types import Document

LARGEST = 100_000_000
"""Bytes above which a file is refused."""

_AHEAD = 4


def read_documents(sources: Sequence[Source], deadline: float = 120.0, workers: int | None = None,
                   largest: int = LARGEST) -> Iterator[Document | DocumentError]:
    """Each source's document, or the error that says why there is none, in the order of `sources`.

    Files are parsed in processes of their own, so that one which hangs or kills its parser costs itself only.

    Args:
        deadline: seconds that one file may take to parse.
        workers: processes; as many as there are processors to use, if None.
        largest: bytes above which a file is refused.
    """
    count = max(1, min(workers or processors(), len(sources)))
    idle: SimpleQueue[Worker] = SimpleQueue()
    waiting: deque[Future[Document | DocumentError]] = deque()
    with ExitStack() as owned, ThreadPoolExecutor(count) as threads, ExitStack() as running:
        running.callback(_cancel, waiting)
        for _ in range(count):
            worker = owned.enter_context(closing(Worker(deadline, largest)))
            running.callback(worker.interrupt)
            idle.put(worker)
        for source in sources:
            waiting.append(threads.submit(_read, source, idle))
            if len(waiting) > count * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def read_document(path: str | Path, deadline: float = 120.0, largest: int = LARGEST) -> Document:
    """The document in one file; its source is the file's name.

    Raises:
        DocumentError: it cannot be read.
    """
    (result,) = read_documents(find_sources([path]), deadline, 1, largest)
    if isinstance(result, DocumentError):
        raise result
    return result


def _cancel(waiting: Iterable[Future[Document | DocumentError]]) -> None:
    for future in waiting:
        future.cancel()


def _read(source: Source, idle: SimpleQueue[Worker]) -> Document | DocumentError:
    if source.problem is not None:
        return DocumentError(source.relative, source.problem)
    worker = idle.get()
    try:
        return worker.parse(source)
    finally:
        idle.put(worker)
