"""Recognize numbers in table cells, and read the values of numbers and dates in English and Korean text."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from ragbed.documents.types import normalize

CURRENCIES = frozenset("$€£¥₩")
SIGNS = CURRENCIES | {"(", "$(", "($", "US$"}  # may be in a separate cell before their number
UNITS = frozenset({")", "%", ")%", "%)", "bps", "pts"})  # may be in a separate cell after their number
_MAX_CELL = 60
_CELL_SCALE = r"(?:\s*(?:thousand|million|billion|trillion|bps|pts|basis points)\b)?"
_AMOUNT = rf"[$€£¥₩(\s+−–—-]*\d[\d.,:/\s]*{_CELL_SCALE}[)%\sxX†*]*"
_CELL = re.compile(
    rf"(?:(?:approximately|about|around|up to)\s+|~)?{_AMOUNT}(?:(?:to|and|through|[–—-])\s*{_AMOUNT})?"
    r"|[—–-]+%?|n/?[am]|US\$.*\d|\d.*\(?%\)?", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)[0-9]{2}|[0-3]?[0-9],")


def is_number(text: str) -> bool:
    """Return whether a cell is an amount, a range of amounts, a percentage, a year, a time or a dash."""
    return len(text) <= _MAX_CELL and _CELL.fullmatch(text) is not None


def is_year(text: str) -> bool:
    """Return whether a cell is a year, or a day such as `28,` that precedes a year, as in column titles."""
    return _YEAR.fullmatch(text) is not None


def join_signs(cells: Sequence[str]) -> list[str]:
    """Join signs and units in separate cells with the number next to them."""
    line = list(cells)
    for index in range(len(line) - 1, 0, -1):
        if line[index] in UNITS and (line[index - 1] in UNITS or is_number(line[index - 1])):
            _join(line, index - 1, index, index - 1)
    for index in range(len(line) - 1):
        if line[index] in SIGNS and (line[index + 1] in SIGNS or is_number(line[index + 1])):
            _join(line, index, index + 1, index + 1)
    return line


def join_unit(left: str, right: str) -> str:
    """Join a sign and its number, or a number and its unit."""
    return f"{left} {right}" if right.isalpha() else left + right


def _join(line: list[str], left: int, right: int, into: int) -> None:
    joined = join_unit(line[left], line[right])
    line[left] = line[right] = ""
    line[into] = joined


_MONTHS = {name: number for number, names in enumerate(
    ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
     "september sept sep", "october oct", "november nov", "december dec"), start=1) for name in names.split()}
_MONTH = "(?P<{}>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_LARGE = "thousand|million|billion|trillion|mn|bn|k"
_VALUES_SCALE = {"thousand": 10**3, "k": 10**3, "million": 10**6, "mn": 10**6, "billion": 10**9, "bn": 10**9,
          "trillion": 10**12, "십": 10, "백": 100, "천": 1000, "만": 10**4, "억": 10**8, "조": 10**12}
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_START = r"(?<![A-Za-z0-9.])"
_MAX_DIGITS = 40  # digits, points and commas; longer runs are identifiers rather than numbers

_DATES = tuple(re.compile(pattern, re.IGNORECASE) for pattern in (
    r"(?<!\d)(?P<y>\d{4})\s*년(?:\s*(?P<m>\d{1,2})\s*월(?:\s*(?P<d>\d{1,2})\s*일)?)",
    r"(?<![\d-])(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?![\d-])",
    r"(?<![\d./])(?P<y>\d{4})([./])\s?(?P<m>\d{1,2})\2\s?(?P<d>\d{1,2})(?!\d)",
    r"(?<!\d)(?P<m>\d{1,2})\s*월\s*(?P<d>\d{1,2})\s*일",
    rf"\b{_MONTH.format('n')}\s*(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?:\s*,\s*|\s+)(?P<y>\d{{4}})(?!\d)",
    rf"(?<!\d)(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH.format('n')}\s*,?\s*(?P<y>\d{{4}})(?!\d)",
    rf"\b{_MONTH.format('n')}\s*,?\s*(?P<y>\d{{4}})(?!\d)",
    r"(?<![\d/])(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<y>\d{4})(?![\d/])",
))
_DAYS = tuple(re.compile(pattern) for pattern in (
    rf"\b(?=[A-Z])(?i:{_MONTH.format('n')}\s*(?P<d>\d{{1,2}})(?:st|nd|rd|th)?)(?![\d:,.]?\d)",
    rf"(?<![\d:.,])(?P<d>\d{{1,2}})(?i:st|nd|rd|th)?\s+(?:of\s+)?(?=[A-Z])(?i:{_MONTH.format('n')})",
))
_KOREAN = re.compile(rf"{_START}(?:\d[\d,.]{{0,30}}\s?[십백천]?[조억만]\s?)+(?:\d[\d,]*[십백천]?)?")
_KOREAN_PART = re.compile(r"(?P<n>\d[\d,]*(?:\.\d+)?)\s?(?P<s>[십백천]?)(?P<u>[조억만]?)")
_VALUES_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w)\]])[-−]\s?)?[$€£¥₩]?\s?{_START}(?P<n>{_DIGITS})"
    rf"(?:\s?(?P<scale>{_LARGE})\b|(?:st|nd|rd|th)\b|(?P<percent>\s?(?:%|percent\b|per cent\b|퍼센트|프로)))?",
    re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextValue:
    """A number or date in a text."""

    start: int  # in code points of the NFKC text
    end: int
    number: Decimal | None = None  # value, including a scale such as `million`; None for a date
    date: tuple[int | None, int | None, int | None] | None = None  # year, month, day; None for a missing part
    percent: bool = False  # whether a percent sign follows

    @property
    def token(self) -> str:
        """A word of letters and digits that is the same for equal values."""
        if self.date is not None:
            return "date" + "x".join("" if part is None else str(part) for part in self.date)
        number = f"{self.number:f}" if self.number else "0"
        number = number.rstrip("0").rstrip(".") if "." in number else number
        word = number.replace("-", "minus").replace(".", "point")
        return word + "percent" if self.percent else word

    def implies(self, other: TextValue) -> bool:
        """Return whether this value implies the other, which is equal, or a less exact form of the same date."""
        if other.date is not None:
            return self.date is not None and all(theirs is None or ours == theirs
                                                 for ours, theirs in zip(self.date, other.date, strict=True))
        if self.date is not None:
            return self.date[0] is not None and other.number == self.date[0]
        return self.number == other.number


@lru_cache(maxsize=256)
def find_values(text: str) -> tuple[TextValue, ...]:
    """Return the numbers and dates of a text, in order, without overlaps.

    `5/3/2023` is read month first if that is a valid month. A month and day without a year are a date only if the month
    is capitalised, since `may 3` may be a verb and a number.
    """
    text = normalize("NFKC", text)
    if not any(map(str.isdecimal, text)):
        return ()
    found: list[TextValue] = []
    taken = [False] * len(text)
    folded = text.lower()
    for pattern, read, hints in _READERS:
        for match in pattern.finditer(text) if any(hint in folded for hint in hints) else ():
            value = None if any(taken[match.start():match.end()]) else read(match)
            if value is not None:
                found.append(value)
                taken[value.start:value.end] = [True] * (value.end - value.start)
    return tuple(sorted(found, key=lambda value: value.start))


def _date(match: re.Match[str]) -> TextValue | None:
    part = match.groupdict()
    if part.get("a"):
        month, day = int(part["a"]), int(part["b"])
        month, day = (day, month) if month > 12 else (month, day)
    else:
        month = _MONTHS[part["n"].lower()] if part.get("n") else int(part["m"])
        day = int(part["d"]) if part.get("d") else 0
    year = int(part["y"]) if part.get("y") else None
    if not (1 <= month <= 12 and 0 <= day <= 31):
        return None
    return TextValue(match.start(), match.end(), date=(year, month, day or None))


def _korean(match: re.Match[str]) -> TextValue | None:
    total = Decimal(0)
    for part in _KOREAN_PART.finditer(match[0]):
        if len(part["n"]) > _MAX_DIGITS:
            return None
        total += Decimal(part["n"].replace(",", "")) * _VALUES_SCALE.get(part["s"], 1) * _VALUES_SCALE.get(part["u"], 1)
    return TextValue(match.start(), match.start() + len(match[0].rstrip()), number=total)


def _number(match: re.Match[str]) -> TextValue | None:
    if len(match["n"]) > _MAX_DIGITS:
        return None
    number = Decimal(match["n"].replace(",", "")) * _VALUES_SCALE.get((match["scale"] or "").lower(), 1)
    start = match.start() + len(match[0]) - len(match[0].lstrip())
    return TextValue(start, match.end(), -number if match["sign"] else number, percent=bool(match["percent"]))


_Reader = tuple[re.Pattern[str], Callable[[re.Match[str]], TextValue | None], tuple[str, ...]]
# Try a pattern only if the text contains one of its hints, because finding plain text is much faster.
_NAMED = tuple(sorted({name[:3] for name in _MONTHS}))
_READERS: tuple[_Reader, ...] = (
    *((pattern, _date, hints) for pattern, hints in zip(
        (*_DATES, *_DAYS), (("월",), ("-",), ("/", "."), ("월",), _NAMED, _NAMED, _NAMED, ("/",), _NAMED, _NAMED),
        strict=True)),
    (_KOREAN, _korean, ("조", "억", "만")), (_VALUES_NUMBER, _number, ("",)))
