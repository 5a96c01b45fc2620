"""The tokenizer for a language. Korean text is split into morphemes that carry meaning, with kiwipiepy."""
from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import islice
from typing import Any, Literal

from ragbed.documents.errors import MissingExtra
from ragbed.documents.types import digest
from ragbed.retrieval.lexical.languages import COMPOUNDING, DETECTED, ENGLISH, FOLDED, KOREAN, stopwords_of
from ragbed.retrieval.lexical.tokens import (
    HANGUL,
    RULES,
    UNSPACED,
    LanguageTokenizer,
    Lexicon,
    Tokenizer,
    WordTokenizer,
    normalise,
    version_of,
)

_PACKAGES = ("kiwipiepy", "kiwipiepy_model")
_HANGUL = re.compile(f"[{HANGUL}]")
_UNREADABLE = re.compile("[\0#@\ud800-\udfff]")  # with `#` and `@`, a word and its particles would be one token
_FOREIGN = re.compile(r"[a-z]{64,}")  # the analyser takes seconds for such long runs, so they are split into words

_NOUNS = frozenset({"NNG", "NNP", "NR", "XR", "UN"})
_VERBS = frozenset({"VV", "VA"})
_COMPOUND = _NOUNS | {"NNB", "XPN", "XSN"}
"""Tags of the Sejong corpus in kiwipiepy: nouns, numerals, roots and unknown words; verbs and adjectives; and parts of
compound nouns, which also include bound nouns, prefixes and suffixes."""

_BATCH = 64  # texts analysed at once, by several threads
_MAX_CACHED = 8_192  # texts
_ANALYSING = threading.Lock()  # the analyser has its own threads, and loads its model at first use


def korean_analyser_installed() -> bool:
    """Return whether kiwipiepy can be used."""
    return all(find_spec(package) is not None for package in _PACKAGES)


class KoreanTokenizer:
    """Splits runs of Hangul into nouns, numerals, roots, verbs and adjectives. Particles and endings are dropped.

    A compound noun written as one word gives a token for the whole and one for each part, so that queries for either
    find it. Verbs and adjectives are in their dictionary form.

    Args:
        words: tokenizer for other scripts, which skips Hangul.
        stopwords: morphemes to leave out.
    """

    def __init__(self, words: LanguageTokenizer | WordTokenizer, stopwords: frozenset[str]) -> None:
        MissingExtra.check("korean", *_PACKAGES)
        self._words, self._stopwords = words, stopwords
        self.compounds = words.compounds
        self._known: OrderedDict[str, list[str]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def identity(self) -> str:
        versions = version_of("kiwipiepy", "kiwipiepy_model")
        return f"korean {digest(str(RULES), versions, self._words.identity, *sorted(self._stopwords))}"

    def tokens(self, texts: Iterable[str], lexicon: Lexicon | None = None) -> Iterator[list[str]]:
        return self._split(texts, lambda text: self._words.split(text, lexicon))

    def query_tokens(self, queries: Iterable[str], lexicon: Lexicon) -> Iterator[list[str]]:
        return self._split(queries, lambda text: self._words.split_query(text, lexicon))

    def _split(self, texts: Iterable[str], split: Callable[[str], list[str]]) -> Iterator[list[str]]:
        rest = map(normalise, texts)
        while batch := list(islice(rest, _BATCH)):
            korean = self._morphemes([text for text in batch if not text.isascii() and _HANGUL.search(text)])
            yield from (split(text) + korean.get(text, []) for text in batch)

    def _morphemes(self, texts: Sequence[str]) -> dict[str, list[str]]:
        """Return the tokens of the Hangul in each of these normalised texts. Loads the analyser if there are any."""
        with self._lock:
            found = {text: self._known[text] for text in texts if text in self._known}
        missing = {text: _FOREIGN.sub("a", _UNREADABLE.sub(" ", text)) for text in texts if text not in found}
        if missing:
            with _ANALYSING:
                analysed = list(_kiwi().tokenize(list(missing.values())))
            found |= zip(missing, map(self._content_morphemes, analysed), strict=True)
        with self._lock:
            self._known |= found
            for text in found:
                self._known.move_to_end(text)
            while len(self._known) > _MAX_CACHED:
                self._known.popitem(last=False)
        return found

    def _content_morphemes(self, morphemes: Iterable[Any]) -> list[str]:
        tokens, parts, end = [], list[str](), -1
        for one in morphemes:
            tag = one.tag.partition("-")[0]  # VV-I and VV-R are irregular and regular verbs
            joins = tag in _COMPOUND and _HANGUL.match(one.form) is not None
            if not joins or one.start != end:
                tokens += _join_compound(parts)
                parts = []
            if joins:
                parts.append(one.form)
                end = one.start + one.len
            if tag in _VERBS:
                tokens.append(f"{one.form}다")
            elif joins and tag in _NOUNS:
                tokens.append(one.form)
        return [token for token in tokens + _join_compound(parts) if token not in self._stopwords]


def _join_compound(parts: Sequence[str]) -> list[str]:
    return ["".join(parts)] if len(parts) > 1 else []


_CONTENT = _COMPOUND | {"SL", "SH", "SN", "NP"}  # plus foreign words, Chinese characters, numbers and pronouns


def nouns_of(text: str) -> str:
    """Return the nouns, numbers and foreign words of a text, without particles. Raises MissingExtra without
    kiwipiepy."""
    MissingExtra.check("korean", *_PACKAGES)
    with _ANALYSING:
        found = [one for one in _kiwi().tokenize(text) if one.tag.partition("-")[0] in _CONTENT]
    ends = [0, *(one.start + one.len for one in found)]
    return "".join(" " * (one.start > end) + text[one.start:one.start + one.len]
                   for one, end in zip(found, ends, strict=False)).strip()


@cache
def _kiwi() -> Any:
    """Load the analyser, which takes half a gigabyte, and one or two seconds."""
    from kiwipiepy import Kiwi

    return Kiwi()


Stemmed = Literal[
    "arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "dutch_porter", "english", "esperanto",
    "estonian", "finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian",
    "lithuanian", "nepali", "norwegian", "persian", "polish", "porter", "portuguese", "romanian", "russian", "serbian",
    "sesotho", "spanish", "swedish", "tamil", "turkish", "yiddish"]
"""Languages for which PyStemmer has a Snowball stemmer."""

Language = Literal["auto", "korean"] | Stemmed
Cut = Literal["words", "bigrams", "kiwi"]


@lru_cache(maxsize=32)
def make_tokenizer(cut: Cut, language: Language, stemming: bool, stopwords: bool | frozenset[str],
                   folding: bool | None = None, compounds: bool = False) -> Tokenizer:
    """Return the tokenizer for these arguments. Equal arguments give the same object, which shares its cache.

    Args:
        cut: `words`, `bigrams` (Hangul as pairs of characters, too) or `kiwi` (Korean morphemes).
        language: language of all text except Hangul. `auto` detects it for each text.
        stopwords: True for the usual stop words of the language and of Korean.
        folding: whether accents are ignored; None for the languages in `FOLDED`.
        compounds: whether compounds are found by their parts, in the languages in `COMPOUNDING`.

    Raises:
        MissingExtra: `kiwi` needs kiwipiepy, which is not installed.
    """
    pairs, without = UNSPACED + HANGUL * (cut == "bigrams"), HANGUL * (cut == "kiwi")

    def words(of: str) -> WordTokenizer:
        own = stopwords if isinstance(stopwords, frozenset) else stopwords_of(of) if stopwords else frozenset()
        detected = language == "auto" and of == ENGLISH
        if detected and stopwords is True:
            own |= stopwords_of("russian")
        return WordTokenizer("auto" if detected else of, stemming, own, pairs, without,
                             of in FOLDED if folding is None else folding, compounds and of in COMPOUNDING)

    spaced = LanguageTokenizer({one: words(one) for one in (ENGLISH, *DETECTED)}) if language == "auto" else words(
        ENGLISH if language == "korean" else language)
    if cut != "kiwi":
        return spaced
    korean = stopwords if isinstance(stopwords, frozenset) else KOREAN if stopwords else frozenset()
    return KoreanTokenizer(spaced, korean)
