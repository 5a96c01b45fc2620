"""Tokenizer: what makes the tokens of a text, of passages and queries alike.

Spelling alike what is the same: full-width and composed forms, case, invisible characters.

The versions of libraries that decide what tokens and scores are.

Which characters belong to which script, as far as cutting text into words depends on it.
"""
from __future__ import annotations

import importlib.metadata
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Protocol


class Tokenizer(Protocol):
    """Makes tokens of texts. Equal text always has equal tokens. Thread-safe.

    Attributes:
        many: texts from which postings are kept on disk: those of fewer are built in the time of opening them.
    """

    many: int

    @property
    def identity(self) -> str:
        """Tells tokenizers apart that make other tokens: settings, rules and the libraries' versions."""
        ...

    def tokens(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """The tokens of each text, in the order of the texts; texts are taken as they are needed."""
        ...


_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_POSSESSIVE = re.compile(r"['’]s\b")


def normal(text: str) -> str:
    """NFKC, which composes Hangul and narrows full-width letters, then caseless; without the English possessive 's and
    without soft hyphens and what else is not seen within a word."""
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    text = text.casefold()
    return _POSSESSIVE.sub("", text) if "'s" in text or "’s" in text else text


@cache
def version_of(*distributions: str) -> str:
    """Their names and versions; one that is not installed is said to be absent."""
    return ", ".join(f"{name} {_version(name)}" for name in distributions)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


HANGUL = "\uac00-\ud7a3\u1100-\u11ff"
"""Syllables, and the letters that they are made of."""

UNSPACED = ("\u3005\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
            "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003347f"      # Han
            "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0edf\u1000-\u109f\u1780-\u17d3")  # Thai, Lao, Burmese, Khmer
"""Scripts that set no spaces between words."""

MARKS = ("\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670"
         "\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc\u09be-\u09cd\u0b82\u0bbe-\u0bcd")
"""Accents and vowel signs, parts of words that are no letters: Latin, Hebrew, Arabic, Devanagari, Bengali, Tamil."""

_KOREAN = re.compile(f"[{HANGUL}]")
_SHARE = 0.05
_SEEN = 2_000  # characters of each text


def is_korean(texts: Iterable[str]) -> bool:
    """Whether Hangul makes up at least a twentieth of the texts' characters, by the beginning of each.

    A text in another language that names a Korean word or two stays below that, and pages of a Korean report that are
    mostly numbers and English terms are above it.
    """
    hangul = characters = 0
    for text in texts:
        seen = text[:_SEEN]
        characters += len(seen)
        if not seen.isascii():
            hangul += len(_KOREAN.findall(normal(seen)))
    return hangul > 0 and hangul >= _SHARE * characters
