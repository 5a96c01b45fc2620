"""Parse PDF files: PyMuPDF gives the text and its positions; this module finds tables and headings."""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter
from typing import Any

from ragbed.documents.errors import DocumentError
from ragbed.documents.parsers.clean_html import Close, Event, Open, normalize_text
from ragbed.documents.parsers.pdf_columns import split_columns
from ragbed.documents.parsers.pdf_lines import BROKEN, Box, PdfLine, make_lines, script_events, turn_box, visible_words
from ragbed.documents.parsers.pdf_paragraphs import (
    LayoutHabits,
    PdfParagraph,
    belongs,
    group_lines,
    is_broken,
    join_broken,
    join_lines,
    make_paragraphs,
)
from ragbed.documents.parsers.pdf_rows import make_rows
from ragbed.documents.parsers.pdf_tables import DrawnGrid, PdfTable, find_aligned_tables, find_drawn_grids, is_inside
from ragbed.documents.parsers.plain import write_pages, write_plain
from ragbed.documents.types import Document, new_document

_TAGS = {"heading1": "h1", "heading2": "h2", "heading3": "h3"}
_TAIL = 2_048
_UPRIGHT = 3  # upright text weighs this many times as much as text in other directions
_FEW = 200  # characters of a page whose pictures are looked at
_OUTLINES = 100  # drawings of a page whose text may be drawn as outlines
_LARGE = 1.5  # times the size of most text
_AHEAD = 8  # paragraphs, such as footnotes, between the halves of a word
_CONTINUED = re.compile(r"continued|cont[.'’]d|계속", re.IGNORECASE)


def parse_pdf(data: bytes, source: str) -> Document:
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


@dataclass(frozen=True, slots=True)
class _Layout:
    """What a page draws. `turn`: quarters by which it must be turned so that most of its text can be read."""

    lines: dict[int | None, list[PdfLine]]
    grids: list[DrawnGrid]
    hidden: int
    turn: int
    width: float
    height: float
    pictures: float  # share of the page that they cover; computed if the page has little text
    drawings: int

    @property
    def main(self) -> list[PdfLine]:
        return self.lines.get(self.turn, [])

    def size(self, turn: int | None) -> tuple[float, float]:
        """Return the width and height of the page after rotation."""
        return (self.height, self.width) if (turn or 0) % 2 else (self.width, self.height)

    def is_scanned(self, habits: LayoutHabits) -> bool:
        """Return whether the page is a picture, apart from running titles or a few words."""
        height = self.size(self.turn)[1]
        letters = sum(len(line.text) for group in self.lines.values() for line in group
                      if not habits.edge(line.text, line.box, height))
        return self.pictures > 0.5 if letters else self.pictures > 0.05 or self.drawings > _OUTLINES


def _parsed(file: Any, source: str) -> Document:
    layouts = [_layout(page) for page in file]
    if not any(page.lines for page in layouts):
        raise DocumentError(source, "no text: its pages are probably scanned; `ragbed index --ocr` recognises it")
    habits = LayoutHabits.of([(page.size(page.turn)[1], page.main) for page in layouts])
    pages = [_blocks(page, habits) for page in layouts]
    _continue_tables(pages)
    _complete_words(pages, habits)
    html, plain, starts = write_pages(list(_events(page, number)) for number, page in enumerate(pages, 1))
    heading = next((block.text for page in pages for block in page if isinstance(block, PdfParagraph)
                    and block.kind in _TAGS), "")
    title = " ".join(normalize_text((file.metadata or {}).get("title") or "").split())
    scanned = tuple(number for number, page in enumerate(layouts, 1) if page.is_scanned(habits))
    return new_document(title or write_plain(script_events(heading)).strip(), html, plain, starts,
                        sum(page.hidden for page in layouts), scanned)


def _layout(page: Any) -> _Layout:
    import pymupdf

    flags = pymupdf.TEXTFLAGS_DICT & ~pymupdf.TEXT_PRESERVE_IMAGES & ~pymupdf.TEXT_PRESERVE_LIGATURES
    text = page.get_textpage(flags=flags)
    read = page.get_text("dict", textpage=text)
    words, hidden = visible_words(read["blocks"], page.get_text("words", textpage=text))
    width, height = read["width"], read["height"]
    lines = make_lines(read["blocks"], words, width, height)
    turn = max((turn for turn in lines if turn is not None), default=0,
               key=lambda turn: sum(len(line.text) for line in lines[turn]) * (1 if turn else _UPRIGHT))
    drawings = page.get_cdrawings()  # as tuples, three times as fast as get_drawings
    few = sum(len(word[4]) for word in words) < _FEW
    covered = sum(_area(one["bbox"]) for one in page.get_image_info()) if few else 0.0
    return _Layout(lines, find_drawn_grids(page, drawings), hidden, turn, width, height,
                   covered / (width * height or 1.0), len(drawings))


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


Block = PdfTable | PdfParagraph


def _blocks(page: _Layout, habits: LayoutHabits) -> list[Block]:
    """Return the blocks of a page in reading order; text in other directions comes last and is never a heading."""
    main, across = _without_watermarks(page.main, habits)
    blocks = _turned_blocks(main, page, page.turn, habits)
    for turn, lines in page.lines.items():
        if turn is not None and turn != page.turn:
            blocks += map(_as_text, _turned_blocks(lines, page, turn, habits))
    for line in [*across, *page.lines.get(None, [])]:
        blocks += map(_as_text, make_paragraphs([line], habits, page.height))
    return blocks


def _as_text(block: Block) -> Block:
    return replace(block, kind="paragraph") if isinstance(block, PdfParagraph) and block.kind in _TAGS else block


def _without_watermarks(lines: list[PdfLine], habits: LayoutHabits) -> tuple[list[PdfLine], list[PdfLine]]:
    """Divide lines into text, and large type that other lines are written over."""
    across = [line for line in lines if line.size > _LARGE * habits.body and sum(
        is_inside(other.box, line.box) for other in lines if other.size < line.size / 2) > 1]
    return _without(lines, across), across


def _turned_blocks(lines: list[PdfLine], page: _Layout, turn: int, habits: LayoutHabits) -> list[Block]:
    width, height = page.size(turn)
    tables: dict[int, PdfTable] = {}
    running = [line for line in (row.cells[0] for row in make_rows(lines) if len(row.cells) == 1)
               if _letters(line) > 3 and habits.edge(line.text, line.box, height)] if turn == page.turn else []
    rest = _without(lines, running)
    for grid in page.grids:
        grid = grid.turned(turn, page.width, page.height) if turn else grid
        members = [line for line in rest if is_inside(line.box, grid.box)
                   and any(is_inside(line.box, box) for row in grid.cells for box, _ in row)]
        if members and not grid.crushes(members):
            place = PdfLine("#", grid.box, habits.body, False, min(line.block for line in members))
            tables[id(place)] = grid.filled(members, lambda cell: join_lines(cell, habits))
            rest = [*_without(rest, members), place]
    regions = [_region(region, tables, habits, height) for region in split_columns(rest)]
    blocks = [*make_paragraphs(running, habits, height), *(block for region in regions for block in region)]
    margins = {"header": -1, "footer": 1}
    blocks.sort(key=lambda block: margins.get(getattr(block, "kind", ""), 0))
    if turn:
        blocks = [replace(block, box=turn_box(block.box, 4 - turn, width, height)) for block in blocks]
    return blocks


def _region(lines: list[PdfLine], tables: Mapping[int, PdfTable], habits: LayoutHabits, height: float) -> list[Block]:
    placed: list[tuple[tuple[float, float, float], Block]] = []
    for line in lines:
        if id(line) in tables:
            placed.append(((line.box[1], line.box[0], 0.0), tables[id(line)]))
    rest = [line for line in lines if id(line) not in tables]
    for table, taken in find_aligned_tables(rest):
        placed.append(((table.box[1], table.box[0], 0.0), table))
        rest = [line for line in rest if not (
            is_inside(line.box, table.box) and any(is_inside(line.box, box) for box in taken))]
    for group in group_lines(rest):
        for paragraph in make_paragraphs(group, habits, height):
            placed.append(((group[0].box[1], group[0].box[0], paragraph.box[1]), paragraph))
    return [block for _, block in sorted(placed, key=itemgetter(0))]


def _letters(line: PdfLine) -> int:
    return sum(map(str.isalpha, line.text))


def _without(lines: list[PdfLine], taken: list[PdfLine]) -> list[PdfLine]:
    gone = {id(line) for line in taken}
    return [line for line in lines if id(line) not in gone]


def _continue_tables(pages: list[list[Block]]) -> None:
    """Repeat the header of a table that goes on over the page."""
    for above, below in pairwise(pages):
        last = next((block for block in reversed(above) if _kind(block) != "footer"), None)
        first = next((index for index, block in enumerate(below) if _kind(block) != "header"
                      and not _CONTINUED.search(getattr(block, "text", ""))), 0)
        begin = below[first] if below else None
        if isinstance(last, PdfTable) and isinstance(begin, PdfTable):
            below[first] = begin.continues(last)


def _kind(block: Block) -> str:
    return block.kind if isinstance(block, PdfParagraph) else "table"


def _complete_words(pages: list[list[Block]], habits: LayoutHabits) -> None:
    """Move the second half of a word that a column or page divides to its first half."""
    texts = [(page, index) for page in pages for index, block in enumerate(page)
             if _kind(block) in ("paragraph", "list")]
    for at, (page, index) in enumerate(texts):
        upper = page[index]
        if not isinstance(upper, PdfParagraph) or not is_broken(upper.text):
            continue
        for index_below in range(at + 1, min(at + 1 + _AHEAD, len(texts))):
            (before, last), (other, place) = texts[index_below - 1:index_below + 1]
            lower = other[place]
            begins = other is not before or lower.box[1] < before[last].box[1]
            if isinstance(lower, PdfParagraph) and abs(lower.size - upper.size) < 0.6 and lower.text[:1].islower() and (
                    belongs(upper.text, lower.text, habits, begins)):
                head, _, tail = lower.text.partition(" ")
                page[index] = replace(upper, text=join_broken(upper.text, head, habits) + head)
                other[place] = replace(lower, text=tail)
                break


def _events(blocks: Sequence[Block], page: int) -> Iterator[Event]:
    listed = False
    for block in blocks:
        if isinstance(block, PdfParagraph) and not block.text:
            continue
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
        yield from script_events(block.text.replace(BROKEN, "-"))
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
                yield from script_events(cell.text.replace(BROKEN, "-"))
            yield Close(tag)
        yield Close("tr")
    yield Close("table")


def _box(box: Box) -> str:
    return " ".join(str(round(value)) for value in box)
