"""Extract names and numbers from texts with simple patterns."""
from __future__ import annotations

import re
from functools import lru_cache

from ragbed.documents.types import normalize

_WORD = r"[A-ZÀ-ÖØ-Þ][\w’'&.-]*\w|[A-Z]"
_LINKS = r"of|the|and|for|de|del|la|du|van|von|der|&"
_SPAN = re.compile(rf"(?:{_WORD})(?:[ ](?:(?:{_LINKS})[ ]){{0,2}}(?:{_WORD}))*")
_FIRST_WORDS = (
    "a an the this that these those it its he she his her they their we our you your i in on at by for from with as of "
    "to and or but if when where which who whom whose what why how is are was were be been do does did has have had "
    "can could will would should may might after before during since while although however both each some many most "
    "one two three four five there then also not no yes between among under over into all other")
FUNCTION_WORDS = frozenset(_FIRST_WORDS.split())
_HANGUL = re.compile(r"[가-힣][가-힣0-9A-Za-z]*")
_ANY = re.compile(rf"{_SPAN.pattern}|{_HANGUL.pattern}")
_ENDINGS = (
    "은 는 이 가 을 를 의 에 도 와 과 로 만 으로 에서 에게 부터 까지 보다 처럼 이나 에는 에도 와의 과의 으로서 으로써 "
    "에서는 이라는 라는 이란 란 이며 이고 인 들 들은 들이 들을 들의")
_PARTICLES = tuple(sorted(_ENDINGS.split(), key=len, reverse=True))
_MIN_LENGTH = 2  # letters, or Korean syllables, of a name
_NUMBER = re.compile(r"\d[\d.,]*")


@lru_cache(maxsize=1_024)
def extract_names(text: str) -> frozenset[str]:
    """Return the names in the text, in lower case: capitalised words, except those that only begin a sentence, and
    Korean words without particles.
    """
    text = normalize("NFKC", text)
    spans = {_fold(match[0]) for match in _SPAN.finditer(text)}
    korean = {_stem(match[0]) for match in _HANGUL.finditer(text)}
    return frozenset(name for name in spans | korean if len(name) >= _MIN_LENGTH)


@lru_cache(maxsize=1_024)
def extract_subject(text: str) -> str | None:
    """Return the first name in the text, which is the subject of a passage under a title."""
    text = normalize("NFKC", text)
    found = (_stem(match[0]) if _HANGUL.match(match[0]) else _fold(match[0]) for match in _ANY.finditer(text))
    return next((name for name in found if len(name) >= _MIN_LENGTH), None)


@lru_cache(maxsize=1_024)
def extract_numbers(text: str) -> frozenset[str]:
    """Return the numbers in the text, including years, without thousands separators and final points."""
    return frozenset(match[0].replace(",", "").rstrip(".") for match in _NUMBER.finditer(normalize("NFKC", text)))


def _fold(span: str) -> str:
    words = span.split()
    while words and words[0].casefold() in FUNCTION_WORDS:
        words = words[1:]
    name = " ".join(words).casefold()
    return _stem(re.sub(r"['’]s\b|[.'’]+$", "", name))


def _stem(word: str) -> str:
    ending = next((one for one in _PARTICLES if word.endswith(one) and len(word) - len(one) >= _MIN_LENGTH), "")
    return word.removesuffix(ending)
