"""Pages of PDF files as pictures, and where a passage stands on them."""
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

from ragbed.documents.parsers.clean_html import normalised
from ragbed.documents.types import Chunk, Document
from ragbed.retrieval.index import Index
from ragbed.retrieval.origins import file_of

Rect = tuple[float, float, float, float]  # x0, y0, x1, y1 in points, from the top left corner

_OPEN, _KEPT = 2, 48  # files that stay open, and pictures that are kept
_PIXELS = 3_000_000  # of a picture
_ZOOM = 2.0  # pixels a point, where that is not too many
_WORDS = 20_000  # of a page, above which nothing is looked for
_SURE = 16  # letters that hardly stand on a page twice by chance; what is shorter has to be whole words
_NEAR = 40  # letters between a line and the one before
_PATIENCE = 10.0  # seconds of waiting for the page that another request has drawn
_A4 = 595.0, 842.0
_TAG = re.compile(r"<[^<>]*>?|\A[^<>]*>")


@dataclass(frozen=True, slots=True)
class Marked:
    """A page on which a passage was looked for.

    Attributes:
        width: of the page, in points.
        sought: letters of the passage that stand on this page, as it was read.
        found: how many of them were found on the picture.
    """

    width: float
    height: float
    boxes: tuple[Rect, ...]
    sought: int
    found: int


_Place = tuple[Path, str, str]  # an index's folder, a source in it, and the SHA-256 of its bytes


class Pictures:
    """Draws pages. MuPDF does one thing at a time in a process, whatever thread asks; a page that takes long to draw
    holds others up for some seconds, and then they go without."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file = lru_cache(_OPEN)(_opened)
        self._png = lru_cache(_KEPT)(self._drawn)

    def png(self, index: Index, document: Document, page: int) -> bytes | None:
        """Return the picture of a page, counted from 1; None where there is none."""
        with self._opening(index, document) as (place, _):
            return self._png(place, page) if place and 1 <= page <= len(document.pages) else None

    def marked(self, index: Index, document: Document, pages: Iterable[int],
               chunk: Chunk | None) -> dict[int, Marked] | None:
        """Look for a chunk's text on pages of a document, by their numbers; None where its file is not where it was, as
        it was when it was indexed."""
        with self._opening(index, document) as (place, file):
            if place is None:
                return None
            read = {page: _read(file, page) for page in pages}
        return {page: _marked(words, boxes, size, list(_lines(document, chunk, page)) if chunk else [])
                         for page, (words, boxes, size) in read.items()}

    @contextmanager
    def _opening(self, index: Index, document: Document) -> Iterator[tuple[_Place | None, Any]]:
        entry, place = index.manifest.sources.get(document.source), None
        free = self._lock.acquire(timeout=_PATIENCE)
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

    def _drawn(self, place: _Place, page: int) -> bytes | None:
        pymupdf = _mupdf()
        try:
            drawn = self._file(place)[page - 1]
            area = max(drawn.rect.width * drawn.rect.height, 1.0)
            zoom = min(_ZOOM, (_PIXELS / area) ** 0.5)
            data: bytes = drawn.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), alpha=False).tobytes("png")
        except (LookupError, pymupdf.mupdf.FzErrorBase, RuntimeError, ValueError):
            return None
        return data


_Words = Sequence[tuple[str, int, int]]  # each with its block and its line there


def _read(file: Any, page: int) -> tuple[_Words, list[Rect], tuple[float, float]]:
    """The words of a page and their boxes, and its size; no words of one that is damaged."""
    pymupdf = _mupdf()
    try:
        drawn = file[page - 1]
        size = drawn.rect.width, drawn.rect.height
        words = drawn.get_text("words", flags=pymupdf.TEXTFLAGS_WORDS & ~pymupdf.TEXT_PRESERVE_LIGATURES)
        boxes = [tuple(pymupdf.Rect(word[:4]) * drawn.rotation_matrix) for word in words]
    except (pymupdf.mupdf.FzErrorBase, RuntimeError, ValueError):
        return [], [], _A4
    return [(word[4], word[5], word[6]) for word in words], boxes, size


def _marked(words: _Words, boxes: Sequence[Rect], size: tuple[float, float], lines: Sequence[str]) -> Marked:
    needles = list(filter(None, map(_letters, lines)))
    runs = _found([word for word, _, _ in words], needles) if len(words) <= _WORDS else {}
    marks: dict[tuple[int, int, int], Rect] = {}  # one a line
    for run, (first, last) in runs.items():
        for at in range(first, last + 1):
            line = run, words[at][1], words[at][2]
            marks[line] = _around(marks.get(line, boxes[at]), boxes[at])
    return Marked(*size, tuple(marks.values()), sum(map(len, needles)), sum(len(needles[place]) for place in runs))


def _mupdf() -> Any:
    """The library, which has no types, and tells nothing of damaged files."""
    import pymupdf

    mupdf: Any = pymupdf
    mupdf.TOOLS.mupdf_display_errors(False)
    mupdf.TOOLS.mupdf_display_warnings(False)
    return mupdf


def _opened(place: _Place) -> Any:
    """The file; LookupError, which no cache keeps, where there is none."""
    data = file_of(*place)
    if data is None:
        raise LookupError(place)
    pymupdf = _mupdf()
    try:
        return pymupdf.open(stream=data, filetype="pdf")
    except (pymupdf.FileDataError, pymupdf.mupdf.FzErrorBase, RuntimeError, ValueError) as error:
        raise LookupError(place) from error


def _lines(document: Document, chunk: Chunk, page: int) -> Iterator[str]:
    """The lines of the part of a chunk that stands on a page, and the cells of its tables."""
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
    """What hyphens, bullets, signs and spaces do not change."""
    return "".join(filter(str.isalnum, normalised(text)))


def _found(words: Sequence[str], needles: Sequence[str]) -> dict[int, tuple[int, int]]:
    """Of lines by their place, the run of words, from first to last, that is the line. One that stands there more than
    once is taken where it follows the one before, else it is not found: no place is guessed."""
    parts = list(map(_letters, words))
    text, owners = "".join(parts), [place for place, part in enumerate(parts) for _ in part]
    edges = {0, *accumulate(map(len, parts))}
    runs: dict[int, tuple[int, int]] = {}
    after = -_NEAR - 1
    for number, needle in enumerate(needles):
        places = [at for at in (one.start() for one in re.finditer(needle, text))
                  if len(needle) >= _SURE or {at, at + len(needle)} <= edges]
        near = [at for at in places if after <= at <= after + _NEAR]
        if near or len(places) == 1:
            at = (near or places)[0]
            after = at + len(needle)
            runs[number] = owners[at], owners[after - 1]
    return runs


def _around(one: Rect, other: Rect) -> Rect:
    return (min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3]))
