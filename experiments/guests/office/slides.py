"""Open Office files, and parse PowerPoint files with python-pptx. Macros are ignored."""
from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.parsers.expat import ExpatError

from ragbed.documents.errors import DocumentError, MissingExtra
from ragbed.documents.parsers.clean_html import HEADINGS, Open, Tidy, normalize_text
from ragbed.documents.parsers.plain import write_pages
from ragbed.documents.paths import keep_hidden_text
from ragbed.documents.types import Document, new_document
from ragbed.experiments.guests.office.drawings import (
    DIAGRAM,
    MARKUP,
    A,
    R,
    parse_xml,
    read_chart,
    read_diagram,
    read_lines,
    read_paragraph,
)
from ragbed.experiments.guests.office.office_math import read_office_math
from ragbed.experiments.guests.office.word_numbering import format_count

if TYPE_CHECKING:
    from pptx.slide import Slide

_MAX_UNPACKED = 500_000_000  # bytes
_FORMATS = {"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman"}
_ADDRESS = re.compile(r"<[^<>]* at 0x[0-9a-f]+>")


@contextmanager
def open_archive(data: bytes, source: str) -> Iterator[io.BytesIO]:
    """Open an Office file, a ZIP archive, for a library, and turn the library's errors into DocumentError.

    Raises:
        DocumentError: the file is not an Office file, is encrypted or damaged, or unpacks to more than the limit.
    """
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise DocumentError(source, f"an encrypted or old Office file: save it as .{source[-4:].lower()} "
                                    f"without a password")
    try:
        size = sum(entry.file_size for entry in zipfile.ZipFile(io.BytesIO(data)).infolist())
    except (zipfile.BadZipFile, OSError, LookupError, ValueError, NotImplementedError) as error:
        raise DocumentError(source, "not an Office file, or a damaged one") from error
    if size > _MAX_UNPACKED:
        raise DocumentError(source, f"unpacks to more than the limit of {_MAX_UNPACKED:,} bytes")
    try:
        yield io.BytesIO(data)
    except (zipfile.BadZipFile, zlib.error, OSError, LookupError, ValueError, TypeError, AttributeError, SyntaxError,
            AssertionError, NotImplementedError, ExpatError) as error:  # what the libraries raise on damaged files
        message = _ADDRESS.sub("it", " ".join(str(error).split()))[:200]
        raise DocumentError(source, f"a damaged Office file: {message or type(error).__name__}") from error


def parse_pptx(data: bytes, source: str) -> Document:
    """Read a presentation, one page per slide: title, texts, tables, charts as tables, alternative texts and notes.

    Raises DocumentError if it is not a presentation, damaged or encrypted, and MissingExtra without python-pptx.
    """
    MissingExtra.check("office", "pptx")
    from pptx import Presentation

    with open_archive(data, source) as file:
        show = Presentation(file)
        margins: set[str] = set()
        slides = [_slide(slide, margins) for slide in show.slides]
        title = " ".join(normalize_text(show.core_properties.title or "").split())
    html, plain, pages = write_pages(tidy.events for tidy in slides)
    heading = next((tidy.events[at + 1] for tidy in slides for at, event in enumerate(tidy.events)
                    if isinstance(event, Open) and event.tag in HEADINGS), "")
    return new_document(title or str(heading), html, plain, pages, sum(tidy.hidden for tidy in slides))


def _slide(slide: Slide, margins: set[str]) -> Tidy:
    """Read a slide. `margins` has the footers and dates of slides before it, which are not repeated."""
    tidy = Tidy()
    _rewrite(slide.element)
    named = slide.shapes.title
    if named is not None:
        _block(tidy, "h2", named.text_frame._txBody)
    _shapes(tidy, (shape for shape in slide.shapes if named is None or shape.shape_id != named.shape_id), margins)
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if notes is not None and notes.text.strip():
        _block(tidy, "h3", "Notes")
        _paragraphs(tidy, notes._txBody)
    tidy.boundary()
    if slide.element.get("show") in ("0", "false") and not keep_hidden_text():
        return _empty_slide_page(tidy)
    return tidy


def _empty_slide_page(tidy: Tidy) -> Tidy:
    """Return an empty page that counts the hidden characters of a slide."""
    nothing = Tidy()
    nothing.hidden = tidy.hidden + sum(len(event) for event in tidy.events if isinstance(event, str))
    return nothing


def _rewrite(root: Any) -> None:
    """Turn formulas into runs of text, and replace alternatives by the first, because python-pptx reads neither."""
    from lxml import etree

    for element in list(root.iter(f"{MARKUP}AlternateContent")):
        chosen = next((each for each in element if len(each)), element)
        parent = element.getparent()
        at = parent.index(element)
        parent[at:at + 1] = list(chosen)
    for element in list(root.iter("{*}oMathPara", "{*}oMath")):
        if element.getparent() is not None and element.find(".//{*}oMath") is None:
            text = read_office_math(element)
            element.clear()
            element.tag = f"{A}r"
            etree.SubElement(element, f"{A}t").text = text


def _shapes(tidy: Tidy, shapes: Iterable[Any], margins: set[str]) -> None:
    from pptx.enum.shapes import PP_PLACEHOLDER as KIND

    for shape in shapes:
        drawn = shape.element.xpath(".//p:cNvPr")[0]
        kind = shape.placeholder_format.type if shape.is_placeholder else None
        margin = shape.text_frame.text if kind in (KIND.DATE, KIND.FOOTER, KIND.HEADER) else None
        if kind == KIND.SLIDE_NUMBER or margin in margins:
            continue
        margins |= set() if margin is None else {margin}
        if drawn.get("hidden") in ("1", "true") and not keep_hidden_text():
            tidy.hidden += len("".join(shape.element.xpath(".//a:t/text()")))
        elif hasattr(shape, "shapes"):
            _shapes(tidy, shape.shapes, margins)
        elif shape.has_text_frame:
            _paragraphs(tidy, shape.text_frame._txBody, listed=kind in (KIND.BODY, KIND.OBJECT))
        elif shape.has_table:
            _table(tidy, [[(read_lines(cell._tc), cell.span_width, cell.span_height) for cell in row.cells
                           if not cell.is_spanned] for row in shape.table.rows], heads=int(shape.table.first_row))
        elif shape.has_chart:
            titles, rows = read_chart(shape.chart._chartSpace)
            for text in titles:
                _block(tidy, "p", text)
            _table(tidy, [[(text, 1, 1) for text in row] for row in rows], heads=1)
        else:
            for ids in shape.element.iter(f"{DIAGRAM}relIds"):
                for text in read_diagram(parse_xml(shape.part.related_part(ids.get(f"{R}dm")).blob)):
                    _block(tidy, "p", text)
            tidy.image(drawn.get("descr", ""))
            tidy.boundary()


def _paragraphs(tidy: Tidy, body: Any, listed: bool = False) -> None:
    """Write the paragraphs of a text box, with the numbers of numbered ones. Several in a `listed` box are a list."""
    counts: dict[int, int] = {}
    texts: list[str] = []
    numbers = False
    for paragraph in body.iterchildren(f"{A}p"):
        properties = paragraph.find(f"{A}pPr")
        level = 0 if properties is None else int(properties.get("lvl", "0"))
        counts = {deep: count for deep, count in counts.items() if deep <= level}
        numbered = None if properties is None else properties.find(f"{A}buAutoNum")
        text = read_paragraph(paragraph)
        if not text.strip():
            continue
        if numbered is None:
            counts.pop(level, None)
        else:
            numbers = True
            counts[level] = counts.get(level, int(numbered.get("startAt", "1")) - 1) + 1
            text = f"{_number(counts[level], numbered.get('type', 'arabicPeriod'))} {text}"
        texts.append(text)
    opened = listed and len(texts) > 1 and not numbers and tidy.open("ul")
    for text in texts:
        _block(tidy, "li" if opened else "p", text)
    if opened:
        tidy.close("ul")


def _number(count: int, kind: str) -> str:
    """Write a number in a format of DrawingML, as in `alphaLcParenBoth`."""
    found = re.match("arabic|alphaLc|alphaUc|romanLc|romanUc", kind)
    text = format_count(count, _FORMATS.get(found[0] if found else "", "decimal"))
    return f"({text})" if kind.endswith("ParenBoth") else f"{text})" if kind.endswith("ParenR") else (
        text if kind.endswith("Plain") else f"{text}.")


def _block(tidy: Tidy, tag: str, text: Any) -> None:
    opened = tag != "p" and tidy.open(tag)
    tidy.text(text if isinstance(text, str) else read_lines(text))
    if opened:
        tidy.close(tag)
    tidy.boundary()


def _table(tidy: Tidy, rows: Sequence[Sequence[tuple[str, int, int]]], heads: int) -> None:
    tidy.open("table")
    for number, row in enumerate(rows):
        tidy.open("tr")
        for text, columns, height in row:
            tag = "th" if number < heads else "td"
            tidy.open(tag, tuple((name, str(count)) for name, count in (("colspan", columns), ("rowspan", height))
                                 if count > 1))
            tidy.text(text)
            tidy.close(tag)
        tidy.close("tr")
    tidy.close("table")
