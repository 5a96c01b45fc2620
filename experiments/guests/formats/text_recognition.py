"""Recognise the text of scanned PDF pages with RapidOCR, which runs on this machine: `ragbed index --ocr`."""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any

from ragbed.documents.errors import DocumentError, MissingExtra
from ragbed.documents.parsers.pdf import parse_pdf
from ragbed.documents.types import Document, Page

_DPI = 200
_MAX_PIXELS = 25_000_000  # of a page's picture; a larger page is drawn smaller
_SURE = 0.5  # least confidence of a line
_BLOCK = re.compile(r' data-page="(\d+)"')


def parse_scanned_pdf(data: bytes, source: str) -> Document:
    """Parse a PDF. Pages that are pictures without text are read by OCR, and marked with `data-ocr` in HTML and in
    the field `ocr_pages`. Raises DocumentError as `parse_pdf`, and MissingExtra without rapidocr-onnxruntime."""
    MissingExtra.check("ocr", "rapidocr_onnxruntime")
    import pymupdf

    try:
        parsed = parse_pdf(data, source)
        scanned: Sequence[int] = parsed.unread_pages
    except DocumentError as error:
        if not error.reason.startswith("no text"):
            raise
        parsed, scanned = None, ()
    opened: Any = pymupdf.open
    with opened(stream=data, filetype="pdf") as file:
        numbers = list(scanned) if parsed else list(range(1, file.page_count + 1))
        read = [number for number in numbers if _replace_page(file, number)]
        if not read and parsed:
            return parsed
        again = parse_pdf(file.tobytes() if read else data, source)
    html, pages = _mark(again, set(read))
    left = tuple(number for number in again.unread_pages if number not in read)
    fields = {**again.fields, "ocr_pages": _ranges(read)}
    return replace(again, html=html, pages=pages, unread_pages=left, ocr_pages=tuple(read), fields=fields)


def _replace_page(file: Any, number: int) -> bool:
    """Replace a page by one with its recognised text at the same places. Return False if there is none."""
    page = file[number - 1]
    width, height = page.rect.width, page.rect.height
    dpi = int(min(_DPI, 72 * (_MAX_PIXELS / max(width * height, 1)) ** 0.5))
    lines = _recognise(page.get_pixmap(dpi=max(dpi, 1), alpha=False))
    if not lines:
        return False
    file.new_page(pno=number - 1, width=width, height=height)
    file.delete_page(number)
    written = file[number - 1]
    for corners, text in lines:
        (x0, y0), (x1, y1) = corners
        x0, y0, x1, y1 = (value * 72 / max(dpi, 1) for value in (x0, y0, x1, y1))
        font = "helv" if text.encode("latin-1", "ignore").decode("latin-1") == text else "china-s"
        natural = _font(font).text_length(text, fontsize=1) or 1.0
        size = max(min((y1 - y0) * 0.8, (x1 - x0) / natural), 1.0)
        written.insert_text((x0, y1 - (y1 - y0) * 0.25), text, fontsize=size, fontname=font)
    return True


@cache
def _font(name: str) -> Any:
    import pymupdf

    made: Any = pymupdf.Font
    return made(name)


@cache
def _reader() -> Any:
    from rapidocr_onnxruntime import RapidOCR

    return RapidOCR()


Corners = tuple[tuple[float, float], tuple[float, float]]


def _recognise(picture: Any) -> list[tuple[Corners, str]]:
    """Return the recognised lines with their upper left and lower right corners, in pixels."""
    import numpy as np

    pixels = np.frombuffer(picture.samples, np.uint8).reshape(picture.height, picture.width, picture.n)
    found, _ = _reader()(pixels)
    return [(((min(x for x, _ in box), min(y for _, y in box)), (max(x for x, _ in box), max(y for _, y in box))), text)
            for box, text, sure in found or () if float(sure) >= _SURE and text.strip()]


def _mark(parsed: Document, numbers: set[int]) -> tuple[str, tuple[Page, ...]]:
    """Return the HTML with `data-ocr` in the blocks of recognised pages, and where its pages begin."""
    starts = [page.html for page in parsed.pages] + [len(parsed.html)]
    parts: list[str] = []
    pages: list[Page] = []
    at = 0
    for page, end in zip(parsed.pages, starts[1:], strict=True):
        part = parsed.html[page.html:end]
        if page.number in numbers:
            part = _BLOCK.sub(r' data-page="\1" data-ocr="true"', part)
        pages.append(replace(page, html=at))
        parts.append(part)
        at += len(part)
    return "".join(parts), tuple(pages)


def _ranges(numbers: Sequence[int]) -> str:
    """Return page numbers as text, as in `1-3, 7`."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda one: one[1] - one[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
