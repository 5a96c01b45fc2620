"""Find safe places to cut a rendering, and make chunks from spans."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ragbed.documents.types import Chunk, Document, Format


def expand_kind(value: Any) -> Any:
    """Replace the name of a kind with its default settings. Return any other value unchanged."""
    return {"kind": value} if isinstance(value, str) else value


Span = tuple[int, int]
Piece = tuple[int, int, str]  # start, end, prefix of the chunk
_TAG = re.compile(r"<[^<>]*>")
_ENTITY = re.compile(r"&#?\w{1,31};")
_MARK = re.compile(rf"{_TAG.pattern}|{_ENTITY.pattern}")
_ENTITY_REACH = 34
_TAG_REACH = 65_536


def make_chunks(document: Document, format: Format, pieces: Iterable[Piece]) -> list[Chunk]:
    """Make chunks from pieces, in order of their start. Blank pieces are merged into a neighbour."""
    apart = merge(document.text(format), pieces, lambda held, piece: False)
    return [Chunk.of(document, format, *piece) for piece in apart]


def merge(text: str, pieces: Iterable[Piece], together: Callable[[Piece, Piece], bool]) -> Iterator[Piece]:
    """Join neighbouring pieces if `together` allows it. A joined piece keeps the prefix of its first one. Blank pieces
    join the previous piece, or the next one at the beginning."""
    held: Piece | None = None
    empty = True
    for piece in pieces:
        hollow = not text[piece[0]:piece[1]].strip()
        if held is not None and (empty or hollow or together(held, piece)):
            held = (held[0], piece[1], piece[2] if empty else held[2])
        else:
            if held is not None:
                yield held
            held, empty = piece, True
        empty = empty and hollow
    if held is not None and held[0] < held[1]:
        yield held


def pack(spans: Iterable[Span], size: int, overlap: int) -> Iterator[Span]:
    """Join neighbouring spans up to `size` characters. A longer span stays alone. Each joined span repeats as many of
    the previous spans as fit into `overlap` and leave room for the next one."""
    held: list[Span] = []
    for span in spans:
        if held and span[1] - held[0][0] > size:
            yield held[0][0], held[-1][1]
            while held and (held[-1][1] - held[0][0] > overlap or span[1] - held[0][0] > size):
                held.pop(0)
        held.append(span)
    if held:
        yield held[0][0], held[-1][1]


def safe_cut(text: str, position: int, format: Format) -> int:
    """Return the last place at or before `position` that is not inside an HTML tag or entity."""
    if format == "plain" or not 0 < position < len(text):
        return position
    return min(_find_before(text, position, "<", _TAG, _TAG_REACH),
               _find_before(text, position, "&", _ENTITY, _ENTITY_REACH))


def safe_cuts(text: str, span: Span, positions: Iterable[int], format: Format) -> list[int]:
    """Return the positions, given in order, that are not inside an HTML tag or entity."""
    if format == "plain":
        return list(positions)
    marks = (match.span() for match in _MARK.finditer(text, *span))
    start, end = next(marks, (span[1], span[1]))
    found = []
    for position in positions:
        while end <= position < span[1]:
            start, end = next(marks, (span[1], span[1]))
        if not start < position < end:
            found.append(position)
    return found


def next_safe_cut(text: str, position: int, format: Format) -> int:
    """Return the first place at or after `position` that is not inside an HTML tag or entity."""
    begin = safe_cut(text, position, format)
    if begin == position:
        return position
    match = _TAG.match(text, begin) or _ENTITY.match(text, begin)
    return match.end() if match else position


def _find_before(text: str, position: int, opening: str, mark: re.Pattern[str], reach: int) -> int:
    opened = text.rfind(opening, max(position - reach, 0), position)
    match = mark.match(text, opened) if opened >= 0 else None
    return opened if match and match.end() > position else position
