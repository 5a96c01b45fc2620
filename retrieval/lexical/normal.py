"""Spelling alike what is the same: full-width and composed forms, case, invisible characters."""
from __future__ import annotations

import re
import unicodedata

_INVISIBLE = dict.fromkeys([0x00AD, *range(0x200B, 0x2010), 0x2060, 0xFEFF])
_POSSESSIVE = re.compile(r"['’]s\b")


def normal(text: str) -> str:
    """NFKC, which composes Hangul and narrows full-width letters, then caseless; without the English possessive 's and
    without soft hyphens and what else is not seen within a word."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_INVISIBLE)
    text = text.casefold()
    return _POSSESSIVE.sub("", text) if "'s" in text or "’s" in text else text
