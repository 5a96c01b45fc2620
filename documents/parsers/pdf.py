"""Parse PDF files: PyMuPDF gives the text and its positions; this module finds tables and headings."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ragbed.documents.errors import DocumentError
from ragbed.documents.parse import Parsed
from ragbed.documents.parsers.clean_html import Close, Event, Open, normalize_text
from ragbed.documents.parsers.pdf_paragraphs import (
    Box,
    LayoutHabits,
    PdfLine,
    PdfParagraph,
    drop_hidden_words,
    group_by_block,
    join_lines,
    make_lines,
    make_paragraphs,
)
from ragbed.documents.parsers.pdf_rows import make_rows
from ragbed.documents.parsers.pdf_tables import DrawnGrid, PdfTable, find_aligned_tables, find_drawn_grids, is_inside
from ragbed.documents.parsers.plain import write_pages

_TAGS = {"heading1": "h1", "heading2": "h2", "heading3": "h3"}
_TAIL = 2_048


def parse_pdf(data: bytes, source: str) -> Parsed:
    """Parse a PDF page by page.
    
    Every HTML block states its position and kind, as in CReSt's records: `data-page`, `data-size` (points), `data-box`
    (x0 y0 x1 y1, points from the top left corner) and a class.
    
    Raises:
        DocumentError: not a PDF, encrypted, truncated, damaged, or without text.
    """
    import pymupdf

    tools: Any = pymupdf.TOOLS
    tools.mupdf_display_errors(False)
    tools.mupdf_display_warnings(False)
    if b"%PDF-" not in data[:1_024]:
        raise DocumentError(source, "not a PDF: it has no PDF header")
    try:
        opened: Any = pymupdf.open
        with opened(stream=data, filetype="pdf") as file:
            if file.needs_pass:
                raise DocumentError(source, "encrypted: it needs a password")
            if file.is_repaired and b"%%EOF" not in data[-_TAIL:]:
                raise DocumentError(source, "a truncated PDF: its end is missing")
            if file.page_count == 0:
                raise DocumentError(source, "a PDF without pages")
            return _parsed(file, source)
    except (pymupdf.FileDataError, pymupdf.mupdf.FzErrorBase, RuntimeError, ValueError) as error:
        raise DocumentError(source, f"a damaged PDF: {' '.join(str(error).split())[:200]}") from error


def _parsed(file: Any, source: str) -> Parsed:
    layouts = [_layout(page) for page in file]
    if not any(lines for _, lines, _, _ in layouts):
        raise DocumentError(source, "no text: its pages are probably scanned, and there is no text recognition here")
    habits = LayoutHabits.of([(height, lines) for height, lines, _, _ in layouts])
    blocks = [_blocks(lines, grids, habits, height) for height, lines, grids, _ in layouts]
    html, plain, pages = write_pages(list(_events(page, number)) for number, page in enumerate(blocks, 1))
    heading = next((block.text for page in blocks for block in page if isinstance(block, PdfParagraph)
                    and block.kind in _TAGS), "")
    title = " ".join(normalize_text((file.metadata or {}).get("title") or "").split())
    return Parsed(title or heading, html, plain, pages, sum(hidden for _, _, _, hidden in layouts))


def _layout(page: Any) -> tuple[float, list[PdfLine], list[DrawnGrid], int]:
    import pymupdf

    flags = pymupdf.TEXTFLAGS_DICT & ~pymupdf.TEXT_PRESERVE_IMAGES & ~pymupdf.TEXT_PRESERVE_LIGATURES
    text = page.get_textpage(flags=flags)
    blocks = page.get_text("dict", textpage=text)["blocks"]
    words, hidden = drop_hidden_words(blocks, page.get_text("words", textpage=text))
    return page.rect.height, make_lines(blocks, words), find_drawn_grids(page), hidden


Block = PdfTable | PdfParagraph


def _blocks(lines: list[PdfLine], grids: list[DrawnGrid], habits: LayoutHabits, height: float) -> list[Block]:
    placed: list[tuple[tuple[float, float], Block]] = []
    rest = lines
    for grid in grids:
        members = [line for line in rest if any(is_inside(line.box, box) for row in grid.cells for box, _ in row)]
        if members and not grid.crushes(members):
            table = grid.filled(members, lambda cell: join_lines(cell, habits))
            placed.append(((min(line.block for line in members), table.box[1]), table))
            rest = _without(rest, members)
    alone = [row.cells[0] for row in make_rows(rest) if len(row.cells) == 1]
    running = [line for line in alone
               if sum(map(str.isalpha, line.text)) > 3 and habits.edge(line.text, line.box, height)]
    for table, taken in find_aligned_tables(_without(rest, running)):
        members = [line for line in rest if any(is_inside(line.box, box) for box in taken)]
        placed.append(((min(line.block for line in members), table.box[1]), table))
        rest = _without(rest, members)
    for group in group_by_block(rest):
        for paragraph in make_paragraphs(group, habits, height):
            placed.append(((group[0].block, paragraph.box[1]), paragraph))
    margins = {"header": -1, "footer": 1}
    placed.sort(key=lambda item: (margins.get(getattr(item[1], "kind", ""), 0), item[0]))
    return [block for _, block in placed]


def _without(lines: list[PdfLine], taken: list[PdfLine]) -> list[PdfLine]:
    gone = {id(line) for line in taken}
    return [line for line in lines if id(line) not in gone]


def _events(blocks: Sequence[Block], page: int) -> Iterator[Event]:
    listed = False
    for block in blocks:
        item = isinstance(block, PdfParagraph) and block.kind == "list"
        if item != listed:
            yield Open("ul") if item else Close("ul")
            listed = item
        if isinstance(block, PdfTable):
            yield from _table(block, page)
            continue
        tag = "li" if block.kind == "list" else _TAGS.get(block.kind, "p")
        yield Open(tag, (("class", block.kind), ("data-page", str(page)), ("data-size", f"{block.size:.1f}"),
                         ("data-box", _box(block.box))))
        yield block.text
        yield Close(tag)
    if listed:
        yield Close("ul")


def _table(table: PdfTable, page: int) -> Iterator[Event]:
    yield Open("table", (("class", "table"), ("data-page", str(page)), ("data-box", _box(table.box))))
    for index, row in enumerate(table.rows):
        tag = "th" if index < table.heads else "td"
        yield Open("tr")
        for cell in row:
            spans = (("colspan", cell.columns), ("rowspan", cell.rows))
            yield Open(tag, tuple((name, str(count)) for name, count in spans if count > 1))
            if cell.text:
                yield cell.text
            yield Close(tag)
        yield Close("tr")
    yield Close("table")


def _box(box: Box) -> str:
    return " ".join(str(round(value)) for value in box)
