"""A page's lines of text, with their place and type."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from documents.numbers import CURRENCIES, is_number
from documents.renderings.events import normalised, plain_spaces

Box = tuple[float, float, float, float]
Word = tuple[float, float, float, float, str, int, int, int]

_BOLD = 16
_GAP = 1.2
_NUMBER_ENDS = frozenset("0123456789)%—–-")


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or the part of one that stands apart from its neighbours.

    Attributes:
        box: x0, y0, x1, y1 in points, from the top left corner.
        block: MuPDF's block; blocks come in reading order.
        sign: the width of a currency sign that was joined to its left, which column edges leave out.
        spaced: whether a space follows it in the file, so that it ends with its word.
    """

    text: str
    box: Box
    size: float
    bold: bool
    block: int
    spaced: bool = False
    sign: float = 0.0

    @property
    def height(self) -> float:
        return self.box[3] - self.box[1]


def lines_of(blocks: Sequence[dict[str, Any]], words: Iterable[Word]) -> list[Line]:
    """The lines of a page; those without a visible character are left out.

    Args:
        blocks: `page.get_text("dict")["blocks"]`.
        words: `page.get_text("words")`, with the same flags: x0, y0, x1, y1, text, block, line, position.
    """
    placed: dict[tuple[int, int], list[Word]] = defaultdict(list)
    for word in words:
        placed[word[5], word[6]].append(word)
    return [part for number, block in enumerate(blocks) for index, raw in enumerate(block.get("lines", ()))
            for part in _parts(raw, placed[number, index], number)]


def _parts(raw: dict[str, Any], words: list[Word], block: int) -> list[Line]:
    """A line, cut where a wide gap or a currency sign after a number shows that the next column begins."""
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
    lines = [Line(_text(group), (group[0][0], raw["bbox"][1], max(word[2] for word in group), raw["bbox"][3]), size,
                  bold, block, spaced) for group in groups]
    return [line for line in lines if line.text]


def _text(words: list[Word]) -> str:
    return " ".join(plain_spaces(normalised(" ".join(word[4] for word in words))).split())


def bounds(boxes: Iterable[Box]) -> Box:
    """The smallest box around all."""
    found = list(boxes)
    return (min(box[0] for box in found), min(box[1] for box in found),
            max(box[2] for box in found), max(box[3] for box in found))
