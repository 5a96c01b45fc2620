"""What BM25 knows of languages: stop words, accents, and how to detect the language of a text."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from types import MappingProxyType
from unicodedata import normalize

ENGLISH = "english"

# bm25s has these lists: Lucene's 33 English words, and NLTK's words for the other languages.
_LISTS: Mapping[str, str] = MappingProxyType({
    "english": "EN", "porter": "EN", "dutch_porter": "DUTCH",
    **{language: language.upper() for language in ("danish", "dutch", "french", "german", "italian", "norwegian",
                                                   "portuguese", "russian", "spanish", "swedish", "turkish")}})
DETECTED = ("danish", "dutch", "french", "german", "italian", "norwegian", "portuguese", "spanish", "swedish",
            "turkish")
"""Languages in Latin letters that can be told from English by their stop words."""

KOREAN = frozenset({"하다", "되다", "있다", "이다", "대하다", "위하다", "따르다", "통하다", "관하다", "의하다"})
"""Verbs, in their dictionary form, that act like an auxiliary or preposition. Particles and endings are left out by
their tags."""

FOLDED = frozenset({"catalan", "dutch", "dutch_porter", "french", "german", "greek", "italian", "portuguese",
                    "spanish"})
"""Languages whose analyzers in Lucene remove accents, umlauts included. Elsewhere, as in Swedish, Polish or Turkish,
an accent makes another letter."""

COMPOUNDING = frozenset({"danish", "dutch", "dutch_porter", "estonian", "finnish", "german", "hungarian", "norwegian",
                         "swedish"})
"""Languages that write compound nouns as one word."""

_SCRIPTS = {"greek": "\u0370-\u03ff\u1f00-\u1fff", "russian": "\u0400-\u04ff", "armenian": "\u0530-\u058f",
            "arabic": "\u0600-\u06ff", "hindi": "\u0900-\u097f", "tamil": "\u0b80-\u0bff"}
_SCRIPT = re.compile("|".join(f"(?P<{language}>[{letters}])" for language, letters in _SCRIPTS.items()))


def language_of_script(word: str) -> str:
    """Return the language in which most texts in the script of a word are written; English for Latin letters."""
    found = _SCRIPT.match(word)
    return found.lastgroup or ENGLISH if found else ENGLISH


def stopwords_of(language: str) -> frozenset[str]:
    """Return the usual stop words of a language; empty if no list is known."""
    name = _LISTS.get(language)
    return _word_lists()[name] if name else frozenset()


def function_words() -> frozenset[str]:
    """Return English function words, such as `what`. There are more of them than of stop words."""
    return _word_lists()["EN_PLUS"]


@cache
def _word_lists() -> Mapping[str, frozenset[str]]:
    """Return the lists of bm25s. Its file is run alone, because importing the package also imports scipy.sparse."""
    found = find_spec("bm25s")
    assert found
    assert found.origin
    lists = run_path(str(Path(found.origin).with_name("stopwords.py")))
    start = "STOPWORDS_"
    return {name.removeprefix(start): frozenset(words) for name, words in lists.items() if name.startswith(start)}


_MARKS = re.compile("[\u0300-\u036f]")
_LIGATURES = str.maketrans({"œ": "oe", "æ": "ae"})


def fold_accents(word: str) -> str:
    """Return a word in lower case without accents. The Spanish ñ is a letter and stays, as in Lucene."""
    if word.isascii():
        return word
    return "ñ".join(_MARKS.sub("", normalize("NFD", part)) for part in word.translate(_LIGATURES).split("ñ"))


_MIN_SHARE = 0.1  # of the words of a text that is not English must be stop words of its language
_MIN_WORDS = 2  # stop words in an indexed text that is not English


def detect_language(words: Sequence[str], query: bool) -> str:
    """Return the language of a text in Latin letters, by its stop words; English unless another one is evident."""
    lists, everywhere, english = _detectors()
    found = [word for word in words if word in everywhere]
    least = 1 if query else max(_MIN_WORDS, _MIN_SHARE * len(words))
    known = sum(map(english.__contains__, words))
    if len(found) < least or len(found) <= 1.5 * known:
        return ENGLISH
    count, language = max((sum(map(list_.__contains__, found)), language) for language, list_ in lists.items())
    return language if count >= least and count > 1.5 * known else ENGLISH


def only_function_words(text: str) -> bool:
    """Return whether a text has only English words such as `what`, which the short list of stop words lacks."""
    return set(re.findall(r"\w+", text.lower())) <= _detectors()[2]


@cache
def _detectors() -> tuple[Mapping[str, frozenset[str]], frozenset[str], frozenset[str]]:
    lists = {language: stopwords_of(language) for language in DETECTED}
    return lists, frozenset().union(*lists.values()), function_words()
