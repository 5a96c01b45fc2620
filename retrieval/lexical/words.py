"""Words: runs of letters and digits, stemmed; pairs of characters where a script sets no spaces.

Words that say nothing of what a text is about, by language.
"""
from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from documents.types import digest
from retrieval.lexical.tokens import MARKS, UNSPACED, normal, version_of

RULES = 1
"""Raised when the tokens of any text change: what lies on disk and in journals was made by the rules before."""

LONGEST = 255
"""Characters of a token; a longer run is cut there, as Lucene does."""

_KNOWN = 100_000

# 1,000 is one number, and so are 3.5 and 1,000.5; 2024.01.05 is three.
_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d{1,40}(?!\.?\d))?|(?<![\d.])\d{1,40}\.\d{1,40}(?!\.?\d)"
_ASCII = re.compile(rf"{_NUMBER}|[a-z0-9]{{1,{LONGEST}}}", re.ASCII)


class Words:
    """Cuts text into words, some 10 MB a second.

    Args:
        language: whose stemmer, by its name in Snowball.
        stemming: whether words are cut down to their stems.
        stopwords: are left out, as they stand in the text, caseless.
        pairs: scripts, as the inside of a character class, whose runs become pairs of neighbouring characters.
        without: scripts that are passed over.
    """

    many = 1_000

    def __init__(self, language: str, stemming: bool, stopwords: frozenset[str], pairs: str = UNSPACED,
                 without: str = "") -> None:
        self._language, self._stemming, self._stopwords = language, stemming, stopwords
        self._pairs, self._without = pairs, without
        apart = "".join(f"|[{script}]+" for script in (pairs, without) if script)
        self._cut = re.compile(rf"{_NUMBER}{apart}|(?:[^\W_{pairs}{without}][{MARKS}]{{0,4}}){{1,{LONGEST}}}").findall
        self._is_paired = re.compile(f"[{pairs}]").match
        self._is_passed = re.compile(f"[{without}]").match if without else None
        self._stems = _Stems(language)

    @property
    def identity(self) -> str:
        settings = (self._language, str(self._stemming), self._pairs, self._without, *sorted(self._stopwords))
        return f"words {digest(str(RULES), version_of('PyStemmer'), *settings)}"

    def tokens(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """As the protocol says."""
        return (self.of(normal(text)) for text in texts)

    def of(self, text: str) -> list[str]:
        """The tokens of a text that is `normal`."""
        words = _ASCII.findall(text) if text.isascii() else self._mixed(text)
        if "," in text:
            words = [word.replace(",", "") if "," in word else word for word in words]
        words = [word for word in words if word not in self._stopwords]
        return [self._stems[word] for word in words] if self._stemming else words

    def _mixed(self, text: str) -> list[str]:
        words: list[str] = []
        for word in self._cut(text):
            if word.isascii():
                words.append(word)
            elif self._is_paired(word):
                words += pairs(word)
            elif self._is_passed is None or not self._is_passed(word):
                words.append(word)
        return words


class _Stems(dict[str, str]):
    """The stems of words, and the first hundred thousand of them kept: PyStemmer's own store is slower than none."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language
        self._lock = threading.Lock()  # a stemmer serves one thread at a time

    def __missing__(self, word: str) -> str:
        with self._lock:
            stem: str = self._stemmer.stemWord(word)
        if len(self) < _KNOWN:
            self[word] = stem
        return stem

    @cached_property
    def _stemmer(self) -> Any:
        import Stemmer

        return Stemmer.Stemmer(self._language, 0)


def pairs(run: str) -> list[str]:
    """Every two neighbouring characters; of a single one, itself."""
    return [run[at:at + 2] for at in range(max(len(run) - 1, 1))]


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
