"""Reading how far something holds out of a model's words: a number of ten, a share, or yes, partly and no."""
from __future__ import annotations

import re

_LONGEST = 200  # characters that are looked at
_SKIP = r"[\s*_`#>:：=\"'()\[\]~-]{0,12}"
_NUMBER = re.compile(rf"{_SKIP}(\d{{1,3}}(?:\.\d{{1,3}})?)\s?(?:(?:/|out of|of)\s?(\d{{1,3}})(?!\d)|(%))?(?![\d.]*\d)",
                     re.IGNORECASE)
_RANGE = re.compile(rf"{_SKIP}(?:\d{{1,3}}\s?(?:-|–|to|or|,)\s?\d|yes\s?(?:/|,|or)\s?(?:partly|partially|no)\b)",
                    re.IGNORECASE)
_WORD = re.compile(rf"{_SKIP}(?:it is |they are |is |are )?([^\W\d_]{{1,20}})", re.IGNORECASE)
_WHOLE = "yes fully completely sufficient enough supported true 예 네 충분 충분함 충분합니다"
_PARTLY = "partly partially partial somewhat mostly 부분 부분적 부분적으로 일부"
_NOT = "no not none insufficient unsupported false never 아니요 아니오 불충분 불충분함 불충분합니다 없음"
_WORDS = {word: value for value, words in ((1.0, _WHOLE), (0.5, _PARTLY), (0.0, _NOT)) for word in words.split()}


def read_share(text: str) -> float | None:
    """The share that a text begins with, from 0 to 1; None where it begins with none, or repeats the scale.

    `7`, `7/10` and `7 out of 10` are 0.7; `3 of 4` is 0.75, `70%` and `0.7` are 0.7: a number with a point that is at
    most 1 is a share. `yes` is 1, `partly` 0.5 and `no` 0, and so are their like in English and Korean.
    """
    text = text[:_LONGEST]
    if _RANGE.match(text):
        return None
    number = _NUMBER.match(text)
    if number is None:
        word = _WORD.match(text)
        return _WORDS.get(word[1].lower()) if word else None
    amount, whole = float(number[1]), 10.0
    if number[2]:
        whole = float(number[2])
    elif number[3]:
        whole = 100.0
    elif "." in number[1] and amount <= 1:
        whole = 1.0
    return amount / whole if amount <= whole and whole > 0 else None
