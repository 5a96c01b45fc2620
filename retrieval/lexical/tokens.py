"""Split texts into tokens: stemmed words, or pairs of characters in scripts without spaces."""
from __future__ import annotations

import importlib.metadata
import re
import threading
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from ragbed.documents.types import digest, normalize
from ragbed.retrieval.lexical.languages import ENGLISH, detect_language, fold_accents, language_of_script


@dataclass
class Lexicon:
    """What queries need to know of the indexed texts. Indexing fills it.

    Attributes:
        languages: languages that were detected.
        variants: by a stem without accents, the tokens of indexed words that differ from it in accents only.
        words: tokens that may be parts of a compound word.
    """

    languages: set[str] = field(default_factory=set)
    variants: dict[str, set[str]] = field(default_factory=dict)
    words: Collection[str] = frozenset()


class Tokenizer(Protocol):
    """Splits texts into tokens. Thread-safe. If `compounds` is true, `Lexicon.words` is filled before indexing."""

    compounds: bool

    @property
    def identity(self) -> str:
        """Text that differs between tokenizers with different settings, rules or library versions."""
        ...

    def tokens(self, texts: Iterable[str], lexicon: Lexicon) -> Iterator[list[str]]:
        """Yield the tokens of each indexed text in order, and add to the lexicon. Texts are consumed as needed."""
        ...

    def query_tokens(self, queries: Iterable[str], lexicon: Lexicon) -> Iterator[list[str]]:
        """Yield the tokens to search for each query."""
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
    """Return the names and versions of distributions, with `absent` for those not installed."""
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
    """Tell whether at least 5 % of the characters at the beginning of texts are Hangul. Even Korean reports full of
    numbers and English terms have more. Texts in other languages that quote a few Korean words have less."""
    hangul = characters = 0
    for text in texts:
        seen = text[:_SAMPLE]
        characters += len(seen)
        if not seen.isascii():
            hangul += len(_KOREAN.findall(normalise(seen)))
    return hangul > 0 and hangul >= _MIN_SHARE * characters


RULES = 2  # version; increase it when tokens change, because stored postings and journals depend on it
MAX_TOKEN = 255  # maximum characters of a word; a longer run is cut there, as in Lucene
_MAX_STEMS = 100_000

# 1,000 is one number, and so are 3.5 and 1,000.5; 2024.01.05 is three numbers.
_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d{1,40}(?!\.?\d))?|(?<![\d.])\d{1,40}\.\d{1,40}(?!\.?\d)"
_ASCII = re.compile(rf"{_NUMBER}|[a-z0-9]{{1,{MAX_TOKEN}}}", re.ASCII)


class SplittingTokenizer:
    """A tokenizer that splits one text at a time, with `split` and `split_query`."""

    compounds = False

    def tokens(self, texts: Iterable[str], lexicon: Lexicon | None = None) -> Iterator[list[str]]:
        known = Lexicon() if lexicon is None else lexicon
        return (self.split(normalise(text), known) for text in texts)

    def query_tokens(self, queries: Iterable[str], lexicon: Lexicon) -> Iterator[list[str]]:
        return (self.split_query(normalise(query), lexicon) for query in queries)

    def split(self, text: str, lexicon: Lexicon | None = None) -> list[str]:
        """Return the tokens of a normalised text, and add to the lexicon."""
        raise NotImplementedError

    def split_query(self, text: str, lexicon: Lexicon) -> list[str]:
        """Return the tokens to search for a normalised query."""
        raise NotImplementedError


class WordTokenizer(SplittingTokenizer):
    """Splits text into words, about 10 MB per second.

    Args:
        language: language of the stemmer, by its Snowball name. `auto` is the main language of a word's script.
        stemming: whether to stem words.
        stopwords: words to leave out, in lower case and before stemming.
        pairs: character class of the scripts that are split into pairs of neighbouring characters.
        without: character class of the scripts to skip.
        folding: whether words match that differ in accents only.
        compounds: whether a compound word also gives the tokens of its parts, which are words of the indexed texts.
    """

    def __init__(self, language: str, stemming: bool, stopwords: frozenset[str], pairs: str = UNSPACED,
                 without: str = "", folding: bool = False, compounds: bool = False) -> None:
        self.compounds, self._folding, self._stemming = compounds, folding, stemming
        self.stopwords = stopwords | set(map(fold_accents, stopwords)) if folding else stopwords
        apart = "".join(f"|[{script}]+" for script in (pairs, without) if script)
        self._cut = re.compile(rf"{_NUMBER}{apart}|(?:[^\W_{pairs}{without}][{MARKS}]{{0,4}}){{1,{MAX_TOKEN}}}").findall
        self._is_paired = re.compile(f"[{pairs}]").match
        self._is_skipped = re.compile(f"[{without}]").match if without else None
        self._stems = _Stems(language, stemming, folding)
        self._settings = (language, pairs, without, str((stemming, folding, compounds)), *sorted(stopwords))

    @property
    def identity(self) -> str:
        return f"words {digest(str(RULES), version_of('PyStemmer'), *self._settings)}"

    def split(self, text: str, lexicon: Lexicon | None = None) -> list[str]:
        return self.reduce(self.words(text), lexicon)

    def split_query(self, text: str, lexicon: Lexicon) -> list[str]:
        return self.reduce_query(self.words(text), lexicon)

    def words(self, text: str) -> list[str]:
        """Return the words, numbers and pairs of characters of a normalised text."""
        words = _ASCII.findall(text) if text.isascii() else self._split_mixed(text)
        return [word.replace(",", "") if "," in word else word for word in words] if "," in text else words

    def reduce(self, words: Iterable[str], lexicon: Lexicon | None = None) -> list[str]:
        """Return the tokens of an indexed text's words: stems, without stop words."""
        words = [word for word in words if word not in self.stopwords]
        if self._folding and lexicon is not None:
            for word in words:
                if not word.isascii() and (plain := self._stems[fold_accents(word)]) != (token := self._stems[word]):
                    lexicon.variants.setdefault(plain, set()).add(token)
        return self._reduce(words, lexicon)

    def reduce_query(self, words: Iterable[str], lexicon: Lexicon) -> list[str]:
        """Return the tokens to search for a query's words. With folding, these are the tokens of all indexed words that
        differ in accents only. With compounds, a word that is not indexed finds the compounds that it begins or ends.
        """
        words = [word for word in words if word not in self.stopwords]
        tokens = self._reduce(words, lexicon)
        if self._folding:
            for word in words:
                plain = self._stems[fold_accents(word)]
                tokens += sorted({plain, *lexicon.variants.get(plain, ())} - {self._stems[word]})
        if self.compounds:
            rare = [stem for word in words if len(stem := self._stems[word]) > _MIN_PART and stem not in lexicon.words]
            tokens += [token for stem in rare for token in lexicon.words
                       if len(token) >= len(stem) + _MIN_PART and (token.startswith(stem) or token.endswith(stem))]
        return tokens

    def _reduce(self, words: list[str], lexicon: Lexicon | None) -> list[str]:
        tokens = [self._stems[word] for word in words] if self._stemming or self._folding else words
        if not self.compounds or lexicon is None:
            return tokens
        return tokens + [part for word in words if len(word) <= _MAX_COMPOUND and word.isalpha()
                         for part in self._parts(word, lexicon.words) or self._ends(word, lexicon.words)]

    def _parts(self, word: str, known: Container[str], most: int = 4) -> list[str]:
        """Return the tokens of the fewest indexed words, at most `most`, that form a compound; empty if none do."""
        found: list[str] = []
        for cut in range(_MIN_PART, len(word) - _MIN_PART + 1) if most > 1 else ():
            if (last := self._stems.make(word[cut:])) in known:
                if (first := self._first_part(word[:cut], known)) is not None:
                    return [first, last]
                if before := self._parts(word[:cut], known, min(most, len(found) or most) - 1):
                    found = [*before, last]
        return found

    def _ends(self, word: str, known: Container[str]) -> list[str]:
        """Return the tokens of the longest indexed words that begin and end a compound whose other part is unknown."""
        cuts = range(_MIN_PART, len(word) - _MIN_PART + 1)
        lasts = (self._stems.make(word[cut:]) for cut in cuts if len(word) - cut >= _MIN_END)
        firsts = (self._first_part(word[:cut], known) for cut in reversed(cuts) if cut >= _MIN_END)
        ends = (next((last for last in lasts if last in known), None), next(filter(None, firsts), None))
        return [end for end in ends if end is not None and end != self._stems[word]]

    def _first_part(self, text: str, known: Container[str]) -> str | None:
        stems = (self._stems.make(text[:len(text) - len(link)]) for link in _LINKS
                 if text.endswith(link) and len(text) - len(link) >= _MIN_PART)
        return next((stem for stem in stems if stem in known), None)

    def _split_mixed(self, text: str) -> list[str]:
        words: list[str] = []
        for word in self._cut(text):
            if word.isascii():
                words.append(word)
            elif self._is_paired(word):
                words += character_pairs(word)
            elif self._is_skipped is None or not self._is_skipped(word):
                words.append(word)
        return words


_LINKS = ("", "s", "es", "n", "en", "er", "e")  # letters that may join the parts of a compound
_MIN_PART, _MIN_END, _MAX_COMPOUND = 3, 5, 40  # characters


class LanguageTokenizer(SplittingTokenizer):
    """Splits each text into words by the rules of its own language.

    A query is split by the rules of every language of the indexed texts, because a few words do not tell theirs. Stop
    words of the language that it seems to have are left out by all rules.

    Args:
        languages: a tokenizer for each language. They differ in stemmer, stop words, folding and compounds.
    """

    def __init__(self, languages: Mapping[str, WordTokenizer]) -> None:
        self._of = languages
        self.compounds = any(one.compounds for one in languages.values())

    @property
    def identity(self) -> str:
        return f"languages {digest(*(one.identity for one in self._of.values()))}"

    def split(self, text: str, lexicon: Lexicon | None = None) -> list[str]:
        words = self._of[ENGLISH].words(text)
        language = detect_language(words, False)
        if lexicon is not None:
            lexicon.languages.add(language)
        return self._of[language].reduce(words, lexicon)

    def split_query(self, text: str, lexicon: Lexicon) -> list[str]:
        words = self._of[ENGLISH].words(text)
        if not lexicon.languages - {ENGLISH}:
            return self._of[ENGLISH].reduce_query(words, lexicon)
        own = self._of[detect_language(words, True)]
        words = [word for word in words if word not in own.stopwords]
        counts = Counter[str]()
        for language in sorted(lexicon.languages):
            counts |= Counter(self._of[language].reduce_query(words, lexicon))
        return list(counts.elements())


class _Stems(dict[str, str]):
    """Cache of the first hundred thousand stems. PyStemmer's own cache is slower than no cache."""

    def __init__(self, language: str, stemming: bool, folding: bool) -> None:
        super().__init__()
        self._language, self._stemming, self._folding = language, stemming, folding
        self._stemmers: dict[str, Any] = {}
        self._lock = threading.Lock()  # a stemmer is not thread-safe

    def __missing__(self, word: str) -> str:
        stem = self.make(word)
        if len(self) < _MAX_STEMS:
            self[word] = stem
        return stem

    def make(self, word: str) -> str:
        """Return the stem of a word without caching it."""
        if self._stemming:
            language = language_of_script(word) if self._language == "auto" else self._language
            with self._lock:
                word = self._stemmer(language).stemWord(word)
        return fold_accents(word) if self._folding else word

    def _stemmer(self, language: str) -> Any:
        import Stemmer

        if language not in self._stemmers:
            self._stemmers[language] = Stemmer.Stemmer(language, 0)
        return self._stemmers[language]


def character_pairs(run: str) -> list[str]:
    """Return all pairs of neighbouring characters, or the only character."""
    return [run[at:at + 2] for at in range(max(len(run) - 1, 1))]
