"""Read the lines of a PDF page: their text, position and direction. Invisible and duplicate text is left out."""
from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from ragbed.documents.numbers import CURRENCIES, is_number
from ragbed.documents.parsers.clean_html import Close, Event, Open, normalize_text, simplify_spaces
from ragbed.documents.paths import keep_hidden_text

Box = tuple[float, float, float, float]
Word = tuple[float, float, float, float, str, int, int, int]

_BOLD = 16
_GAP = 1.2
_MIN_SIZE = 1.0  # points
_NUMBER_ENDS = frozenset("0123456789)%—–-")
# Unicode noncharacters mark raised and lowered text until the renderings are written.
_MARKS = {1: "\ufdd0", -1: "\ufdd1"}
_END = "\ufdd2"
_RESERVED = re.compile("[\ufdd0-\ufdef]")
_SCRIPT = re.compile(f"([\ufdd0\ufdd1])([^\ufdd0-\ufdd2]*){_END}")
_SMALL = 0.85  # of the size of the line
_RISE, _DROP = 0.12, 0.06
_GLUE = 0.3
_SCRIPT_LENGTH = 5  # characters
_STEP = 40.0  # points; lines are looked up by height in steps
_ORDINAL = frozenset(("st", "nd", "rd", "th", "er", "re", "ème"))
_SOFT_HYPHEN = "\xad"
BROKEN = "\ufdd3"  # ends a line whose last word goes on in the next line for certain


@dataclass(frozen=True, slots=True)
class PdfLine:
    """A line, or a part of a line with space around it."""

    text: str  # raised and lowered parts are marked, see `script_events`
    box: Box  # x0, y0, x1, y1 in points, from the corner at the upper left of the text as it is read
    size: float
    bold: bool
    block: int  # MuPDF's block, in the order in which the page draws them
    spaced: bool = False  # whether a space follows in the file, so that the last word is complete
    sign: float = 0.0  # width of a currency sign joined on the left; not counted for column edges

    @property
    def height(self) -> float:
        return self.box[3] - self.box[1]

    @property
    def value(self) -> str:
        """The text without raised and lowered parts, such as the mark of a footnote behind a number."""
        return _SCRIPT.sub("", self.text).strip() or self.text if _END in self.text else self.text


def script_events(text: str) -> Iterator[Event]:
    """Return a text as events, with raised and lowered parts in `sup` and `sub`."""
    if _END not in text:
        yield text
        return
    start = 0
    for found in _SCRIPT.finditer(text):
        if found.start() > start:
            yield text[start:found.start()]
        tag = "sup" if found[1] == _MARKS[1] else "sub"
        yield from (Open(tag), found[2], Close(tag))
        start = found.end()
    if start < len(text):
        yield text[start:]


def bounding_box(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around all boxes."""
    found = list(boxes)
    return (min(box[0] for box in found), min(box[1] for box in found),
            max(box[2] for box in found), max(box[3] for box in found))


def turn_box(box: Box, turn: int, width: float, height: float) -> Box:
    """Rotate a box clockwise by `turn` quarter turns, together with its page of the given width and height."""
    x0, y0, x1, y1 = box
    turned = ((x0, y0, x1, y1), (height - y1, x0, height - y0, x1),
              (width - x1, height - y1, width - x0, height - y0), (y0, width - x1, y1, width - x0))
    return turned[turn % 4]


def visible_words(blocks: Sequence[dict[str, Any]], words: Iterable[Word]) -> tuple[list[Word], int]:
    """Return the visible words, and the number of characters that are drawn invisibly or far too small.
    
    The recognized text of a scan is invisible too; it is kept if the page has no visible text. A word that is drawn
    several times at almost the same place, as a shadow or as bold type, is returned once. Takes the arguments of
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
    drawn: dict[tuple[str, int], list[Word]] = defaultdict(list)
    visible = []
    for word in words:
        if boxes and any(box[0] <= (word[0] + word[2]) / 2 <= box[2] for box in boxes[word[5], word[6]]):
            continue
        if not word[4].isascii():
            word = _with_text(word, _RESERVED.sub("", word[4]))
        tall = word[3] - word[1]
        near, row = min(tall, word[2] - word[0]), int(word[1] / tall) if tall > 0 else 0
        if word[4] and not any(abs(word[0] - other[0]) < near / 2 and abs(word[1] - other[1]) < near / 4
                               for place in (row - 1, row, row + 1) for other in drawn.get((word[4], place), ())):
            visible.append(word)
            drawn[word[4], row].append(word)
    return visible, hidden


def make_lines(blocks: Sequence[dict[str, Any]], words: Iterable[Word], width: float, height: float
               ) -> dict[int | None, list[PdfLine]]:
    """Return the lines of a page that have a visible character, by the number of quarter turns that makes them upright.
    
    Lines at other angles, such as a watermark across the page, have the key None.
    
    Args:
        blocks: `page.get_text("dict")["blocks"]`.
        words: `page.get_text("words")`, with the same flags.
        width, height: size of the page.
    """
    placed: dict[tuple[int, int], list[Word]] = defaultdict(list)
    for word in words:
        placed[word[5], word[6]].append(word)
    drawn: dict[int | None, list[_DrawnLine]] = defaultdict(list)
    for number, block in enumerate(blocks):
        for index, raw in enumerate(block.get("lines", ())):
            spans = [span for span in raw["spans"] if span["text"].strip()]
            found = placed[number, index]
            if not spans or not found:
                continue
            turn = 0 if raw["wmode"] else _TURNS.get((round(raw["dir"][0], 2), round(raw["dir"][1], 2)))
            box = turn_box(raw["bbox"], turn or 0, width, height)
            if turn:
                found = [_turned(word, turn, width, height) for word in found]
            drawn[turn].append(_DrawnLine(
                _mark_scripts(raw, spans, found), box, max((len(span["text"]), span["size"]) for span in spans)[1],
                all(span["flags"] & _BOLD or "bold" in span["font"].lower() for span in spans), number,
                not raw["spans"][-1]["text"][-1:].strip()))
    return {turn: [part for line in _insert_scripts(group) for part in _parts(line)] for turn, group in drawn.items()}


_TURNS = {(1.0, 0.0): 0, (0.0, -1.0): 1, (-1.0, 0.0): 2, (0.0, 1.0): 3}


@dataclass(slots=True)
class _DrawnLine:
    """A line as the page draws it, with its words."""

    words: list[Word]
    box: Box
    size: float
    bold: bool
    block: int
    spaced: bool


def _turned(word: Word, turn: int, width: float, height: float) -> Word:
    return (*turn_box(word[:4], turn, width, height), *word[4:])


def _mark_scripts(raw: dict[str, Any], spans: Sequence[dict[str, Any]], words: list[Word]) -> list[Word]:
    """Mark the characters of smaller spans above or below the line on which most of the text stands."""
    main = max(spans, key=lambda span: (len(span["text"]), span["size"]))
    small = _SMALL * main["size"]
    if all(span["size"] > small for span in spans):
        return words
    across, down = raw["dir"]
    levels: list[int] = []
    for span in spans:
        text = "".join(span["text"].split())
        rise = sum((main["origin"][axis] - span["origin"][axis]) * way for axis, way in ((0, -down), (1, across)))
        level = 0 if span["size"] > small else 1 if rise > _RISE * main["size"] else -(rise < -_DROP * main["size"])
        levels += [level] * len(text)
    if len(levels) != sum(len(word[4]) for word in words):
        return words
    marked, start = [], 0
    for word in words:
        parts = [(level, "".join(character for character, _ in group)) for level, group in groupby(
            zip(word[4], levels[start:start + len(word[4])], strict=True), key=lambda pair: pair[1])]
        start += len(word[4])
        marked.append(_with_text(word, "".join(_marked(text, level, before) for (level, text), (_, before) in zip(
            parts, [(0, ""), *parts], strict=False))))
    return marked


def _marked(text: str, level: int, before: str) -> str:
    ordinal = level == 1 and text in _ORDINAL and before[-1:].isdigit()
    return f"{_MARKS[level]}{text}{_END}" if level and not ordinal else text


def _with_text(word: Word, text: str) -> Word:
    return (*word[:4], text, *word[5:])


def _insert_scripts(lines: list[_DrawnLine]) -> list[_DrawnLine]:
    """Move raised and lowered text that is drawn apart from its line into the line."""
    hosts: dict[int, list[_DrawnLine]] = defaultdict(list)
    for line in lines:
        for height in range(int(line.box[1] // _STEP), int(line.box[3] // _STEP) + 1):
            hosts[height].append(line)
    moved: set[int] = set()
    largest = max(line.size for line in lines)
    for line in lines:
        if line.size > _SMALL * largest or sum(len(word[4]) for word in line.words) > _SCRIPT_LENGTH:
            continue
        for host in hosts[int((line.box[1] + line.box[3]) / 2 // _STEP)]:
            if line.size <= _SMALL * host.size and id(host) not in moved and _is_beside(line, host):
                moved.add(id(line))
                _insert(line, 1 if line.box[1] + line.box[3] < host.box[1] + host.box[3] else -1, host)
                break
    return [line for line in lines if id(line) not in moved]


def _is_beside(line: _DrawnLine, host: _DrawnLine) -> bool:
    """Return whether a short line overlaps another in height and lies between its words or next to its ends."""
    left, right = line.box[0], line.box[2]
    shared = min(line.box[3], host.box[3]) - max(line.box[1], host.box[1])
    return (host.box[0] - host.size < left < host.box[2] + _GLUE * host.size
            and shared > 0.4 * (line.box[3] - line.box[1])
            and all(right < word[0] + 1 or word[2] - 1 < left for word in host.words))


def _insert(line: _DrawnLine, level: int, host: _DrawnLine) -> None:
    reach = _GLUE * host.size
    for word in line.words:
        at = sum(other[0] <= word[0] for other in host.words)
        before, after = host.words[at - 1:at], host.words[at:at + 1]
        text = _marked(word[4], level, before[0][4] if before else "")
        box = word[:4]
        if after and after[0][0] - word[2] < reach / 2:
            text, box = text + after[0][4], bounding_box((box, after[0][:4]))
            del host.words[at]
        if before and word[0] - before[0][2] < reach / 2:
            text, box = before[0][4] + text, bounding_box((before[0][:4], box))
            at -= 1
            del host.words[at]
        host.words.insert(at, (*box, text, *word[5:]))


def _parts(line: _DrawnLine) -> list[PdfLine]:
    words = line.words
    groups = [[words[0]]]
    following = [*(word[4] for word in words[2:]), ""]
    for (before, word), after in zip(pairwise(words), following, strict=False):
        signed = word[4] in CURRENCIES and before[4][-1] in _NUMBER_ENDS and (not after or is_number(after))
        if signed or word[0] - before[2] > _GAP * line.size:
            groups.append([])
        groups[-1].append(word)
    soft = BROKEN if words[-1][4][-1] == _SOFT_HYPHEN else ""
    texts = [" ".join(simplify_spaces(normalize_text(" ".join(word[4] for word in group))).split()) for group in groups]
    texts[-1] += soft
    lines = [PdfLine(text, (group[0][0], line.box[1], max(word[2] for word in group), line.box[3]), line.size,
                     line.bold, line.block, line.spaced) for text, group in zip(texts, groups, strict=True)]
    return [line for line in lines if line.text]
