"""What counts as a number in a table's cell, and the signs that are set apart from theirs."""
from __future__ import annotations

import re
from collections.abc import Sequence

CURRENCIES = frozenset("$€£¥₩")
SIGNS = CURRENCIES | {"(", "$(", "($", "US$"}
"""What is set apart before its number."""
UNITS = frozenset({")", "%", ")%", "%)", "bps", "pts"})
"""What is set apart after its number."""

_LONGEST = 60
_SCALE = r"(?:\s*(?:thousand|million|billion|trillion|bps|pts|basis points)\b)?"
_AMOUNT = rf"[$€£¥₩(\s+−–—-]*\d[\d.,:/\s]*{_SCALE}[)%\sxX†*]*"
_NUMBER = re.compile(
    rf"(?:(?:approximately|about|around|up to)\s+|~)?{_AMOUNT}(?:(?:to|and|through|[–—-])\s*{_AMOUNT})?"
    r"|[—–-]+%?|n/?[am]|US\$.*\d|\d.*\(?%\)?", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)[0-9]{2}|[0-3]?[0-9],")


def is_number(text: str) -> bool:
    """Whether a cell's text is an amount, a range of amounts, a share, a year, a time or a dash."""
    return len(text) <= _LONGEST and _NUMBER.fullmatch(text) is not None


def is_year(text: str) -> bool:
    """Whether a cell's text is a year or, as in `28,`, the day before one: such numbers title columns."""
    return _YEAR.fullmatch(text) is not None


def with_signs(cells: Sequence[str]) -> list[str]:
    """A row whose lone signs and units are joined to the number beside them; elsewhere they stay."""
    line = list(cells)
    for index in range(len(line) - 1, 0, -1):
        if line[index] in UNITS and (line[index - 1] in UNITS or is_number(line[index - 1])):
            _join(line, index - 1, index, index - 1)
    for index in range(len(line) - 1):
        if line[index] in SIGNS and (line[index + 1] in SIGNS or is_number(line[index + 1])):
            _join(line, index, index + 1, index + 1)
    return line


def together(left: str, right: str) -> str:
    """A sign and its number, or a number and its unit, in one cell."""
    return f"{left} {right}" if right.isalpha() else left + right


def _join(line: list[str], left: int, right: int, into: int) -> None:
    joined = together(line[left], line[right])
    line[left] = line[right] = ""
    line[into] = joined
