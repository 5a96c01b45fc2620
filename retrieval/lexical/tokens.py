"""Tokens of texts: stemmed words, pairs of characters where a script sets no spaces; normal spelling; stop words."""
from __future__ import annotations

import importlib.metadata
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Protocol

from ragbed.documents.types import digest, normalize


class Tokenizer(Protocol):
    """Makes tokens of texts. Equal text always has equal tokens. Thread-safe. Postings of fewer than `many` texts are
    not kept on disk: they are built in the time of opening them."""

    many: int

    @property
    def identity(self) -> str:
        """Tells tokenizers apart that make other tokens: settings, rules and the libraries' versions."""
        ...

    def tokens(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Return the tokens of each text, in the order of the texts; texts are taken as they are needed."""
        ...


_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_POSSESSIVE = re.compile(r"['’]s\b")


def normal(text: str) -> str:
    """NFKC, which composes Hangul and narrows full-width letters, then caseless; without the English possessive 's and
    without soft hyphens and what else is not seen within a word."""
    if not text.isascii():
        text = _INVISIBLE.sub("", normalize("NFKC", text))
    text = text.casefold()
    return _POSSESSIVE.sub("", text) if "'s" in text or "’s" in text else text


@cache
def version_of(*distributions: str) -> str:
    """Return their names and versions; one that is not installed is said to be absent."""
    return ", ".join(f"{name} {_version(name)}" for name in distributions)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


HANGUL = "\uac00-\ud7a3\u1100-\u11ff"  # syllables, and the letters that they are made of
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
    """Tell whether Hangul makes up at least a twentieth of the texts' characters, by the beginning of each: more than a
    text in another language that names a Korean word or two, less than pages of a Korean report that are mostly numbers
    and English terms."""
    hangul = characters = 0
    for text in texts:
        seen = text[:_SEEN]
        characters += len(seen)
        if not seen.isascii():
            hangul += len(_KOREAN.findall(normal(seen)))
    return hangul > 0 and hangul >= _SHARE * characters


RULES = 1  # raised when the tokens of any text change: what lies on disk and in journals was made by the rules before
LONGEST = 255  # characters of a token; a longer run is cut there, as Lucene does
_KNOWN = 100_000

# 1,000 is one number, and so are 3.5 and 1,000.5; 2024.01.05 is three.
_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d{1,40}(?!\.?\d))?|(?<![\d.])\d{1,40}\.\d{1,40}(?!\.?\d)"
_ASCII = re.compile(rf"{_NUMBER}|[a-z0-9]{{1,{LONGEST}}}", re.ASCII)


class WordTokenizer:
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
        return (self.of(normal(text)) for text in texts)

    def of(self, text: str) -> list[str]:
        """Return the tokens of a text that is `normal`."""
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
    """Return every two neighbouring characters; of a single one, itself."""
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
    """Return the usual ones of a language; none where no list is known."""
    from bm25s import stopwords

    name = _LISTS.get(language)
    return frozenset(getattr(stopwords, f"STOPWORDS_{name}")) if name else frozenset()
