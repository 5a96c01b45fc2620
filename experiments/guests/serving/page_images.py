"""Images of PDF pages, and the boxes of a passage on them."""
from __future__ import annotations

import html
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from ragbed.documents.parsers.clean_html import normalize_text
from ragbed.documents.types import Chunk, Document
from ragbed.retrieval.index import Index
from ragbed.retrieval.source_paths import read_source

Rect = tuple[float, float, float, float]  # x0, y0, x1, y1 in points, from the top left corner

_OPEN_FILES, _CACHED_IMAGES = 2, 48
_MAX_PIXELS = 3_000_000  # maximum pixels of an image
_ZOOM = 2.0  # pixels per point; fewer if the image would exceed _MAX_PIXELS
_MAX_WORDS = 20_000  # maximum words of a page; longer pages are not highlighted
_UNIQUE = 16  # lines with fewer letters must match whole words, because they may occur by chance
_MAX_GAP = 40  # maximum letters between a line and the previous one
_LOCK_SECONDS = 10.0  # seconds to wait while another request draws a page
_A4 = 595.0, 842.0
_TAG = re.compile(r"<[^<>]*>?|\A[^<>]*>")


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
    boxes: tuple[Rect, ...]
    letters: int
    found: int


_Source = tuple[Path, str, str]  # folder of an index, a source in it, and the SHA-256 of its bytes


class PageImages:
    """Draws pages one at a time, because MuPDF is not thread-safe. A request that waits too long gets no image."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file = lru_cache(_OPEN_FILES)(_open)
        self._png = lru_cache(_CACHED_IMAGES)(self._draw)

    def png(self, index: Index, document: Document, page: int) -> bytes | None:
        """Return the image of a page, counted from 1; None if there is none."""
        with self._open_pages(index, document) as (place, _):
            return self._png(place, page) if place and 1 <= page <= len(document.pages) else None

    def mark(self, index: Index, document: Document, pages: Iterable[int],
             chunk: Chunk | None) -> dict[int, MarkedPage] | None:
        """Find a chunk's text on a document's pages; None if the file moved or changed after it was indexed."""
        with self._open_pages(index, document) as (place, file):
            if place is None:
                return None
            read = {page: _read(file, page) for page in pages}
        return {page: _mark(words, boxes, size, list(_lines(document, chunk, page)) if chunk else [])
                for page, (words, boxes, size) in read.items()}

    @contextmanager
    def _open_pages(self, index: Index, document: Document) -> Iterator[tuple[_Source | None, Any]]:
        entry, place = index.manifest.sources.get(document.source), None
        free = self._lock.acquire(timeout=_LOCK_SECONDS)
        try:
            file = None
            if free and entry and document.pages and document.source.lower().endswith(".pdf"):
                place = index.folder, document.source, entry.sha256
                with suppress(LookupError):
                    file = self._file(place)
            yield (place, file) if file and file.page_count == len(document.pages) else (None, None)
        finally:
            if free:
                self._lock.release()

    def _draw(self, place: _Source, page: int) -> bytes | None:
        pymupdf = _mupdf()
        try:
            drawn = self._file(place)[page - 1]
            area = max(drawn.rect.width * drawn.rect.height, 1.0)
            zoom = min(_ZOOM, (_MAX_PIXELS / area) ** 0.5)
            data: bytes = drawn.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), alpha=False).tobytes("png")
        except (LookupError, pymupdf.mupdf.FzErrorBase, RuntimeError, ValueError):
            return None
        return data


_Words = Sequence[tuple[str, int, int]]  # words, each with the numbers of its block and line


def _read(file: Any, page: int) -> tuple[_Words, list[Rect], tuple[float, float]]:
    """Return words, boxes and size of a page; no words if it is damaged."""
    pymupdf = _mupdf()
    try:
        drawn = file[page - 1]
        size = drawn.rect.width, drawn.rect.height
        words = drawn.get_text("words", flags=pymupdf.TEXTFLAGS_WORDS & ~pymupdf.TEXT_PRESERVE_LIGATURES)
        boxes = [tuple(pymupdf.Rect(word[:4]) * drawn.rotation_matrix) for word in words]
    except (pymupdf.mupdf.FzErrorBase, RuntimeError, ValueError):
        return [], [], _A4
    return [(word[4], word[5], word[6]) for word in words], boxes, size


def _mark(words: _Words, boxes: Sequence[Rect], size: tuple[float, float], lines: Sequence[str]) -> MarkedPage:
    needles = list(filter(None, map(_letters, lines)))
    runs = _find_lines([word for word, _, _ in words], needles) if len(words) <= _MAX_WORDS else {}
    marks: dict[tuple[int, int, int], Rect] = {}  # one per line
    for run, (first, last) in runs.items():
        for at in range(first, last + 1):
            line = run, words[at][1], words[at][2]
            marks[line] = _around(marks.get(line, boxes[at]), boxes[at])
    return MarkedPage(*size, tuple(marks.values()), sum(map(len, needles)), sum(len(needles[place]) for place in runs))


def _mupdf() -> Any:
    """Import MuPDF, which has no types, and silence its messages about damaged files."""
    import pymupdf

    mupdf: Any = pymupdf
    mupdf.TOOLS.mupdf_display_errors(False)
    mupdf.TOOLS.mupdf_display_warnings(False)
    return mupdf


def _open(place: _Source) -> Any:
    """Open a file. Raises LookupError, which the cache does not keep, if there is no file."""
    data = read_source(*place)
    if data is None:
        raise LookupError(place)
    pymupdf = _mupdf()
    try:
        return pymupdf.open(stream=data, filetype="pdf")
    except (pymupdf.FileDataError, pymupdf.mupdf.FzErrorBase, RuntimeError, ValueError) as error:
        raise LookupError(place) from error


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


def _letters(text: str) -> str:
    """Return letters and digits only, so that hyphens, bullets and spaces make no difference."""
    return "".join(filter(str.isalnum, normalize_text(text)))


def _find_lines(words: Sequence[str], needles: Sequence[str]) -> dict[int, tuple[int, int]]:
    """Return the first and last word of each line found, by line number. A line that occurs more than once counts only
    where it follows the previous line, so that no position is guessed."""
    parts = list(map(_letters, words))
    text, owners = "".join(parts), [place for place, part in enumerate(parts) for _ in part]
    edges = {0, *accumulate(map(len, parts))}
    runs: dict[int, tuple[int, int]] = {}
    after = -_MAX_GAP - 1
    for number, needle in enumerate(needles):
        places = [at for at in (one.start() for one in re.finditer(needle, text))
                  if len(needle) >= _UNIQUE or {at, at + len(needle)} <= edges]
        near = [at for at in places if after <= at <= after + _MAX_GAP]
        if near or len(places) == 1:
            at = (near or places)[0]
            after = at + len(needle)
            runs[number] = owners[at], owners[after - 1]
    return runs


def _around(one: Rect, other: Rect) -> Rect:
    return (min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3]))
