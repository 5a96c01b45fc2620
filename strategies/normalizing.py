"""Normalize answers for comparison, and find the option whose text an answer gives."""
from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from ragbed.documents.numbers import find_values
from ragbed.documents.types import normalize
from ragbed.strategies.reading import fold, remove_invisible

_ARTICLES = re.compile(r"\b(a|an|the)\b")


class _Kept(dict[int, int | None]):
    """A table for `str.translate` that removes punctuation and is filled on first use of each character."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        gone = character in string.punctuation or unicodedata.category(character)[0] == "P"
        self[code] = None if gone else code
        return self[code]


_WITHOUT_PUNCTUATION = _Kept()


@lru_cache(maxsize=256)
def normalize_answer(text: str) -> str:
    """Normalize an answer: lower case, NFKC, no punctuation, no articles, single spaces.

    This is HotpotQA's normalization (Yang et al., 2018), but it also removes Unicode punctuation, and text that
    consists only of articles keeps them, since it may be the option `A`.
    """
    kept = normalize("NFKC", text).lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", kept).split() or kept.split())


_POINT = re.compile(r"(?<=\d)(?:\.(?=\d)|,(?=\d{1,2}(?!\d)))")
_MINUS = re.compile(r"(?<![^\s($€£¥₩:=~])[-\u2212–](?=[$€£¥₩]?\d)")


def keep_number_marks(text: str) -> str:
    """Replace minus signs and decimal points of numbers with characters that `normalize_answer` keeps."""
    return _MINUS.sub("\ue001", _POINT.sub("\ue000", normalize("NFKC", text)))


def normalize_values(text: str) -> str:
    """Normalize a text, and replace each number and date with a token that is the same for equal values."""
    text = normalize("NFKC", text)
    pieces, at = [], 0
    for value in find_values(text):
        pieces += [text[at:value.start], f" {value.token} "]
        at = value.end
    return normalize_answer("".join([*pieces, text[at:]]))


_MAX_RATIO, _MAX_WORDS, _MAX_CHARACTERS = 3, 10, 100
_CLAUSE_ENDS = re.compile(r"[,.;:!。、](?:\s|$)|\n")
_DENIES = re.compile(r"(?<![a-z])(?:not|never|neither|nor|cannot|except)(?![a-z])|n't(?![a-z])|아니|않|不|没|非")
_WRONG = r"(?:(?<![a-z])(?:wrong|incorrect|false|eliminated|ruled out)(?![a-z])|错|錯|틀[렸리린림립]|오답)"
EDGE = "0-9A-Za-z\u00c0-\u024f\u0370-\u052f"
_MASK = "\x00"
_CALLS_WRONG = re.compile(rf"{_WRONG}[^.,;:!。、\n{_MASK}]*{_MASK}|{_MASK}[^.,;:!。、\n{_MASK}]*{_WRONG}")


_QUOTES = {0x2018: "'", 0x2019: "'"} | dict.fromkeys((0x201C, 0x201D, 0x201E, 0xAB, 0xBB), '"')


def straighten(text: str) -> str:
    """Fold full-width and other compatible forms, straighten quotes, and remove invisible characters."""
    return normalize("NFKC", remove_invisible(text)).translate(_QUOTES)


def match_option_text(said: str, options: Sequence[tuple[str, str]]) -> str | None:
    """Return the label of the only option that the text names: it equals the option, begins with it as a clause, or is
    short and contains it.

    Short means at most three times the option's length, or ten words. A text that denies something, or calls the option
    wrong, does not name an option by containing it.
    """
    spaced = _light(said)
    lights = [(label, _light(text)) for label, text in options]
    for ours, theirs in ((spaced, lights), (fold(said), [(label, fold(text)) for label, text in options])):
        equal = [label for label, text in theirs if text and text == ours]
        if equal:
            return equal[0] if len(equal) == 1 else None
    clause = _light(_CLAUSE_ENDS.split(said, maxsplit=1)[0])
    begun = [label for label, text in lights if text and text == clause]
    named = begun or _held(spaced, lights)
    return named[0] if len(named) == 1 else None


def _light(text: str) -> str:
    """Fold case and spaces. Unlike `fold`, keep marks, which distinguish 3.5 from 35 and -3 from 3."""
    return " ".join(straighten(text).casefold().split()).strip(" .!。'\"")


def _held(said: str, options: Sequence[tuple[str, str]]) -> list[str]:
    """Return the labels of the options in the text. An option found only inside a longer option does not count."""
    found: list[str] = []
    if len(said) > max(_MAX_CHARACTERS, _MAX_RATIO * max(len(text) for _, text in options)):
        return found
    for text in sorted({text for _, text in options}, key=lambda text: (-len(text), text)):
        article = len(text) == 1 and text.isascii() and text.isalpha()
        if not text or article or (len(said) > _MAX_RATIO * len(text) and len(said.split()) > _MAX_WORDS):
            continue
        before = rf"(?<![{EDGE}])(?<!\d[.,])(?<!-)" if re.match(rf"[{EDGE}]", text) else ""
        after = rf"(?![{EDGE}%]|[.,]\d)" if re.search(rf"[{EDGE}]\Z", text) else ""
        said, count = re.subn(before + re.escape(text) + after, _MASK, said)
        found += [label for label, other in options if count and other == text]
    return [] if _DENIES.search(said) or _CALLS_WRONG.search(said) else found
