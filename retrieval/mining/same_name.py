"""Chunks that share a name with a query but state other numbers, both found by simple means in the texts."""
from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import log

from ragbed.documents.types import normalize
from ragbed.retrieval.hits import DECIMALS
from ragbed.retrieval.mining.miner import MiningQuery, Rows
from ragbed.retrieval.types import Hit

_WORD = r"[A-ZÀ-ÖØ-Þ][\w’'&.-]*\w|[A-Z]"
_LINKS = r"of|the|and|for|de|del|la|du|van|von|der|&"
_SPAN = re.compile(rf"(?:{_WORD})(?:[ ](?:(?:{_LINKS})[ ]){{0,2}}(?:{_WORD}))*")
_FIRST_WORDS = (
    "a an the this that these those it its he she his her they their we our you your i in on at by for from with as of "
    "to and or but if when where which who whom whose what why how is are was were be been do does did has have had "
    "can could will would should may might after before during since while although however both each some many most "
    "one two three four five there then also not no yes between among under over into all other")
_BEGINNERS = frozenset(_FIRST_WORDS.split())
_HANGUL = re.compile(r"[가-힣][가-힣0-9A-Za-z]*")
_ANY = re.compile(rf"{_SPAN.pattern}|{_HANGUL.pattern}")
_ENDINGS = (
    "은 는 이 가 을 를 의 에 도 와 과 로 만 으로 에서 에게 부터 까지 보다 처럼 이나 에는 에도 와의 과의 으로서 으로써 "
    "에서는 이라는 라는 이란 란 이며 이고 인 들 들은 들이 들을 들의")
_PARTICLES = tuple(sorted(_ENDINGS.split(), key=len, reverse=True))
_SHORTEST = 2  # letters of a name; syllables of a Korean one
_NUMBER = re.compile(r"\d[\d.,]*")


@lru_cache(maxsize=1_024)
def names_of(text: str) -> frozenset[str]:
    """Return the names in the text, folded: capitalised spans without the words that only begin a sentence, and
    Korean words without their particles, which are names where they are rare."""
    text = normalize("NFKC", text)
    spans = {_folded(match[0]) for match in _SPAN.finditer(text)}
    korean = {_stem(match[0]) for match in _HANGUL.finditer(text)}
    return frozenset(name for name in spans | korean if len(name) >= _SHORTEST)


@lru_cache(maxsize=1_024)
def subject_of(text: str) -> str | None:
    """Return the name that the text begins with, or that comes first in it: what a passage under a title is about."""
    text = normalize("NFKC", text)
    found = (_stem(match[0]) if _HANGUL.match(match[0]) else _folded(match[0]) for match in _ANY.finditer(text))
    return next((name for name in found if len(name) >= _SHORTEST), None)


@lru_cache(maxsize=1_024)
def numbers_of(text: str) -> frozenset[str]:
    """Return the figures in the text, years among them, without thousands separators and final points."""
    return frozenset(match[0].replace(",", "").rstrip(".") for match in _NUMBER.finditer(normalize("NFKC", text)))


def _folded(span: str) -> str:
    words = span.split()
    while words and words[0].casefold() in _BEGINNERS:
        words = words[1:]
    name = " ".join(words).casefold()
    return _stem(re.sub(r"['’]s\b|[.'’]+$", "", name))


def _stem(word: str) -> str:
    ending = next((one for one in _PARTICLES if word.endswith(one) and len(word) - len(one) >= _SHORTEST), "")
    return word.removesuffix(ending)


_COMMON = 0.02  # a name in a larger share of the chunks ties nothing together, unless it stands in fewer than `_FEW`
_FEW = 50


class SameName:
    """Chunks that hold a name of the query, or what a chunk of `around` is about, and a number that none of these has.

    A chunk that holds all the query's own numbers, where it has any, speaks of the same year or amount, and is none.
    The score is the sum of log(1 + chunks / chunks with that name) over the shared names.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def mine(self, asked: Sequence[MiningQuery], k: int) -> list[list[Hit]]:
        return [self._mined(one, k) for one in asked]

    def _mined(self, one: MiningQuery, k: int) -> list[Hit]:
        count = len(self._rows.collection.chunks)
        scores: dict[int, float] = defaultdict(float)
        subjects = {name for chunk in one.around if (name := subject_of(chunk.content))}
        for name in sorted(names_of(one.query) | subjects):
            holders = self._holders.get(name, ())
            for row in holders:
                scores[row] += log(1 + count / len(holders))
        for row in self._rows.of_ids(one.leave_out):
            scores.pop(row, None)
        rounded = [(round(score, DECIMALS), row) for row, score in scores.items()]
        ranked = sorted(rounded, key=lambda each: (-each[0], each[1]))
        return self._with_other_numbers(one, ranked, k)

    def _with_other_numbers(self, one: MiningQuery, ranked: Sequence[tuple[float, int]], k: int) -> list[Hit]:
        asked = numbers_of(one.query)
        known = asked.union(*(numbers_of(chunk.content) for chunk in one.around))
        hits: list[Hit] = []
        for score, row in ranked:
            if len(hits) == k:
                break
            chunk = self._rows.collection.chunks[row]
            stated = numbers_of(chunk.content)
            if stated - known and not (asked and asked <= stated):
                hits.append(Hit(chunk, score, len(hits) + 1, "entity"))
        return hits

    @cached_property
    def _holders(self) -> dict[str, array[int]]:
        found: dict[str, array[int]] = defaultdict(lambda: array("I"))
        for row, chunk in enumerate(self._rows.collection.chunks):
            for name in names_of(chunk.content):
                found[name].append(row)
        most = max(_FEW, _COMMON * len(self._rows.collection.chunks))
        return {name: rows for name, rows in found.items() if len(rows) <= most}
