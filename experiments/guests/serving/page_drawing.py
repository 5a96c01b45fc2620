"""The process that draws pages of PDF files, and finds the lines of a passage on them: `page_images` asks it."""
from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from ragbed.documents.child_process import answer_requests
from ragbed.documents.parsers.clean_html import normalize_text
from ragbed.documents.pdf_layout import skip_layout_models
from ragbed.retrieval.source_paths import read_source

Rect = tuple[float, float, float, float]  # x0, y0, x1, y1 in points, from the top left corner

_MAX_MEMORY = 1024**3  # bytes
_OPEN_FILES = 2
_MAX_PIXELS = 3_000_000  # maximum pixels of an image
_ZOOM = 2.0  # pixels per point; fewer if the image would exceed _MAX_PIXELS
_MAX_WORDS = 20_000  # maximum words of a page; longer pages are not highlighted
_UNIQUE = 16  # lines with fewer letters must match whole words, because they may occur by chance
_MAX_GAP = 40  # maximum letters between a line and the previous one
_A4 = 595.0, 842.0


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `png` of a page, or the `marked` pages with the boxes of their lines; nothing if the file was moved or
    changed, or does not have `count` pages. Without `file`, only import MuPDF."""
    pymupdf = _mupdf()
    if "file" not in request:
        return {}
    try:
        file = _open(*request["file"])
    except LookupError:
        return {}
    if file.page_count != request["count"]:
        return {}
    if "page" not in request:
        return {"marked": [_mark(*_read(file, page), lines) for page, lines in request["lines"]]}
    try:
        page = file[request["page"] - 1]
        area = max(page.rect.width * page.rect.height, 1.0)
        zoom = min(_ZOOM, (_MAX_PIXELS / area) ** 0.5)
        png: bytes = page.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), alpha=False).tobytes("png")
    except (LookupError, pymupdf.mupdf.FzErrorBase, RuntimeError, ValueError):
        return {"reason": "it is damaged, or needs too much memory"}
    return {"png": base64.b64encode(png).decode()}


@lru_cache(_OPEN_FILES)
def _open(folder: str, source: str, sha256: str) -> Any:
    """Open a file. Raises LookupError, which the cache does not keep, if it is not there or not a PDF."""
    data = read_source(Path(folder), source, sha256)
    if data is None:
        raise LookupError(source)
    pymupdf = _mupdf()
    try:
        return pymupdf.open(stream=data, filetype="pdf")
    except (pymupdf.FileDataError, pymupdf.mupdf.FzErrorBase, RuntimeError, ValueError) as error:
        raise LookupError(source) from error


@cache
def _mupdf() -> Any:
    """Import MuPDF, which has no types, and silence its messages about damaged files."""
    import pymupdf

    mupdf: Any = pymupdf
    mupdf.TOOLS.mupdf_display_errors(False)
    mupdf.TOOLS.mupdf_display_warnings(False)
    return mupdf


_Words = Sequence[tuple[str, int, int]]  # words, each with the numbers of its block and line


def _read(file: Any, page: int) -> tuple[_Words, list[Rect], tuple[float, float]]:
    """Return words, boxes and size of a page; no words if it is damaged."""
    pymupdf = _mupdf()
    try:
        drawn = file[page - 1]
        size = drawn.rect.width, drawn.rect.height
        words = drawn.get_text("words", flags=pymupdf.TEXTFLAGS_WORDS & ~pymupdf.TEXT_PRESERVE_LIGATURES)
        boxes = [tuple(pymupdf.Rect(word[:4]) * drawn.rotation_matrix) for word in words]
    except (LookupError, pymupdf.mupdf.FzErrorBase, RuntimeError, ValueError):
        return [], [], _A4
    return [(word[4], word[5], word[6]) for word in words], boxes, size


def _mark(words: _Words, boxes: Sequence[Rect], size: tuple[float, float], lines: Sequence[str]) -> list[Any]:
    """Return the fields of a `MarkedPage`."""
    needles = list(filter(None, map(_letters, lines)))
    runs = _find_lines([word for word, _, _ in words], needles) if len(words) <= _MAX_WORDS else {}
    marks: dict[tuple[int, int, int], Rect] = {}  # one per line
    for run, (first, last) in runs.items():
        for at in range(first, last + 1):
            line = run, words[at][1], words[at][2]
            marks[line] = _around(marks.get(line, boxes[at]), boxes[at])
    return [*size, list(marks.values()), sum(map(len, needles)), sum(len(needles[place]) for place in runs)]


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


if __name__ == "__main__":
    skip_layout_models()
    if hasattr(os, "nice"):
        os.nice(10)  # answers of the server come first
    answer_requests(answer, _MAX_MEMORY)
