"""The larger span that a span of a rendering stands in: a section where one fits, else a window around it."""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from documents.chunkers.outline import outline
from documents.chunkers.sections import BREAKS
from documents.chunkers.spans import Span, after, whole
from documents.types import Format

_LEVEL = re.compile(r"(?:<h([1-6])\b)|(#{1,6}) ")


def sections(text: str, format: Format) -> list[Span]:
    """The whole text, what stands before its first heading, and each heading with what it is above, nested by level."""
    spans = [(0, len(text))]
    held: list[tuple[int, int]] = []
    for block in outline(text, format):
        if block.kind != "heading":
            continue
        if len(spans) == 1 and not held:
            spans.append((0, block.start))
        level = _level(text, block.start)
        while held and held[-1][0] >= level:
            spans.append((held.pop()[1], block.start))
        held.append((level, block.start))
    spans.extend((start, len(text)) for _, start in held)
    return list(dict.fromkeys(span for span in spans if span[0] < span[1]))


def parent(text: str, format: Format, nested: Sequence[Span], span: Span, within: Span, prefix: str,
           largest: int) -> Span:
    """The largest section of at most `largest` characters around a span, else as wide a window in the smallest.

    Args:
        nested: the sections of the text.
        within: what surrounds the span, and must not be left.
        prefix: what stands in front of the span where the text before it does not have it; it counts.

    Returns:
        What holds the span: where that is longer than `largest`, the span itself.
    """
    around = sorted((max(start, within[0]), min(end, within[1])) for start, end in nested
                    if start <= span[0] and span[1] <= end)
    fitting = [each for each in around if _length(text, each, span, prefix) <= largest]
    if fitting:
        return max(fitting, key=lambda each: each[1] - each[0])
    smallest = min(around, key=lambda each: each[1] - each[0])
    return _window(text, format, span, smallest, largest - len(prefix))


def free(span: Span, taken: Iterable[Span], length: int) -> Span:
    """How far a span of a text of that length can be widened without running into those that are taken."""
    first, last = 0, length
    for start, end in taken:
        if start < span[0]:
            first = max(first, min(end, span[0]))
        if end > span[1]:
            last = min(last, max(start, span[1]))
    return first, last


def _level(text: str, start: int) -> int:
    match = _LEVEL.match(text, start)
    if match is None:
        return 1
    return int(match[1]) if match[1] else len(match[2])


def _length(text: str, each: Span, span: Span, prefix: str) -> int:
    return each[1] - each[0] + (0 if prefix in text[each[0]:span[0]] else len(prefix))


def _window(text: str, format: Format, span: Span, within: Span, size: int) -> Span:
    """About as much on either side, from the beginning of a line, sentence or word to the end of one."""
    spare = size - (span[1] - span[0])
    if spare <= 0:
        return span
    end = min(within[1], max(within[0], span[0] - spare // 2) + size)
    start = max(within[0], end - size)
    return (start if start == within[0] else _first(text, format, start, span[0]),
            end if end == within[1] else _last(text, format, span[1], end))


def _first(text: str, format: Format, start: int, limit: int) -> int:
    """The first good place to begin, in the first half of what is there if it has one."""
    for pattern in BREAKS:
        for match in pattern.finditer(text, start - 1, (start + limit) // 2):
            if whole(text, match.end(), format) == match.end():
                return match.end()
    return min(after(text, start, format), limit)


def _last(text: str, format: Format, start: int, limit: int) -> int:
    """The last good place to end, in the second half of what is there if it has one."""
    for pattern in BREAKS:
        ends = [match.end() for match in pattern.finditer(text, (start + limit) // 2, limit)]
        for end in reversed(ends[-3:]):
            if whole(text, end, format) == end:
                return end
    return max(whole(text, limit, format), start)
