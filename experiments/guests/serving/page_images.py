"""Images of PDF pages, and the boxes of a passage on them. Processes of their own draw them: a page may be hostile."""
from __future__ import annotations

import asyncio
import base64
import html
import re
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from fastapi import Request

from ragbed.documents.child_process import ChildFailure, ChildProcess
from ragbed.documents.types import Chunk, Document
from ragbed.experiments.guests.serving import page_drawing
from ragbed.experiments.guests.serving.middleware import Queue
from ragbed.experiments.guests.serving.state import http_error, request_owner
from ragbed.retrieval.index import Index

_PROCESSES, _MAX_WAITING = 2, 64
_START_SECONDS, _DRAW_SECONDS = 60.0, 10.0
_CACHED_BYTES = 64_000_000  # of images
_MAX_FAILURES, _FAILURE_SECONDS = 1_000, 600.0  # pages that are not tried again, and for how long
_TAG = re.compile(r"<[^<>]*>?|\A[^<>]*>")


class Undrawable(Exception):
    """A page cannot be drawn, for this reason."""


@dataclass(frozen=True, slots=True)
class MarkedPage:
    """A page with the boxes of a passage.

    Attributes:
        width, height: size of the page, in points.
        letters: number of the passage's letters on this page, according to the parsed text.
        found: number of these letters that were found on the image.
    """

    width: float
    height: float
    boxes: Sequence[page_drawing.Rect]
    letters: int
    found: int


class PageImages:
    """Draws pages in a few processes. One client never holds all of them. A page that was not drawn in time, or killed
    its process, is not tried again for a while."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_PROCESSES, "drawing")
        self._idle: list[ChildProcess] = []
        self._children: WeakSet[ChildProcess] = WeakSet()
        self._places = Queue(_PROCESSES, _MAX_WAITING)
        self._owners: dict[str, Queue] = {}
        self._images: OrderedDict[str, bytes] = OrderedDict()
        self._failures: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def clear(self) -> None:
        """Drop the images that were drawn."""
        self._images.clear()

    async def png(self, request: Request, index: Index, document: Document, page: int) -> bytes | None:
        """Return the image of a page, counted from 1; None if there is none. Raises Undrawable, and HTTPException if
        too many requests wait."""
        place = _place(index, document)
        if place is None or not 1 <= page <= len(document.pages):
            return None
        key = repr((place, page))
        if key not in self._images:
            answer = await self._ask(request, key, {**place, "page": page})
            if "png" not in answer:
                return None
            self._images[key] = base64.b64decode(answer["png"])
            while sum(map(len, self._images.values())) > _CACHED_BYTES:
                self._images.popitem(last=False)
        self._images.move_to_end(key)
        return self._images[key]

    async def mark(self, request: Request, index: Index, document: Document, pages: Sequence[int],
                   chunk: Chunk | None) -> dict[int, MarkedPage] | None:
        """Find a chunk's text on a document's pages; None if the file moved or changed after it was indexed. Raises as
        `png`."""
        place = _place(index, document)
        if place is None:
            return None
        for page in pages:
            self._check(repr((place, page)))
        lines = [(page, list(_lines(document, chunk, page)) if chunk else []) for page in pages]
        key = repr((place, list(pages), chunk and chunk.id))
        marked = (await self._ask(request, key, {**place, "lines": lines})).get("marked")
        return None if marked is None else {page: MarkedPage(*one) for page, one in zip(pages, marked, strict=True)}

    def close(self) -> None:
        """End the processes, also while they draw."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for child in list(self._children):
            child.send_signal()

    async def _ask(self, request: Request, key: str, order: Mapping[str, Any]) -> Any:
        """Return a process's answer, once it is this client's turn."""
        self._check(key)
        await request.body()  # what arrives afterwards says that the client left
        owner = request_owner(request) or (request.client.host if request.client else "")
        own = self._owners.setdefault(owner, Queue(_PROCESSES - 1, _MAX_WAITING // 4))
        try:
            async with own.place(request.receive) as first, self._places.place(request.receive) as second:
                if not (first and second):
                    raise http_error(499, "the client disconnected", "client_closed")
                self._check(key)
                idle = self._idle.pop() if self._idle else None
                child, answer = await asyncio.get_running_loop().run_in_executor(
                    self._threads, self._draw, idle, order)
                if child.stop.alive:
                    self._idle.append(child)
        finally:
            if not own.running + own.waiting:
                self._owners.pop(owner, None)
        if "reason" in answer:
            self._failures[key] = answer["reason"], time.monotonic() + _FAILURE_SECONDS
            while len(self._failures) > _MAX_FAILURES:
                self._failures.popitem(last=False)
            self._check(key)
        return answer

    def _check(self, key: str) -> None:
        """Raise Undrawable if drawing failed a short time ago."""
        why, until = self._failures.get(key, ("", 0.0))
        if until > time.monotonic():
            raise Undrawable(why)

    def _draw(self, child: ChildProcess | None, order: Mapping[str, Any]) -> tuple[ChildProcess, Any]:
        """Have a process carry out an order. One that failed is stopped, because its state is unknown."""
        if child is None or not child.running:
            child = ChildProcess(page_drawing.__name__)
            self._children.add(child)
        try:
            child.ask({}, _START_SECONDS)  # so that the deadline covers drawing only
            answer = child.ask(order, _DRAW_SECONDS)
        except ChildFailure as why:
            answer = {"reason": str(why)}
        if "reason" in answer:
            child.stop()
        return child, answer


def _place(index: Index, document: Document) -> dict[str, Any] | None:
    """Return where the file of a document is, as the process expects it; None if it is not a PDF with pages."""
    entry = index.manifest.sources.get(document.source)
    if entry is None or not document.pages or not document.source.lower().endswith(".pdf"):
        return None
    return {"file": [str(index.folder), document.source, entry.sha256], "count": len(document.pages)}


def _lines(document: Document, chunk: Chunk, page: int) -> Iterator[str]:
    """Yield the lines of a chunk's part on a page, and the cells of its tables."""
    begins = {one.number: one.html if chunk.format == "html" else one.plain for one in document.pages}
    text = document.text(chunk.format)
    part = text[max(chunk.start, begins.get(page, 0)):min(chunk.end, begins.get(page + 1, len(text)))]
    if chunk.format == "html":
        part = html.unescape(_TAG.sub("\n", part))
    for line in part.split("\n"):
        if line.startswith("|"):
            yield from line.split("|")
        else:
            yield line
