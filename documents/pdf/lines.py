"""A page's lines of text, with their place and type."""
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from documents.renderings.events import normalised, plain_spaces

Box = tuple[float, float, float, float]

_BOLD = 16
_SIGN_AFTER = re.compile(r"^(.*\S)\s+([$€£¥₩])\s*$")


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


def lines_of(blocks: Iterable[dict[str, Any]]) -> list[Line]:
    """The lines of `page.get_text("dict")["blocks"]`; those without a visible character are left out."""
    found: list[Line] = []
    for number, block in enumerate(blocks):
        for raw in block.get("lines", ()):
            spans = [span for span in raw["spans"] if span["text"].strip()]
            if not spans:
                continue
            text = plain_spaces(normalised("".join(span["text"] for span in raw["spans"]))).replace("\n", " ")
            widest = max(spans, key=lambda span: len(span["text"]))
            bold = all(span["flags"] & _BOLD or "bold" in span["font"].lower() for span in spans)
            box = (min(span["bbox"][0] for span in spans), raw["bbox"][1],
                   max(span["bbox"][2] for span in spans), raw["bbox"][3])
            found.append(Line(text.strip(), box, widest["size"], bold, number, text.endswith(" ")))
    return [part for line in found if line.text for part in _parts(line)]


def _parts(line: Line) -> list[Line]:
    """A currency sign at the end of a number belongs to the number in the next column."""
    match = _SIGN_AFTER.match(line.text)
    if not match or (not line.text[0].isdigit() and line.text[0] not in "(—–-$"):
        return [line]
    x0, y0, x1, y1 = line.box
    edge = x1 - line.size * 0.6
    return [replace(line, text=match[1], box=(x0, y0, edge - line.size * 0.3, y1)),
            replace(line, text=match[2], box=(edge, y0, x1, y1))]


def bounds(boxes: Iterable[Box]) -> Box:
    """The smallest box around all."""
    found = list(boxes)
    return (min(box[0] for box in found), min(box[1] for box in found),
            max(box[2] for box in found), max(box[3] for box in found))
