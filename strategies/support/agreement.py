"""Whether the numbers and dates of a sentence stand in a text, as values."""
from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal

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
    known = [*values(text), *values(question), *_in_words(text)]
    scales = _SCALES if _NAMES_SCALE.search(text) else _SCALES[:1]
    shares = _PERCENT.search(text) is not None
    written = [(value, sentence[value.start:value.end]) for value in wanted]
    return [said.strip() for value, said in written if not _agrees(value, said, known, scales, shares)]


def _in_words(text: str) -> list[Value]:
    return [Value(found.start(), found.end(), Decimal(NUMBER_WORDS.index(found[0].lower())))
            for found in _NUMBER_WORD.finditer(text)]


def _agrees(value: Value, said: str, known: Sequence[Value], scales: Sequence[Decimal], shares: bool) -> bool:
    if value.number is None:
        return any(other.says(value) for other in known)
    if any(other.date is not None and other.says(value) for other in known):
        return True
    amount, room = abs(value.number), _room(value, said)
    numbers = [abs(other.number) for other in known if other.number is not None
               and (other.percent == value.percent or (shares and value.percent))]
    return any(abs(number * scale - amount) <= room for number in numbers for scale in scales)


def _room(value: Value, said: str) -> Decimal:
    """Half a unit of the last written digit; nothing for a bare whole number, and for one of a single digit."""
    digits = "".join(one for one in said if one.isdecimal() or one == ".").strip(".")
    whole, _, decimals = digits.partition(".")
    written = Decimal(digits) if digits.count(".") <= 1 and digits.isascii() and digits else Decimal(0)
    if not written or value.number is None or len((whole + decimals).lstrip("0")) < 2:
        return Decimal(0)
    scale = abs(value.number) / written
    return scale * Decimal(10) ** -len(decimals) / 2 if decimals or scale > 1 else Decimal(0)
