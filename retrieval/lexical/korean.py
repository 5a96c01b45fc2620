"""Tokens of Korean: morphemes that carry meaning, found by kiwipiepy. Other scripts are split into words."""
from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

from ragbed.documents.errors import MissingExtra
from ragbed.documents.types import digest
from ragbed.retrieval.lexical.tokens import HANGUL, RULES, WordTokenizer, normalise, version_of

_PACKAGES = ("kiwipiepy", "kiwipiepy_model")
_HANGUL = re.compile(f"[{HANGUL}]")
_UNREADABLE = re.compile("[\0#@\ud800-\udfff]")  # hashtags and mentions would become one token with their particles
_FOREIGN = re.compile(r"[a-z]{64,}")  # split into words, because the analyser would take seconds for a long run

_NOUNS = frozenset({"NNG", "NNP", "NR", "XR", "UN"})
_VERBS = frozenset({"VV", "VA"})
_COMPOUND = _NOUNS | {"NNB", "XPN", "XSN"}
"""Tags of the Sejong corpus in kiwipiepy: nouns, numerals, roots and unknown words; verbs and adjectives; and parts of
compound nouns, which also include bound nouns, prefixes and suffixes."""

_BATCH = 64  # texts analysed at once, by several threads
_MAX_CACHED = 8_192  # texts
_ANALYSING = threading.Lock()  # the analyser has its own threads, and loads its model at first use


class KoreanTokenizer:
    """Splits Hangul into nouns, numerals, roots, verbs and adjectives, without particles and endings.

    A compound noun written as one word gives a token for the whole and one for each part, so that queries for either
    find it. Verbs and adjectives are in their dictionary form.

    Args:
        words: splits other scripts and skips Hangul.
        stopwords: morphemes to leave out.
    """

    many = 200

    def __init__(self, words: WordTokenizer, stopwords: frozenset[str]) -> None:
        MissingExtra.check("korean", *_PACKAGES)
        self._words, self._stopwords = words, stopwords
        self._known: OrderedDict[str, list[str]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def identity(self) -> str:
        versions = version_of("kiwipiepy", "kiwipiepy_model")
        return f"korean {digest(str(RULES), versions, self._words.identity, *sorted(self._stopwords))}"

    def tokens(self, texts: Iterable[str]) -> Iterator[list[str]]:
        rest = iter(texts)
        while batch := list(islice(rest, _BATCH)):
            yield from self._batch(batch)

    def _batch(self, texts: Sequence[str]) -> list[list[str]]:
        with self._lock:
            found = {text: self._known[text] for text in texts if text in self._known}
        missing = {text: normalise(text) for text in texts if text not in found}
        readable = [_FOREIGN.sub("a", _UNREADABLE.sub(" ", text)) if _HANGUL.search(text) else ""
                    for text in missing.values()]
        with _ANALYSING:
            analysed = list(_kiwi().tokenize(readable)) if readable else []
        for (text, plain), morphemes in zip(missing.items(), analysed, strict=True):
            found[text] = self._words.split(plain) + self._hangul(morphemes)
        with self._lock:
            self._known |= found
            for text in found:
                self._known.move_to_end(text)
            while len(self._known) > _MAX_CACHED:
                self._known.popitem(last=False)
        return [found[text] for text in texts]

    def _hangul(self, morphemes: Iterable[Any]) -> list[str]:
        tokens, parts, end = [], list[str](), -1
        for one in morphemes:
            tag = one.tag.partition("-")[0]  # VV-I and VV-R are irregular and regular verbs
            joins = tag in _COMPOUND and _HANGUL.match(one.form) is not None
            if not joins or one.start != end:
                tokens += _compound(parts)
                parts = []
            if joins:
                parts.append(one.form)
                end = one.start + one.len
            if tag in _VERBS:
                tokens.append(f"{one.form}다")
            elif joins and tag in _NOUNS:
                tokens.append(one.form)
        return [token for token in tokens + _compound(parts) if token not in self._stopwords]


def _compound(parts: Sequence[str]) -> list[str]:
    return ["".join(parts)] if len(parts) > 1 else []


_CONTENT = _COMPOUND | {"SL", "SH", "SN", "NP"}  # and foreign words, Chinese characters, numbers and pronouns


def nouns_of(text: str) -> str:
    """Return the nouns, numbers and foreign words of a text, without particles. Raises MissingExtra if kiwipiepy is not
    installed."""
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
