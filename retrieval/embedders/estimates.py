"""Windows of texts whose tokenizer is not known: how many tokens they have at most, told from their characters."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from documents.chunkers.spans import Span
from documents.errors import ModelError

SPECIAL = 4
"""Tokens that a model may put around a text."""


def _weight(character: str) -> float:
    """Tokens that a character stands for at most, seen over whole texts.

    Latin letters have three or more characters a token in prose and two in names and abbreviations; some tokenizers
    give each digit and each mark its own; a Korean syllable has up to three in a vocabulary of English.
    """
    if character.isascii():
        return 0.5 if character.isalpha() or character.isspace() else 1.0
    return 3.0 if ord(character) > 0x2E7F else 1.5


def tokens_at_most(text: str) -> float:
    """An estimate that tokenizers seldom exceed."""
    return sum(map(_weight, text))


def cut_by_estimate(texts: Sequence[str], window: int, header: str) -> list[list[Span]]:
    """For each text, spans that cover it and fit the window behind the header, in order and without overlap.

    A cut falls behind a space where there is one in the second half of the window.

    Raises:
        ModelError: the header leaves no room.
    """
    room = window - SPECIAL - tokens_at_most(header)
    if room < 16:
        raise ModelError(f"a window of {window} tokens leaves no room behind a header of {len(header)} characters: "
                         "use shorter prefixes, or set window to what the server takes")
    return [_cut(text, room) for text in texts]


def shortened(text: str, window: int) -> str:
    """The beginning of a text that fits the window."""
    return text[slice(*_cut(text, window - SPECIAL)[0])]


def _cut(text: str, room: float) -> list[Span]:
    if 3 * len(text) <= room:
        return [(0, len(text))]
    spans: list[Span] = []
    start, used = 0, 0.0
    sums = list(accumulate(map(_weight, text)))
    for place, total in enumerate(sums):
        if total - used > room:
            end = _boundary(text, start, place)
            spans.append((start, end))
            start, used = end, sums[end - 1]
    return [*spans, (start, len(text))]


def _boundary(text: str, start: int, place: int) -> int:
    space = max(text.rfind(mark, start + (place - start) // 2, place) for mark in " \n\t")
    return space + 1 if space >= 0 else place
