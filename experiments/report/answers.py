"""An answer's text with the numbers of its citations apart, so that the page can link them to the passages."""
from __future__ import annotations

import re
from collections.abc import Iterator

from strategies.reading import strip_citations

_BRACKET = re.compile(r"\[[\d\s,;–-]{1,400}\]")
_NUMBER = re.compile(r"\d+")


def linked(answer: str) -> list[str | int]:
    """Pieces of the answer in order: what is cited as numbers, all else as text."""
    pieces: list[str | int] = []
    at = 0
    for match in _BRACKET.finditer(answer):
        if strip_citations(f"x{match[0]}") == "x":
            pieces += [answer[at:match.start()], *_numbers(match[0])]
            at = match.end()
    return [piece for piece in _joined([*pieces, answer[at:]]) if piece != ""]


def _numbers(citation: str) -> Iterator[str | int]:
    at = 0
    for match in _NUMBER.finditer(citation):
        yield citation[at:match.start()]
        yield int(match[0])
        at = match.end()
    yield citation[at:]


def _joined(pieces: list[str | int]) -> list[str | int]:
    """Texts that follow each other as one."""
    joined: list[str | int] = []
    for piece in pieces:
        if joined and isinstance(piece, str) and isinstance(joined[-1], str):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined
