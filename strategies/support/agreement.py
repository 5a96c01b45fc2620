"""Whether the numbers and dates of a sentence stand in a text, as values."""
from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product

from documents.values import Value, values

NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
                "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty")
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)
_LIST_MARK = re.compile(r"^[ \t]{0,20}(?:[-*•–][ \t]+)?\(?\d{1,2}[.)](?=\s)|(?<=[\s:;,])\(\d{1,2}\)(?=\s)",
                        re.MULTILINE)
_NAMES_SCALE = re.compile(r"\b(?:thousands|millions|billions)\b|단위|천\s?원|백만\s?원|억\s?원", re.IGNORECASE)
_PERCENT = re.compile(r"%|\bper ?cent\b|퍼센트|프로", re.IGNORECASE)
_SCALES: tuple[Decimal, ...] = tuple(Decimal(10) ** power for power in (0, 3, 6, 9, -3, -6, -9))


def not_stated(sentence: str, text: str, question: str = "") -> list[str]:
    """The numbers and dates of the sentence that stand neither in the text nor in the question, as they are written.

    Compared by value, without sign: `1,577` is 1577, `May 3, 2023` is 2023-05-03, and a date states its year. A number
    of two digits or more that is written with a scale or a decimal point agrees with one that rounds to it
    (`5.2 billion`: 5,213 million). Where the text names a scale apart from its numbers (`in millions`), as tables do,
    it may be left out or put in. Up to twenty a number may be a word in the text. Marks of a list are no numbers.
    """
    sentence = unicodedata.normalize("NFKC", _LIST_MARK.sub(" ", sentence))
    wanted = values(sentence)
    if not wanted:
        return []
    known = _Known.of([*values(text), *values(question), *_in_words(text)], bool(_PERCENT.search(text)))
    scales = _SCALES if _NAMES_SCALE.search(text) else _SCALES[:1]
    written = dict.fromkeys((value, sentence[value.start:value.end].strip()) for value in wanted)
    return list(dict.fromkeys(said for value, said in written if not known.has(value, said, scales)))


@dataclass(frozen=True, slots=True)
class _Known:
    """Numbers without their signs, sorted, and every date with and without each of its parts."""

    plain: list[Decimal]
    percent: list[Decimal]
    dates: frozenset[tuple[int | None, ...]]

    @classmethod
    def of(cls, found: Sequence[Value], shares: bool) -> _Known:
        """Args: shares: whether the text speaks of percent, so that any number may be of it."""
        numbers = [(abs(one.number), one.percent) for one in found if one.number is not None]
        dates = [one.date for one in found if one.date is not None]
        years = [Decimal(date[0]) for date in dates if date[0] is not None]
        less = frozenset(part for date in dict.fromkeys(dates) for part in product(*((one, None) for one in date)))
        return cls(sorted([*(number for number, percent in numbers if not percent), *years]),
                   sorted(number for number, percent in numbers if percent or shares), less)

    def has(self, value: Value, said: str, scales: Sequence[Decimal]) -> bool:
        """Whether one of them is the value, as it is written."""
        if value.number is None:
            return value.date in self.dates
        amount, room = abs(value.number), _room(value, said)
        numbers = self.percent if value.percent else self.plain
        return any(_stands(numbers, (amount - room) / scale, (amount + room) / scale) for scale in scales)


def _stands(numbers: Sequence[Decimal], low: Decimal, high: Decimal) -> bool:
    place = bisect_left(numbers, low)
    return place < len(numbers) and numbers[place] <= high


def _in_words(text: str) -> list[Value]:
    return [Value(found.start(), found.end(), Decimal(NUMBER_WORDS.index(found[0].lower())))
            for found in _NUMBER_WORD.finditer(text)]


def _room(value: Value, said: str) -> Decimal:
    """Half a unit of the last written digit; nothing for a bare whole number, and for one of a single digit."""
    digits = "".join(one for one in said if one.isdecimal() or one == ".").strip(".")
    whole, _, decimals = digits.partition(".")
    written = Decimal(digits) if digits.count(".") <= 1 and digits.isascii() and digits else Decimal(0)
    if not written or value.number is None or len((whole + decimals).lstrip("0")) < 2:
        return Decimal(0)
    scale = abs(value.number) / written
    return scale * Decimal(10) ** -len(decimals) / 2 if decimals or scale > 1 else Decimal(0)
