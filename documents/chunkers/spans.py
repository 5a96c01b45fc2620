"""Spans of a rendering: safe places to cut, and chunks from a list of cuts."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from documents.types import Chunk, Document, Format

Span = tuple[int, int]

_TAG = re.compile(r"<[^<>]*>")
_ENTITY = re.compile(r"&#?\w{1,31};")
_ENTITY_REACH = 34
_TAG_REACH = 65_536


def chunks_at(document: Document, format: Format, cuts: Sequence[int]) -> list[Chunk]:
    """One chunk between every two cuts; none is blank unless the document is.

    Args:
        cuts: positions in ascending order, the first 0 and the last the length of the rendering.
    """
    text = document.text(format)
    return [Chunk.of(document, format, start, end) for start, end in filled(text, list(pairwise(cuts)))]


def filled(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Adjacent spans, where blank ones are joined to the span before (or, at the beginning, after) them."""
    held: Span | None = None
    for start, end in spans:
        if held is None:
            held = (start, end)
        elif blank(text, start, end) or blank(text, *held):
            held = (held[0], end)
        else:
            yield held
            held = (start, end)
    if held is not None and held[0] < held[1]:
        yield held


def blank(text: str, start: int, end: int) -> bool:
    """Whether the span holds nothing but white space."""
    return not text[start:end].strip()


def whole(text: str, position: int, format: Format) -> int:
    """The last place at or before `position` that is not inside a tag or an entity of HTML."""
    if format == "plain" or not 0 < position < len(text):
        return position
    return min(_before_tag(text, position), _before_entity(text, position))


def after(text: str, position: int, format: Format) -> int:
    """The first place at or after `position` that is not inside a tag or an entity of HTML."""
    begin = whole(text, position, format)
    if begin == position:
        return position
    match = _TAG.match(text, begin) or _ENTITY.match(text, begin)
    return match.end() if match else position


def _before_tag(text: str, position: int) -> int:
    opened = text.rfind("<", max(position - _TAG_REACH, 0), position)
    if opened < 0 or text.find(">", opened, position) >= 0:
        return position
    match = _TAG.match(text, opened)
    return opened if match and match.end() > position else position


def _before_entity(text: str, position: int) -> int:
    opened = text.rfind("&", max(position - _ENTITY_REACH, 0), position)
    match = _ENTITY.match(text, opened) if opened >= 0 else None
    return opened if match and match.end() > position else position
