"""Read the lines of a PDF page with their positions, and form paragraphs, headings, list items and running titles."""
from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from ragbed.documents.numbers import CURRENCIES, is_number
from ragbed.documents.parsers.clean_html import normalize_text, simplify_spaces
from ragbed.documents.paths import keep_hidden_text

Box = tuple[float, float, float, float]
Word = tuple[float, float, float, float, str, int, int, int]

_BOLD = 16
_GAP = 1.2
_MIN_SIZE = 1.0  # points
_NUMBER_ENDS = frozenset("0123456789)%—–-")


@dataclass(frozen=True, slots=True)
class PdfLine:
    """A line, or a part of a line with space around it."""

    text: str
    box: Box  # x0, y0, x1, y1 in points, from the top left corner
    size: float
    bold: bool
    block: int  # MuPDF's block; blocks come in reading order
    spaced: bool = False  # whether a space follows in the file, so that the last word is complete
    sign: float = 0.0  # width of a currency sign joined on the left; not counted for column edges

    @property
    def height(self) -> float:
        return self.box[3] - self.box[1]


def drop_hidden_words(blocks: Sequence[dict[str, Any]], words: Iterable[Word]) -> tuple[list[Word], int]:
    """Return the visible words, and the number of characters that are drawn invisibly or far too small.
    
    The recognized text of a scan is invisible too; it is kept if the page has no visible text. Takes the arguments of
    `make_lines`.
    """
    spans = [(number, index, span) for number, block in enumerate(blocks)
             for index, raw in enumerate(block.get("lines", ())) for span in raw["spans"] if span["text"].strip()]
    scan = all(span.get("alpha") == 0 or span["size"] < _MIN_SIZE for _, _, span in spans)
    boxes, hidden = defaultdict(list), 0
    for number, index, span in spans if not keep_hidden_text() else ():
        if span["size"] < _MIN_SIZE or (span.get("alpha") == 0 and not scan):
            boxes[number, index].append(span["bbox"])
            hidden += len(span["text"].strip())
    return [word for word in words if not any(
        box[0] <= (word[0] + word[2]) / 2 <= box[2] for box in boxes[word[5], word[6]])], hidden


def make_lines(blocks: Sequence[dict[str, Any]], words: Iterable[Word]) -> list[PdfLine]:
    """Return the lines of a page that have a visible character.
    
    Args:
        blocks: `page.get_text("dict")["blocks"]`.
        words: `page.get_text("words")`, with the same flags.
    """
    placed: dict[tuple[int, int], list[Word]] = defaultdict(list)
    for word in words:
        placed[word[5], word[6]].append(word)
    return [part for number, block in enumerate(blocks) for index, raw in enumerate(block.get("lines", ()))
            for part in _parts(raw, placed[number, index], number)]


def _parts(raw: dict[str, Any], words: list[Word], block: int) -> list[PdfLine]:
    spans = [span for span in raw["spans"] if span["text"].strip()]
    if not spans or not words:
        return []
    size = max(spans, key=lambda span: len(span["text"]))["size"]
    bold = all(span["flags"] & _BOLD or "bold" in span["font"].lower() for span in spans)
    groups = [[words[0]]]
    following = [*(word[4] for word in words[2:]), ""]
    for (before, word), after in zip(pairwise(words), following, strict=False):
        signed = word[4] in CURRENCIES and before[4][-1] in _NUMBER_ENDS and (not after or is_number(after))
        if signed or word[0] - before[2] > _GAP * size:
            groups.append([])
        groups[-1].append(word)
    spaced = not raw["spans"][-1]["text"][-1:].strip()
    texts = [" ".join(simplify_spaces(normalize_text(" ".join(word[4] for word in group))).split()) for group in groups]
    lines = [PdfLine(text, (group[0][0], raw["bbox"][1], max(word[2] for word in group), raw["bbox"][3]), size,
                  bold, block, spaced) for text, group in zip(texts, groups, strict=True)]
    return [line for line in lines if line.text]


def bounding_box(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around all boxes."""
    found = list(boxes)
    return (min(box[0] for box in found), min(box[1] for box in found),
            max(box[2] for box in found), max(box[3] for box in found))


_BULLET = re.compile(r"^[•●▪■◦○‣∙·\uf0b7\uf0a7➢✓][\s]*(?=\S)")
_ITEM = re.compile(r"(?:\d{1,2}[.)]|\(?[a-z0-9]{1,3}\)|[가나다라마바사아자차카타파하][.)]|[①-⑳*※])\s")
_BROKEN = re.compile(r"[a-z]-$")
_HANGUL = re.compile(r"[가-힣]$")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff、。]$")
_DIGITS = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]+")
_MARGIN = 0.075
_FAR = 0.12
_OFTEN = 4
_HEADING_LENGTH = 200


@dataclass(frozen=True, slots=True)
class PdfParagraph:
    """Lines that belong together; `kind` is `heading1` to `heading3`, `paragraph`, `list`, `header` or `footer`."""

    text: str
    kind: str
    size: float
    box: Box


@dataclass(frozen=True, slots=True)
class LayoutHabits:
    """Layout properties of a whole document."""

    body: float  # font size of most text, in points
    repeated: frozenset[str]  # texts at the edge of several pages, digits removed
    running: frozenset[tuple[str, int]]  # repeated texts near the upper edge, with their height on the page
    words: frozenset[str]  # every word, in lower case
    spaces_kept: bool  # whether Korean lines end with a space after a complete word

    @classmethod
    def of(cls, pages: Sequence[tuple[float, Sequence[PdfLine]]]) -> LayoutHabits:
        """Compute the habits from pages, each given by its height and lines."""
        sizes: Counter[float] = Counter()
        edges: Counter[str] = Counter()
        running: Counter[tuple[str, int]] = Counter()
        words: set[str] = set()
        korean: list[bool] = []
        for height, lines in pages:
            edges.update({_folded(line.text) for line in lines if _edge(line.box, height)})
            running.update({_placed(line.text, line.box) for line in lines if line.box[3] < _FAR * height})
            for line in lines:
                sizes[round(line.size, 1)] += len(line.text)
                words.update(word.lower() for word in _WORD.findall(line.text))
                if _HANGUL.search(line.text):
                    korean.append(line.spaced)
        often = max(2, len(pages) // 10)
        return cls(sizes.most_common(1)[0][0] if sizes else 0.0,
                   frozenset(text for text, count in edges.items() if count >= often),
                   frozenset(placed for placed, count in running.items() if count >= max(_OFTEN, often)),
                   frozenset(words), sum(korean) * 5 > len(korean))


    def edge(self, text: str, box: Box, height: float) -> str:
        """Return `header` or `footer` for a running title or page number; empty for other text."""
        edge = _edge(box, height)
        if edge and (_folded(text) in self.repeated or _folded(text).strip(" -–—") == "#"):
            return edge
        return "header" if box[3] < _FAR * height and _placed(text, box) in self.running else ""


def _placed(text: str, box: Box) -> tuple[str, int]:
    return _folded(text), round(box[1])


def _folded(text: str) -> str:
    return _DIGITS.sub("#", text)


def _edge(box: Box, height: float) -> str:
    if box[3] < _MARGIN * height:
        return "header"
    return "footer" if box[1] > (1 - _MARGIN) * height else ""


def make_paragraphs(lines: Iterable[PdfLine], habits: LayoutHabits, height: float) -> list[PdfParagraph]:
    """Form paragraphs from the lines of one block, in reading order."""
    groups: list[list[PdfLine]] = []
    for line in lines:
        if groups and _continues(groups[-1][-1], line):
            groups[-1].append(line)
        else:
            groups.append([line])
    made = []
    for group in groups:
        text, box = join_lines(group, habits), bounding_box(line.box for line in group)
        made.append(PdfParagraph(_BULLET.sub("", text), habits.edge(text, box, height) or _kind(text, group, habits),
                                 max(group, key=lambda line: len(line.text)).size, box))
    return made


def _continues(above: PdfLine, line: PdfLine) -> bool:
    if abs(above.box[1] - line.box[1]) < 0.5 * line.height:  # on the same line
        return True
    return (abs(above.size - line.size) < 0.6 and above.bold == line.bold and not _BULLET.match(line.text)
            and not _ITEM.match(line.text) and line.box[1] - above.box[3] < 0.8 * line.height)


def _kind(text: str, lines: list[PdfLine], habits: LayoutHabits) -> str:
    if _BULLET.match(text):
        return "list"
    ratio = max(line.size for line in lines) / habits.body if habits.body else 1.0
    letters = sum(character.isalpha() for character in text)
    if len(text) > _HEADING_LENGTH or letters < 2 or len(lines) > 4:
        return "paragraph"
    if ratio >= 1.5:
        return "heading1"
    if ratio >= 1.17:
        return "heading2"
    bold = all(line.bold for line in lines)
    return "heading3" if bold and ratio > 0.95 and not text.endswith((".", ",", ";")) else "paragraph"


def join_lines(lines: Sequence[PdfLine], habits: LayoutHabits) -> str:
    """Join lines in reading order into running text."""
    text = lines[0].text if lines else ""
    for above, line in pairwise(lines):
        below, space = line.text, " "
        if _BROKEN.search(text) and below[:1].islower():
            # Drop the hyphen only if the joined word occurs elsewhere, so that `long-` and `term` stay `long-term`.
            tail, head = _WORD.findall(text)[-1], _WORD.match(below)
            text = text[:-1] if (tail + (head[0] if head else "")).lower() in habits.words else text
            space = ""
        elif not above.spaced and (_IDEOGRAPH.search(text) or (
                _HANGUL.search(text) and habits.spaces_kept and "가" <= below[:1] <= "힣")):
            space = ""  # Korean words may break anywhere, so the space in the file decides
        text = f"{text}{space}{below}"
    return " ".join(text.split())


def group_by_block(lines: Iterable[PdfLine]) -> list[list[PdfLine]]:
    """Group consecutive lines of the same block."""
    return [list(group) for _, group in groupby(lines, key=lambda line: line.block)]
