"""Tokens of texts: stemmed words, and pairs of characters for scripts without spaces; normalisation; stop words."""
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
    """Splits texts into tokens. Equal text always has equal tokens. Thread-safe.

    Attributes:
        many: postings of fewer texts are not kept on disk, because building them is as fast as opening them.
    """

    many: int

    @property
    def identity(self) -> str:
        """Text that differs between tokenizers with other settings, rules or library versions."""
        ...

    def tokens(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Yield the tokens of each text in order. Texts are consumed as needed."""
        ...


_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_POSSESSIVE = re.compile(r"['’]s\b")


def normalise(text: str) -> str:
    """Return text in NFKC, which composes Hangul and narrows full-width letters. Case, possessive 's and invisible
    characters such as soft hyphens are removed."""
    if not text.isascii():
        text = _INVISIBLE.sub("", normalize("NFKC", text))
    text = text.casefold()
    return _POSSESSIVE.sub("", text) if "'s" in text or "’s" in text else text


@cache
def version_of(*distributions: str) -> str:
    """Return names and versions of distributions; `absent` for one that is not installed."""
    return ", ".join(f"{name} {_version(name)}" for name in distributions)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


HANGUL = "\uac00-\ud7a3\u1100-\u11ff"  # Hangul syllables, and the letters that form them
UNSPACED = ("\u3005\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
            "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003347f"      # Han
            "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0edf\u1000-\u109f\u1780-\u17d3")  # Thai, Lao, Burmese, Khmer
"""Scripts without spaces between words."""

MARKS = ("\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670"
         "\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc\u09be-\u09cd\u0b82\u0bbe-\u0bcd")
"""Accents and vowel signs, which belong to words: Latin, Hebrew, Arabic, Devanagari, Bengali, Tamil."""

_KOREAN = re.compile(f"[{HANGUL}]")
_MIN_SHARE = 0.05
_SAMPLE = 2_000  # characters to check of each text


def is_korean(texts: Iterable[str]) -> bool:
    """Tell whether at least 5 % of the characters at the beginning of texts are Hangul. Texts in other languages with a
    few Korean words have less. Even pages of a Korean report with mostly numbers and English terms have more."""
    hangul = characters = 0
    for text in texts:
        seen = text[:_SAMPLE]
        characters += len(seen)
        if not seen.isascii():
            hangul += len(_KOREAN.findall(normalise(seen)))
    return hangul > 0 and hangul >= _MIN_SHARE * characters


RULES = 1  # version; increase it when tokens change, because postings and journals were made by older rules
MAX_TOKEN = 255  # maximum characters of a word; a longer run is cut there, as in Lucene
_MAX_STEMS = 100_000

# 1,000 is one number, and so are 3.5 and 1,000.5; 2024.01.05 is three numbers.
_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d{1,40}(?!\.?\d))?|(?<![\d.])\d{1,40}\.\d{1,40}(?!\.?\d)"
_ASCII = re.compile(rf"{_NUMBER}|[a-z0-9]{{1,{MAX_TOKEN}}}", re.ASCII)


class WordTokenizer:
    """Splits text into words, about 10 MB per second.

    Args:
        language: of the stemmer, by its Snowball name.
        stemming: whether to stem words.
        stopwords: words to leave out, in lower case, as they occur in the text.
        pairs: scripts, written like a character class, whose runs become pairs of neighbouring characters.
        without: scripts to skip.
    """

    many = 1_000

    def __init__(self, language: str, stemming: bool, stopwords: frozenset[str], pairs: str = UNSPACED,
                 without: str = "") -> None:
        self._language, self._stemming, self._stopwords = language, stemming, stopwords
        self._pairs, self._without = pairs, without
        apart = "".join(f"|[{script}]+" for script in (pairs, without) if script)
        self._cut = re.compile(rf"{_NUMBER}{apart}|(?:[^\W_{pairs}{without}][{MARKS}]{{0,4}}){{1,{MAX_TOKEN}}}").findall
        self._is_paired = re.compile(f"[{pairs}]").match
        self._is_skipped = re.compile(f"[{without}]").match if without else None
        self._stems = _Stems(language)

    @property
    def identity(self) -> str:
        settings = (self._language, str(self._stemming), self._pairs, self._without, *sorted(self._stopwords))
        return f"words {digest(str(RULES), version_of('PyStemmer'), *settings)}"

    def tokens(self, texts: Iterable[str]) -> Iterator[list[str]]:
        return (self.split(normalise(text)) for text in texts)

    def split(self, text: str) -> list[str]:
        """Return the tokens of a text that is normalised."""
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
                words += character_pairs(word)
            elif self._is_skipped is None or not self._is_skipped(word):
                words.append(word)
        return words


class _Stems(dict[str, str]):
    """Cache of the first hundred thousand stems. PyStemmer's own cache is slower than no cache."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language
        self._lock = threading.Lock()  # a stemmer is not thread-safe

    def __missing__(self, word: str) -> str:
        with self._lock:
            stem: str = self._stemmer.stemWord(word)
        if len(self) < _MAX_STEMS:
            self[word] = stem
        return stem

    @cached_property
    def _stemmer(self) -> Any:
        import Stemmer

        return Stemmer.Stemmer(self._language, 0)


def character_pairs(run: str) -> list[str]:
    """Return all pairs of neighbouring characters; for a single character, itself."""
    return [run[at:at + 2] for at in range(max(len(run) - 1, 1))]


# Lists in bm25s: Lucene's 33 English words, and NLTK's for the other languages.
_LISTS: Mapping[str, str] = MappingProxyType({
    "english": "EN", "porter": "EN", "dutch_porter": "DUTCH",
    **{language: language.upper() for language in ("danish", "dutch", "french", "german", "italian", "norwegian",
                                                   "portuguese", "russian", "spanish", "swedish", "turkish")}})

KOREAN = frozenset({"하다", "되다", "있다", "이다", "대하다", "위하다", "따르다", "통하다", "관하다", "의하다"})
"""Verbs, in their dictionary form, that act like an auxiliary or preposition. Particles and endings are left out by
their tags."""


def stopwords_of(language: str) -> frozenset[str]:
    """Return the usual stop words of a language; empty if no list is known."""
    from bm25s import stopwords

    name = _LISTS.get(language)
    return frozenset(getattr(stopwords, f"STOPWORDS_{name}")) if name else frozenset()
