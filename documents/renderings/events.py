"""Clean events: what both renderings are written from.

A stream of `Open`, `Close` and text. It is balanced, holds allowed tags and attributes only, and its text has
its white space collapsed (outside `pre`), so the writers need not know where it came from.
"""
from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple


class Open(NamedTuple):
    """A tag begins."""

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()


class Close(NamedTuple):
    """The tag that was opened last ends."""

    tag: str


Event = Open | Close | str

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
INLINE = frozenset({"em", "strong", "code", "sub", "sup"})

_LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNWANTED = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u200b\u2060\ufeff\ufffe\uffff\ud800-\udfff]")
_SPACES = re.compile(r"[^\S\n]")


def normalised(text: str) -> str:
    """NFC, `\\n` as the only line end, no control characters, soft hyphens, zero-width spaces or surrogates.

    NFC, because the same Korean syllable is one code point in most files and two or three in those that come
    from macOS, and neither BM25 nor a gold answer would match across the two. NFKC is avoided: it would turn
    x² into x2.
    """
    return unicodedata.normalize("NFC", _UNWANTED.sub("", _LINE_END.sub("\n", text)))


def plain_spaces(text: str) -> str:
    """Every kind of space, such as the no-break space, as an ordinary one; lines are kept."""
    return _SPACES.sub(" ", text)
