"""Spelling alike what is the same: full-width and composed forms, case, invisible characters."""
from __future__ import annotations

import re
import unicodedata

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_POSSESSIVE = re.compile(r"['’]s\b")


def normal(text: str) -> str:
    """NFKC, which composes Hangul and narrows full-width letters, then caseless; without the English possessive 's and
    without soft hyphens and what else is not seen within a word."""
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    text = text.casefold()
    return _POSSESSIVE.sub("", text) if "'s" in text or "’s" in text else text
