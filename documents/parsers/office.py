"""Parse Office files: Word with mammoth, PowerPoint with python-pptx. Macros are ignored."""
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
from ragbed.documents.parse import Parsed
from ragbed.documents.parsers.clean_html import HEADINGS, Open, Tidy, normalize_text
from ragbed.documents.parsers.html import parse_page
from ragbed.documents.parsers.plain import write_pages
from ragbed.documents.paths import keep_hidden_text

if TYPE_CHECKING:
    from pptx.slide import Slide

_MAX_UNPACKED = 500_000_000  # bytes
_ADDRESS = re.compile(r"<[^<>]* at 0x[0-9a-f]+>")
_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
"""
_BACK = re.compile(r' <a href="#(?:foot|end)note-ref-[^"]*">↑</a>')
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_REWRITTEN = re.compile(rb"vanish|ruby|oMath")


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
        said = _ADDRESS.sub("it", " ".join(str(error).split()))[:200]
        raise DocumentError(source, f"a damaged Office file: {said or type(error).__name__}") from error


def parse_docx(data: bytes, source: str) -> Parsed:
    """Read a Word document: headings, lists, tables, notes and text boxes. Comments, deleted text, headers and footers
    are left out. Raises DocumentError if it is not a Word document, damaged or encrypted, and MissingExtra without
    mammoth."""
    MissingExtra.check("office", "mammoth")
    import mammoth

    with open_archive(data, source) as file:
        seen, hidden = _seen(file)
        page = mammoth.convert_to_html(seen, style_map=_STYLES, include_embedded_style_map=False,
                                       convert_image=mammoth.images.img_element(lambda image: {})).value
    parsed = parse_page(_BACK.sub("", page))
    return Parsed(parsed.title, parsed.html, parsed.plain, hidden=parsed.hidden + hidden)


def _seen(file: io.BytesIO) -> tuple[io.BytesIO, int]:
    """Remove the runs that Word hides, and count their characters. Turn formulas and glossed words, which mammoth
    leaves out, into runs of text."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False)
    hidden = 0
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(seen := io.BytesIO(), "w") as new:
        for name in filter(lambda name: name.endswith((".xml", ".rels")), old.namelist()):
            part = old.read(name)
            if _REWRITTEN.search(part.replace(b"\0", b"")):  # matches UTF-16 files too
                root = etree.fromstring(part, parser)
                for run in [] if keep_hidden_text() else list(root.iter(f"{_WORD}r")):
                    mark = run.find(f"{_WORD}rPr/{_WORD}vanish")
                    parent = run.getparent()
                    if mark is not None and parent is not None and mark.get(f"{_WORD}val") not in ("0", "false"):
                        hidden += len("".join(map(str, run.itertext())))
                        parent.remove(run)
                for one in list(root.iter(f"{_WORD}ruby", f"{_MATH}oMath")):
                    base = one.find(f"{_WORD}rubyBase")
                    texts = (one if base is None else base).iter(f"{_WORD}t", f"{_MATH}t")
                    said = "".join(text.text or "" for text in texts)
                    one.clear()
                    one.tag = f"{_WORD}smartTag"  # mammoth reads this tag
                    etree.SubElement(etree.SubElement(one, f"{_WORD}r"), f"{_WORD}t").text = said
                for whole in root.iter(f"{_MATH}oMathPara"):
                    whole.tag = f"{_WORD}smartTag"
                part = etree.tostring(root)
            new.writestr(name, part)
    return seen, hidden


def parse_pptx(data: bytes, source: str) -> Parsed:
    """Read a presentation, one page per slide: title, texts, tables, charts as tables, alternative texts and notes.
    
    Raises DocumentError if it is not a presentation, damaged or encrypted, and MissingExtra without python-pptx.
    """
    MissingExtra.check("office", "pptx")
    from pptx import Presentation

    with open_archive(data, source) as file:
        show = Presentation(file)
        slides = [_slide(slide) for slide in show.slides]
        title = " ".join(normalize_text(show.core_properties.title or "").split())
    html, plain, pages = write_pages(tidy.events for tidy in slides)
    heading = next((tidy.events[at + 1] for tidy in slides for at, event in enumerate(tidy.events)
                    if isinstance(event, Open) and event.tag in HEADINGS), "")
    return Parsed(title or str(heading), html, plain, pages, sum(tidy.hidden for tidy in slides))


def _slide(slide: Slide) -> Tidy:
    tidy = Tidy()
    named = slide.shapes.title
    if named is not None:
        _block(tidy, "h2", named.text_frame.text)
    _shapes(tidy, (shape for shape in slide.shapes if named is None or shape.shape_id != named.shape_id))
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if notes is not None and notes.text.strip():
        _block(tidy, "h3", "Notes")
        for paragraph in notes.paragraphs:
            _block(tidy, "p", paragraph.text)
    tidy.boundary()
    if slide.element.get("show") in ("0", "false") and not keep_hidden_text():
        return _unseen(tidy)
    return tidy


def _unseen(tidy: Tidy) -> Tidy:
    """Return an empty page that counts the hidden characters of a slide."""
    nothing = Tidy()
    nothing.hidden = tidy.hidden + sum(len(event) for event in tidy.events if isinstance(event, str))
    return nothing


def _shapes(tidy: Tidy, shapes: Iterable[Any]) -> None:
    from pptx.enum.shapes import PP_PLACEHOLDER as KIND

    for shape in shapes:
        drawn = shape.element.xpath(".//p:cNvPr")[0]
        kind = shape.placeholder_format.type if shape.is_placeholder else None
        if kind in (KIND.DATE, KIND.FOOTER, KIND.HEADER, KIND.SLIDE_NUMBER):
            continue
        if drawn.get("hidden") in ("1", "true") and not keep_hidden_text():
            tidy.hidden += len("".join(shape.element.xpath(".//a:t/text()")))
        elif hasattr(shape, "shapes"):
            _shapes(tidy, shape.shapes)
        elif shape.has_text_frame:
            texts = [paragraph.text for paragraph in shape.text_frame.paragraphs if paragraph.text.strip()]
            listed = kind in (KIND.BODY, KIND.OBJECT) and len(texts) > 1 and tidy.open("ul")
            for text in texts:
                _block(tidy, "li" if listed else "p", text)
            if listed:
                tidy.close("ul")
        elif shape.has_table:
            _table(tidy, [[(cell.text, cell.span_width, cell.span_height) for cell in row.cells if not cell.is_spanned]
                          for row in shape.table.rows], heads=int(shape.table.first_row))
        elif shape.has_chart:
            for plot in shape.chart.plots:
                values = zip(*(each.values for each in plot.series), strict=False)
                rows = [["", *(each.name for each in plot.series)], *(
                    [label, *("" if value is None else f"{value:.15g}" for value in row)]
                    for label, row in zip(map(str, plot.categories), values, strict=False))]
                _table(tidy, [[(text, 1, 1) for text in row] for row in rows], heads=1)
        else:
            tidy.image(drawn.get("descr", ""))
            tidy.boundary()


def _block(tidy: Tidy, tag: str, text: str) -> None:
    opened = tag != "p" and tidy.open(tag)
    tidy.text(text)
    if opened:
        tidy.close(tag)
    tidy.boundary()


def _table(tidy: Tidy, rows: Sequence[Sequence[tuple[str, int, int]]], heads: int) -> None:
    """Add a table. Each cell is a text with the number of columns and rows that it spans."""
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
