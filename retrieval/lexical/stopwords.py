"""Words that say nothing of what a text is about, by language."""
from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# bm25s has these lists: Lucene's 33 words of English, NLTK's of the others.
_LISTS: Mapping[str, str] = MappingProxyType({
    "english": "EN", "porter": "EN", "dutch_porter": "DUTCH",
    **{language: language.upper() for language in ("danish", "dutch", "french", "german", "italian", "norwegian",
                                                   "portuguese", "russian", "spanish", "swedish", "turkish")}})

KOREAN = frozenset({"하다", "되다", "있다", "이다", "대하다", "위하다", "따르다", "통하다", "관하다", "의하다"})
"""Verbs, in their dictionary form, that stand where other languages have an auxiliary or a preposition. Particles and
endings are left out by their tags."""


def stopwords_of(language: str) -> frozenset[str]:
    """The usual ones of a language; none where no list is known."""
    from bm25s import stopwords

    name = _LISTS.get(language)
    return frozenset(getattr(stopwords, f"STOPWORDS_{name}")) if name else frozenset()
